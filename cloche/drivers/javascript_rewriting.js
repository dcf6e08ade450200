'use strict';
// Makes scripts of the pieces of code ("cells") that a JavaScript context runs.
//
// What a cell declares at its top becomes a property of the global object, so that later cells see it and may declare it
// anew: a `const` can be assigned to. Top-level await makes of a cell a generator whose awaits are yields; its functions
// become a script of their own. No edit changes a line's number, and what it does to columns is kept for the errors.

const vm = require('vm');
// Node's own parser, as its REPL uses it; hence --expose-internals.
const { Parser } = require('internal/deps/acorn/acorn/dist/acorn');

// Code may give these names to things of its own.
const { Array, Boolean, JSON, Map, Object, Set, SyntaxError } = globalThis;
const LOADER = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
const cells = new Map(); // file name of a cell → for each line where its columns were shifted, and by how much

const FUNCTIONS = /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression|StaticBlock)$/;
const LISTS = /^(Program|BlockStatement|StaticBlock|SwitchCase)$/;
const PARSING = {
  ecmaVersion: 'latest',
  allowAwaitOutsideFunction: true,
  allowImportExportEverywhere: true,
  allowHashBang: true,
};

// Calls visit(node, parent, insideOfFunction) for each node.
function walk(node, visit, parent = null, inside = false) {
  visit(node, parent, inside);
  for (const key of Object.keys(node)) {
    const deeper = inside || FUNCTIONS.test(node.type) || (node.type === 'PropertyDefinition' && key === 'value');
    for (const child of Array.isArray(node[key]) ? node[key] : [node[key]]) {
      if (typeof child?.type === 'string') walk(child, visit, node, deeper);
    }
  }
}

function namesOf(pattern) {
  switch (pattern?.type) {
    case 'Identifier':
      return [pattern.name];
    case 'ObjectPattern':
      return pattern.properties.flatMap((one) => namesOf(one.value ?? one.argument));
    case 'ArrayPattern':
      return pattern.elements.flatMap(namesOf);
    case 'AssignmentPattern':
      return namesOf(pattern.left);
    case 'RestElement':
      return namesOf(pattern.argument);
    default:
      return [];
  }
}

const blank = (text) => text.replace(/[^\n\r\u2028\u2029]/g, ' ');

// `{a: 1}` is an object to whoever types it alone.
function parse(code) {
  if (/^\s*\{/.test(code) && !/;\s*$/.test(code)) {
    try {
      const tree = Parser.parse(`(${code}\n)`, PARSING);
      if (tree.body.length === 1) return { code: `(${code}\n)`, tree, lead: 1 };
    } catch {
      // A block, then.
    }
  }
  return { code, tree: Parser.parse(code, PARSING), lead: 0 };
}

class Rewriting {
  constructor(source) {
    Object.assign(this, parse(source));
    this.names = [];
    this.imports = [];
    this.functions = []; // ranges of the code
    this.opening = []; // edits: what encloses comes first where it begins and last where it ends
    this.inner = [];
    this.closing = [];
    this.awaits = false;
    this.isAsync = false; // the generator
    const statements = this.tree.body.filter((one) => one.type !== 'EmptyStatement');
    const last = statements[statements.length - 1];
    this.result = last?.type === 'ExpressionStatement' ? last : null;
    walk(this.tree, (node, _, inside) => this.find(node, inside));
    walk(this.tree, (node, parent, inside) => this.change(node, parent, inside));
    for (const statement of statements) this.statement(statement);
    if (this.awaits && this.result) this.surround(this.result, ';return[(', ')];');
  }

  find(node, inside) {
    if (inside) return;
    const each = node.type === 'ForOfStatement' && node.await;
    const disposed = node.type === 'VariableDeclaration' && /using/.test(node.kind);
    this.isAsync ||= each || disposed;
    this.awaits ||= each || disposed || node.type === 'AwaitExpression' || node.type === 'ImportDeclaration';
  }

  change(node, parent, inside) {
    if (LISTS.test(node.type) && !inside) this.mark(node.body ?? node.consequent);
    if (node.type === 'ImportExpression') this.inner.push([node.start, 6, 'cloche$.import']);
    if (node.type === 'MetaProperty' && node.meta.name === 'import') {
      this.inner.push([node.start, node.end - node.start, 'cloche$.meta']);
    }
    if (inside || !this.awaits) return;
    if (node.type === 'AwaitExpression') {
      this.inner.push([node.start, 5, `${this.starts?.has(node.start) ? ';' : ''}(yield(`], [node.end, 0, '))']);
    } else if (node.type === 'VariableDeclaration' && node.kind === 'var' && parent.type !== 'Program') {
      this.variable(node, parent);
    }
  }

  // Where a statement begins that would continue the one before it, if it began with a parenthesis.
  mark(statements) {
    this.starts ??= new Set();
    for (const one of statements) if (one !== this.result) this.starts.add(one.start);
  }

  statement(node) {
    const { declaration } = node;
    switch (node.type) {
      case 'ImportDeclaration':
        this.imports.push(node);
        return this.erase(node.start, node.end);
      case 'ExportNamedDeclaration':
      case 'ExportDefaultDeclaration':
        this.erase(node.start, declaration?.start ?? node.end);
        if (!declaration) return undefined;
        if (declaration.id || declaration.declarations) return this.statement(declaration);
        return this.surround(declaration, ';void(', ');');
      case 'ExportAllDeclaration':
        return this.erase(node.start, node.end);
      case 'VariableDeclaration':
        return /using/.test(node.kind) || (node.kind === 'var' && !this.awaits) ? undefined : this.variable(node, this.tree);
      case 'ClassDeclaration':
        this.names.push(node.id.name);
        return this.awaits
          ? this.surround(node, `;void(${node.id.name}=`, ');')
          : this.surround(node, `var ${node.id.name}=`, ';');
      case 'FunctionDeclaration':
        return this.awaits ? this.functions.push([node.start, node.end]) : undefined;
      default:
        return undefined;
    }
  }

  // In a script a `var`, whose errors have V8's own places; in a generator an assignment to the global object.
  variable(node, parent) {
    const { declarations } = node;
    const loop = /^For/.test(parent.type) && parent.body !== node;
    const listed = LISTS.test(parent.type);
    const [before, after] = !this.awaits ? ['var', ';'] : loop ? ['', ''] : listed ? [';void(0,', ');'] : ['void(0,', ')'];
    this.names.push(...declarations.flatMap((one) => namesOf(one.id)));
    this.opening.push([node.start, node.kind.length, before]);
    for (const one of declarations) {
      if (!one.init && node.kind !== 'var') this.closing.push([one.end, 0, '=void 0']);
    }
    this.closing.push([declarations[declarations.length - 1].end, 0, after]);
  }

  surround(node, before, after) {
    this.opening.push([node.start, 0, before]);
    const end = this.code[node.end - 1] === ';' && node.type === 'ExpressionStatement' ? node.end - 1 : node.end;
    this.closing.push([end, 0, after]);
  }

  erase(start, end) {
    this.code = this.code.slice(0, start) + blank(this.code.slice(start, end)) + this.code.slice(end);
  }

  // The scripts to run, in order.
  scripts(file) {
    const edits = [...this.opening, ...this.inner, ...this.closing];
    const isFunction = ([at]) => this.functions.some(([start, end]) => at >= start && at < end);
    const shifts = new Map();
    const texts = [];
    if (this.functions.length) {
      let text = blank(this.code);
      const keep = this.tree.body.filter((one) => one.directive).map((one) => [one.start, one.end]);
      for (const [start, end] of [...keep, ...this.functions]) {
        text = text.slice(0, start) + this.code.slice(start, end) + text.slice(end);
        if (!keep.some(([one]) => one === start)) this.erase(start, end);
      }
      texts.push(apply(text, edits.filter(isFunction), '', shifts));
    }
    const [head, tail] = this.awaits ? [this.head(), '\n}).call(this)'] : ['', ''];
    const code = this.awaits ? this.code.replace(/^#!.*/, blank) : this.code;
    texts.push(apply(code, edits.filter((one) => !isFunction(one)), head, shifts) + tail);
    if (this.lead) shift(shifts, 1, 0, this.lead);
    if (shifts.size) cells.set(file, shifts);
    return texts.map((text) => new vm.Script(text, { filename: file, importModuleDynamically: LOADER }));
  }

  head() {
    const strict = this.tree.body[0]?.directive === 'use strict' ? '"use strict";' : '';
    const imports = this.imports.map((node) => {
      const bindings = node.specifiers.map((one) => {
        const from = one.imported ? (one.imported.name ?? one.imported.value) : null;
        return [one.local.name, one.type === 'ImportDefaultSpecifier' ? 'default' : from];
      });
      const attributes = (node.attributes ?? []).map((one) => [one.key.name ?? one.key.value, one.value.value]);
      this.names.push(...bindings.map(([name]) => name));
      return `yield(cloche$.load(${[node.source.value, bindings, attributes].map((one) => JSON.stringify(one))}));`;
    });
    return `(${this.isAsync ? 'async ' : ''}function*(){${strict}${imports.join('')}`;
  }
}

function shift(shifts, line, column, by) {
  shifts.set(line, [...(shifts.get(line) ?? []), [column, by]]);
}

// The text with its edits, each [where, how much to remove, text]; notes what that does to columns.
function apply(code, edits, head, shifts) {
  let text = head;
  let at = 0;
  let line = 1;
  let begin = 0;
  if (head) shift(shifts, 1, 0, head.length);
  for (const [where, removed, added] of edits.sort((one, other) => one[0] - other[0])) {
    const between = code.slice(at, where);
    for (const { index } of between.matchAll(/\r\n|[\n\r\u2028\u2029]/g)) {
      line++;
      begin = text.length + index + 1;
    }
    text += between;
    shift(shifts, line, text.length - begin, added.length - removed);
    text += added;
    at = where + removed;
  }
  return text + code.slice(at);
}

// A cell's scripts; throws a SyntaxError with the place.
function compile(code, file) {
  let rewriting;
  try {
    rewriting = new Rewriting(code);
  } catch (problem) {
    // Whatever the parser does not know but V8 does runs as it is.
    return { scripts: [compileAsIs(code, file, problem)], names: [], hasResult: true };
  }
  const scripts = rewriting.scripts(file);
  return { scripts, names: rewriting.names, awaits: rewriting.awaits, hasResult: Boolean(rewriting.result) };
}

function compileAsIs(code, file, problem) {
  try {
    return new vm.Script(code, { filename: file, importModuleDynamically: LOADER });
  } catch (error) {
    // V8 says more, but takes a cell for a script that can neither await nor import.
    if (!problem.loc || !/await|import|export/.test(error.message)) throw error;
    const { line, column } = problem.loc;
    const message = problem.message.replace(/ \(\d+:\d+\)$/, '');
    const place = `${file}:${line}\n${code.split('\n')[line - 1]}\n${' '.repeat(column)}^\n`;
    const own = new SyntaxError(message);
    own.stack = `${place}\nSyntaxError: ${message}`;
    throw own;
  }
}

module.exports = { LOADER, cells, compile };
