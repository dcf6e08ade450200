'use strict';
// The driver of a JavaScript context: each piece of code ("cell") runs as a script in this process's own globals.
//
// A cell that awaits is a generator, each stretch of which can be interrupted. An endless loop after an await inside of a
// function cannot be. Its promise, if that is its value, is awaited.

const fs = require('fs');
const net = require('net');
const path = require('path');
const util = require('util');
const vm = require('vm');
const Module = require('module');
const { pathToFileURL } = require('url');
// What the part before this one gives.
const { LOADER, cells, compile } = module.exports;
const { Pipe, constants: PIPE } = globalThis.process.binding('pipe_wrap');
const { WriteWrap } = globalThis.process.binding('stream_wrap');
const sigint = globalThis.process.binding('contextify');

// Code may give these names to things of its own.
const { Buffer, Error, JSON, Math, Number, Object, Promise, String, SyntaxError, URL } = globalThis;
const { clearInterval, process, setInterval } = globalThis;
const { isPromise, isNativeError, isUint8Array } = util.types;
const MIB = 1 << 20;
const LIMITS = { value: 8 * MIB, message: 16 * MIB, execution: 64 * MIB, beginning: 64 << 10 };
const RICH = Symbol.for('Jupyter.display');
const INSPECT = { breakLength: 80, depth: 4, maxArrayLength: 100, maxStringLength: 10000 };

class Interrupted extends Error {
  get name() {
    return 'Interrupted';
  }
}

const queue = [];
let count = 0;
let current = null; // the execution
let folder = null; // of values that are too large for a message

// ---- Descriptors

// A descriptor of its own, which no child inherits; where /proc allows it, which it does to the pipe's owner.
function move(fd, flags) {
  try {
    const moved = fs.openSync(`/proc/self/fd/${fd}`, flags);
    fs.closeSync(fd);
    return moved;
  } catch {
    return fd;
  }
}

// One call into libuv, which writes all or queues the rest: an interrupt that ends JavaScript here tears nothing.
function write(handle, data) {
  const request = new WriteWrap();
  request.handle = handle;
  request.oncomplete = () => {};
  handle.writeBuffer(request, data);
}

function openReplies() {
  const handle = new Pipe(PIPE.SOCKET);
  handle.open(move(3, 'w'));
  handle.setBlocking(true);
  handle.unref();
  return handle;
}

// What is printed is in the pipe before `write` returns. The stream's own state is not used, as an interrupt may break it.
function makeBlocking(name) {
  const { get } = Object.getOwnPropertyDescriptor(process, name);
  let stream;
  function open() {
    stream = get.call(process);
    const handle = stream._handle;
    if (!handle?.setBlocking) return;
    handle.setBlocking(true);
    stream.write = (chunk, encoding, done = encoding) => {
      write(handle, Buffer.from(chunk, typeof encoding === 'string' ? encoding : 'utf8'));
      if (typeof done === 'function') process.nextTick(done);
      return true;
    };
  }
  Object.defineProperty(process, name, {
    configurable: true,
    enumerable: true,
    get() {
      if (!stream) open();
      return stream;
    },
  });
}

const ascii = (value) =>
  JSON.stringify(value)?.replace(/[\u007f-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);

const send = (line) => write(replies, Buffer.from(`${line}\n`, 'latin1'));

// ---- Interrupts

// Node's watch for SIGINT is held twice for good: so its handler is never exchanged for one that would end the process.
// What comes while no code runs is only noted.
function holdInterrupts() {
  sigint.startSigintWatchdog();
  sigint.startSigintWatchdog();
  // A handler that the code adds must not take the signal away.
  const listen = process.listeners('newListener').find((one) => one.name === 'startListeningIfSignal');
  process.removeListener('newListener', listen);
  process.on('newListener', (name) => name === 'SIGINT' || listen.call(process, name));
}

function takeInterrupt() {
  const came = sigint.watchdogHasPendingSigint();
  sigint.stopSigintWatchdog();
  sigint.startSigintWatchdog();
  return came;
}

const bridge = {}; // what rewritten code calls, as cloche$
const stretch = new vm.Script('cloche$.work()', { filename: __filename });

// Calls what may be the code's, so that SIGINT ends it.
function guarded(work) {
  bridge.work = () => {
    if (sigint.watchdogHasPendingSigint()) throw new Interrupted();
    return work();
  };
  try {
    return stretch.runInThisContext({ breakOnSigint: true, displayErrors: false });
  } catch (error) {
    throw isNativeError(error) && error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? new Interrupted() : error;
  }
}

// Waits as `await` does, until the value is there or SIGINT came.
function settle(value) {
  const execution = current;
  execution.poll ??= setInterval(() => takeInterrupt() && execution.abandon(new Interrupted()), 10);
  return new Promise((resolve, reject) => {
    execution.abandon = reject;
    Promise.resolve(value).then(resolve, reject);
  });
}

// ---- Names

// Makes what a cell declares the cell's own: not the accessors that Node has under some names, as `crypto`.
function declare(names) {
  for (const name of names) {
    const there = Object.getOwnPropertyDescriptor(globalThis, name);
    if (there?.writable || there?.configurable === false) continue;
    Object.defineProperty(globalThis, name, { value: undefined, writable: true, enumerable: true, configurable: true });
  }
}

// ---- Modules

const importFrom = LOADER
  ? new vm.Script('(name, options) => import(name, options)', {
      filename: 'cell',
      importModuleDynamically: LOADER,
    }).runInThisContext()
  : (name, options) => import(name, options);
const importHere = (name, options) => quietly(() => importFrom(name, options));

const here = () => pathToFileURL(`${process.cwd()}/`).href;

// As `import()` in a file of the working directory; packages are looked for where `require` does, too.
bridge.import = async (name, options) => {
  if (/^\.{0,2}\//.test(name)) return importHere(new URL(name, here()).href, options);
  try {
    return await importHere(name, options);
  } catch (error) {
    if (error?.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    let found;
    try {
      found = requireHere.resolve(name);
    } catch {
      throw error;
    }
    return importHere(pathToFileURL(found).href, options);
  }
};

bridge.load = async (name, bindings, attributes) => {
  const options = attributes.length ? { with: Object.fromEntries(attributes) } : undefined;
  const namespace = await bridge.import(name, options);
  for (const [local, imported] of bindings) {
    if (imported !== null && !(imported in namespace)) {
      throw new SyntaxError(`The requested module '${name}' does not provide an export named '${imported}'`);
    }
    globalThis[local] = imported === null ? namespace : namespace[imported];
  }
};

bridge.meta = {
  __proto__: null,
  get url() {
    return here();
  },
  get dirname() {
    return process.cwd();
  },
  resolve: (name) => pathToFileURL(requireHere.resolve(name)).href,
};

let requireFrom = { folder: null, require: null };

function requireIn(folder) {
  if (requireFrom.folder !== folder) requireFrom = { folder, require: Module.createRequire(`${folder}/cell.js`) };
  return requireFrom.require;
}

function requireHere(name) {
  return requireIn(process.cwd())(name);
}
requireHere.resolve = (name, options) => requireIn(process.cwd()).resolve(name, options);
requireHere.resolve.paths = (name) => requireIn(process.cwd()).resolve.paths(name);
requireHere.cache = require.cache;
requireHere.extensions = require.extensions;
requireHere.main = module; // so that `require.main === module` is true

function stripTypes(code) {
  const { stripTypeScriptTypes } = Module;
  if (!stripTypeScriptTypes) {
    throw new Error(`TypeScript needs Node.js 22.13 or newer; this is ${process.versions.node}`);
  }
  try {
    return quietly(() => stripTypeScriptTypes(code));
  } catch (error) {
    // Enums and the like become code, at other places.
    if (error.code !== 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') throw error;
    return quietly(() => stripTypeScriptTypes(code, { mode: 'transform' }));
  }
}

// Without the word that it is experimental.
function quietly(work) {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return work();
  } finally {
    process.emitWarning = emitWarning;
  }
}

// ---- Results

const IMAGES = [
  ['image/png', [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ['image/jpeg', [0xff, 0xd8, 0xff]],
  ['image/gif', [0x47, 0x49, 0x46, 0x38]],
  ['application/pdf', [0x25, 0x50, 0x44, 0x46, 0x2d]],
];
const HELPERS = {
  text: 'text/plain',
  html: 'text/html',
  markdown: 'text/markdown',
  latex: 'text/latex',
  svg: 'image/svg+xml',
  png: 'image/png',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  pdf: 'application/pdf',
  json: 'application/json',
  javascript: 'application/javascript',
};
const isJson = (mime) => /^application\/([^;]+\+)?json$/.test(mime);
const isBinary = (mime) => /^(image\/(?!svg)|audio\/|video\/|application\/(pdf|octet-stream)$)/.test(mime);

// A bundle of MIME types, or a promise of one.
function represent(value, shown) {
  if (typeof value?.[RICH] === 'function') return value[RICH]();
  if (shown && isUint8Array(value)) {
    const [mime] = IMAGES.find(([, start]) => start.every((octet, at) => value[at] === octet)) ?? [];
    if (mime) return { [mime]: value };
  }
  return { 'text/plain': util.inspect(value, INSPECT) };
}

function display(value, { raw = false } = {}) {
  const bundle = raw ? value : represent(value, true);
  if (!isPromise(bundle)) return show(bundle);
  const shown = bundle.then(show);
  current?.displays.push(shown);
  return shown;
}
for (const [name, mime] of Object.entries(HELPERS)) display[name] = (value) => show({ [mime]: value });

function show(bundle) {
  if (!current) throw new Error('display: no code is running that this could be a result of');
  send(resultLine(bundle, false));
}

function resultLine(bundle, main) {
  const values = [];
  const cut = {};
  let size = 0;
  for (const [mime, value] of Object.entries(bundle)) {
    let { whole, sent } = encode(mime, value);
    if (sent === undefined) continue;
    const isOver = sent.length > LIMITS.value || size + sent.length >= LIMITS.message;
    if (isOver || current.sent + sent.length > LIMITS.execution) {
      whole = typeof whole === 'string' ? Buffer.from(whole) : whole;
      cut[mime] = { size: whole.length, path: keep(whole) };
      if (isJson(mime) || isBinary(mime)) continue;
      sent = ascii(new util.TextDecoder().decode(whole.subarray(0, LIMITS.beginning), { stream: true }));
    }
    size += sent.length;
    values.push(`${ascii(mime)}: ${sent}`);
  }
  current.sent += size;
  const more = Object.keys(cut).length ? `, "cut": ${ascii(cut)}` : '';
  return `{"type": "result", "id": ${current.id}, "main": ${main}, "data": {${values.join(', ')}}${more}}`;
}

function encode(mime, value) {
  if (isJson(mime)) {
    const whole = JSON.stringify(value);
    return { whole, sent: ascii(value) };
  }
  if (isUint8Array(value)) {
    const octets = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    const text = octets.toString(isBinary(mime) ? 'base64' : 'utf8');
    return { whole: octets, sent: ascii(text) };
  }
  const text = String(value);
  return { whole: isBinary(mime) ? Buffer.from(text, 'base64') : text, sent: ascii(text) };
}

// Where there is no room for it, it is lost, and the rest of the result is not.
function keep(octets) {
  let file = null;
  try {
    folder ??= fs.mkdtempSync(path.join('/tmp', 'cloche-'));
    file = path.join(folder, String(fs.readdirSync(folder).length));
    fs.writeFileSync(file, octets, { mode: 0o600, flag: 'wx' });
    return file;
  } catch {
    if (file !== null) fs.rmSync(file, { force: true });
    return null;
  }
}

// ---- Errors

// Frames of cells and of other people's code, at the places where the cell was written.
function prepareStackTrace(error, frames) {
  const lines = [];
  let hidden = false;
  for (const frame of frames) {
    const file = frame.getFileName() ?? '';
    if (file === __filename && lines.length) break;
    hidden = file === __filename || /^node:(internal\/|vm$)/.test(file) || (hidden && file.startsWith('node:'));
    if (!hidden) lines.push(`    at ${place(frame, file)}`);
  }
  while (/\bnext \(<anonymous>\)$/.test(lines[lines.length - 1])) lines.pop();
  return [headingOf(error), ...lines].join('\n');
}

function place(frame, file) {
  const shifts = cells.get(file);
  if (!shifts || frame.isEval()) return String(frame);
  return String(frame).replace(/:(\d+):(\d+)(\)?)$/, (all, line, column, end) => {
    let original = Number(column);
    for (const [from, by] of shifts.get(Number(line)) ?? []) if (column > from) original -= by;
    return `:${line}:${Math.max(1, original)}${end}`;
  });
}

function headingOf(error) {
  try {
    const heading = Error.prototype.toString.call(error);
    const { code, name } = error;
    return /^ERR_/.test(code) ? heading.replace(name, `${name} [${code}]`) : heading;
  } catch {
    return 'Error';
  }
}

function describe(error) {
  if (error instanceof Interrupted) return { name: 'Interrupted', value: '', traceback: '' };
  if (!isNativeError(error) && !(error instanceof Error)) {
    const value = util.inspect(error, INSPECT);
    return { name: error?.constructor?.name ?? String(error), value, traceback: `Uncaught ${value}` };
  }
  const shown = /^cell \d+:\d+\n/.test(error.stack) ? onlyPlace(error) : util.inspect(error, INSPECT);
  const name = error.name === 'Error' ? error.constructor?.name : error.name;
  // What has no frames stands in brackets.
  const traceback = shown.replace(/^\[([^]*?)\]( \{[^]*)?$/, '$1$2');
  return { name: String(name ?? 'Error'), value: String(error.message), traceback };
}

// Of a SyntaxError: the line, what is wrong with it, and none of the frames that compiled it.
const onlyPlace = (error) => `${error.stack.slice(0, error.stack.indexOf('\n\n'))}\n${error.name}: ${error.message}`;

function report(error) {
  let found;
  try {
    found = guarded(() => describe(error));
  } catch (problem) {
    const interrupted = problem instanceof Interrupted;
    found = interrupted ? describe(problem) : { name: 'Error', value: 'an error that cannot be shown', traceback: '' };
  }
  for (const key of Object.keys(found)) {
    if (found[key].length > LIMITS.beginning) found[key] = `${found[key].slice(0, LIMITS.beginning)}…`;
  }
  send(ascii({ type: 'error', id: current.id, ...found }));
}

// What comes of timers and promises that nobody waits for does not end the context.
function reportLater(error) {
  try {
    if (process.listenerCount('uncaughtException')) process.emit('uncaughtException', error, 'uncaughtException');
    else process.stderr.write(`Uncaught ${util.inspect(error, INSPECT)}\n`);
  } catch {
    fs.writeSync(2, 'Uncaught error that cannot be shown\n');
  }
}

// ---- Executions

async function execute({ id, code, env = {}, cwd, language }) {
  count++;
  current = { id, sent: 0, displays: [], poll: undefined, abandon() {} };
  const before = Object.keys(env).map((name) => [name, process.env[name]]);
  takeInterrupt();
  send(ascii({ type: 'begun', id, count }));
  try {
    Object.assign(process.env, env);
    if (cwd) process.chdir(cwd);
    await run(language === 'typescript' ? stripTypes(code) : code);
    if (current.displays.length) await settle(Promise.all(current.displays));
  } catch (error) {
    report(error);
  }
  clearInterval(current.poll);
  for (const [name, value] of before) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  current = null;
  send(ascii({ type: 'done', id }));
}

async function run(code) {
  const cell = compile(code, `cell ${count}`);
  declare(cell.names);
  let value = guarded(() => cell.scripts.map((script) => script.runInThisContext({ displayErrors: false })).pop());
  if (cell.awaits) value = await finish(value);
  if (!cell.hasResult) return;
  if (isPromise(value)) value = await settle(value);
  if (value === undefined) return;
  let bundle = guarded(() => represent(value, false));
  if (isPromise(bundle)) bundle = await settle(bundle);
  const line = guarded(() => resultLine({ 'text/plain': bundle['text/plain'] ?? util.inspect(value, INSPECT), ...bundle }, true));
  send(line);
}

// Drives a cell that awaits, to its result.
async function finish(steps) {
  let how = 'next';
  let value;
  for (;;) {
    let step = guarded(() => steps[how](value));
    try {
      if (isPromise(step)) step = await settle(step);
      if (step.done) return step.value?.[0];
      value = await settle(step.value);
      how = 'next';
    } catch (error) {
      if (error instanceof Interrupted) {
        guarded(() => steps.return()); // its `finally` runs, its `catch` does not
        throw error;
      }
      if (isPromise(step)) throw error;
      value = error;
      how = 'throw';
    }
  }
}

async function work() {
  if (current) return;
  while (queue.length) await execute(JSON.parse(queue.shift()));
}

function listen(fd) {
  const requests = new net.Socket({ fd, readable: true, writable: false });
  let rest = '';
  requests.setEncoding('utf8');
  requests.on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    queue.push(...lines);
    work();
  });
  requests.on('end', () => process.exit(0));
}

const requests = move(0, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
if (requests !== 0) fs.openSync('/dev/null', 'r'); // which is then 0
const replies = openReplies();
makeBlocking('stdout');
makeBlocking('stderr');
holdInterrupts();
Error.prepareStackTrace = prepareStackTrace;
process.execArgv = [];
process.setUncaughtExceptionCaptureCallback(reportLater);
Object.defineProperty(globalThis, 'cloche$', { value: bridge });
// Later, as Node puts other things there when the loader has run.
process.nextTick(() => {
  for (const [name, value] of Object.entries({ display, module, require: requireHere })) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  }
});
send(ascii({ type: 'ready', version: process.versions.node }));
listen(requests);
