"""The driver of JavaScript contexts, with each version of Node.js that it is for."""

from __future__ import annotations

import base64
import json
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.drivers import start_driver
from tests.nodes import VERSIONS, node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.driver import Reply
    from tests.drivers import Started


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def driver(version: int, tmp_path: Path) -> Iterator[Started]:
    with start_driver("javascript", node(version), tmp_path, {"NODE_PATH": str(tmp_path / "packages")}) as driver:
        yield driver


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def last(driver: Started, *codes: str) -> Reply:
    """What the last of them brings; none before it fails."""
    for code in codes[:-1]:
        assert driver.run(code).error is None, code
    return driver.run(codes[-1])


VALUES: list[tuple[list[str], str | None]] = [
    (["1 + 1"], "2"),
    (["'text'"], "'text'"),
    (["[1, {a: [2]}]"], "[ 1, { a: [ 2 ] } ]"),
    (["undefined"], None),
    (["null"], "null"),
    ([""], None),
    (["// nothing"], None),
    (["1; // said\n/* and */ ;;"], "1"),
    (["5; let x = 1"], None),
    (["if (true) { 5 }"], None),
    (["{a: 1, b: 2}"], "{ a: 1, b: 2 }"),
    (["{}"], "{}"),
    (["{ let inner = 3; inner }"], None),
    (["{ let inner = 3; inner };"], None),
    (["'use strict'; (function () { return this })()"], None),
    (["'use strict'; await 1; (function () { return typeof this })()"], "'undefined'"),
    (["#!/usr/bin/env node\n6"], "6"),
    (["#!/usr/bin/env node\nawait 6"], "6"),
    # What is declared stays, and may be declared anew.
    (["const a = 1", "let a = 2", "var a = 3", "class a {}", "function a() {}", "const a = 4; a"], "4"),
    (["let a, b = 2, c", "[a, b, c]"], "[ undefined, 2, undefined ]"),
    (["var a = 1", "var a; a"], "1"),
    (["let a = 1", "let a; a"], None),
    (
        ["const {a, b: [c, ...d], ...e} = {a: 1, b: [2, 3], f: 4}, g = 5", "[a, c, d, e, g]"],
        "[ 1, 2, [ 3 ], { f: 4 }, 5 ]",
    ),
    (["const {a = 1, b: {c = a} = {}} = {}, [, d = c] = []", "[a, c, d]"], "[ 1, 1, 1 ]"),
    (
        [
            "class A { #p = 1; static s = 2; static { this.t = 3 } get p() { return this.#p } }",
            "[A.name, new A().p, A.s, A.t]",
        ],
        "[ 'A', 1, 2, 3 ]",
    ),
    (["const f = async () => 1, g = class {}, h = function () {}", "[f.name, g.name, h.name]"], "[ 'f', 'g', 'h' ]"),
    (["let n = 0; function up() { n++ }", "up(); n += 10", "up(); n"], "12"),
    (["f(); function f() { globalThis.early = 1 }", "early"], "1"),
    (["const crypto = require('crypto')", "typeof crypto.createHash"], "'function'"),
    (["const process = 1, Buffer = 2, Promise = 3, JSON = 4, Error = 5", "const console = 6; process"], "1"),
    (
        ["for (const i of [1]) for (let j = 0; j < 1; j++) var k = i", "[typeof i, typeof j, k]"],
        "[ 'undefined', 'undefined', 1 ]",
    ),
    (
        ["{ let hidden = 1; const too = 2; class H {} }", "[typeof hidden, typeof too, typeof H]"],
        "[ 'undefined', 'undefined', 'undefined' ]",
    ),
    (["outer: for (const i of [1, 2]) { for (;;) continue outer }\nlet after = 1", "after"], "1"),
    (["export const a = 1; export default function b() { return 2 }; export { a as c }", "[a, b()]"], "[ 1, 2 ]"),
    (["export default class {}\nexport * from 'fs'", "1"], "1"),
    # No semicolons.
    (["let a = 1\nlet b = 2\n;[a, b]"], "[ 1, 2 ]"),
    (["globalThis.f = x => x\nconst a = f\nlet b\n[b] = [3]\nb"], "3"),
    (["globalThis.f = x => x\nf\nawait f(1)\nawait f(2)"], "2"),
    (["let s = ''\nif (true)\n  await 1\nelse\n  await 2\ndo await 3\nwhile (false)\ns = 'end'"], "'end'"),
    (["let a = 1\n++a\na"], "2"),
    # What looks like something else.
    (
        [
            "let s = `${(() => { let a = `}`; return a })()} const x = ${1 / 2 / 1}`, r = /[/'\"`]const y = 1/g\ns + r.source"
        ],
        "'} const x = 0.5[/\\'\"`]const y = 1'",
    ),
    (
        ["let s = \"import x from 'y'; export let z; await 1\" // let t = 1\n/* const u = 2 */ s.length + typeof t"],
        "'40undefined'",
    ),
    (["let async = 1, of = 2, get = 3, let_ = 4; async + of / get / let_"], "1.1666666666666667"),
    (["const await_ = 1; const o = {await: 2, async too() {}, let: 3}; o.await + o.let"], "5"),
    (["a: { break a }\nlet x = 1 <!--2\nx"], "1"),
    # Awaits.
    (["await 5"], "5"),
    (["await new Promise(done => setTimeout(done, 1, 7))"], "7"),
    (["Promise.resolve(8)"], "8"),
    (
        [
            "const a = await 1, {b} = await {b: 2}; let c; var d = await 4; class E {}; function f() { return a + b }",
            "[a, b, c, d, E.name, f()]",
        ],
        "[ 1, 2, undefined, 4, 'E', 3 ]",
    ),
    (
        [
            "await 1; if (true) { var a = 1; } for (var i = 0, j; i < 3; i++) ; for (var k in {x: 1}) ; for (var [l] of [[5]]) ; if (1) var m = 6; else var o",
            "[a, i, j, k, l, m, o]",
        ],
        "[ 1, 3, undefined, 'x', 5, 6, undefined ]",
    ),
    (["let s = 0\nfor await (const x of [1, Promise.resolve(2)]) s += x\ns"], "3"),
    (["await await Promise.resolve(Promise.resolve(9))"], "9"),
    (["(await 1) + await 2 * -(await 3), [await 4].length"], "1"),
    (["`${await 1}${await (async () => await 2)()}`"], "'12'"),
    (
        ["try { await Promise.reject(new Error('no')) } catch (e) { globalThis.m = e.message } finally { await 1 }\nm"],
        "'no'",
    ),
    (["const f = async (x = 1) => { for await (const y of [x]) return await y }", "await f()"], "1"),
    (["await\n3"], "3"),
    (["await 1; function f() { return g() } function g() { return 'deep' }", "f()"], "'deep'"),
    # Modules.
    (
        [
            "import path, {join as j, default as d} from 'node:path'; import * as all from 'path'; import 'fs'",
            "[path === d, j === all.join, path.sep]",
        ],
        "[ true, true, '/' ]",
    ),
    (["import {a, b} from './of.mjs'\nimport c from \"./of.mjs\"", "[a, b(), c]"], "[ 1, 2, 3 ]"),
    (["(await import('./of.mjs')).default"], "3"),
    (["const f = () => import('./of.mjs')", "(await f()).a"], "1"),
    (["require('./of.cjs').a"], "4"),
    (["require('packed')"], "5"),
    (["import packed from 'packed'; packed"], "5"),
    (["(await import('own')).default"], "6"),
    (["import.meta.url === require('url').pathToFileURL(process.cwd() + '/').href"], "true"),
    (["import.meta.dirname === process.cwd() && import.meta.resolve('./of.cjs').endsWith('/of.cjs')"], "true"),
    (["require.main === module && require.resolve('fs')"], "'fs'"),
    (["process.execArgv.length + process.argv.length"], "1"),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Modules that the code of the table imports."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "of.mjs").write_text("export let a = 1; export const b = () => 2; export default 3")
    (folder / "of.cjs").write_text("exports.a = 4")
    for place, value in (("packages/packed", 5), ("node_modules/own", 6)):
        (folder / place).mkdir(parents=True)
        (folder / place / "index.js").write_text(f"module.exports = {value}")
    return folder


@pytest.mark.parametrize(("codes", "text"), VALUES, ids=[codes[0][:40] for codes, _ in VALUES])
def test_the_value_of_the_last_expression_is_the_result(
    codes: list[str], text: str | None, version: int, shared: Path
) -> None:
    with start_driver("javascript", node(version), shared, {"NODE_PATH": f"{shared}/packages"}) as driver:
        reply = last(driver, *codes)
        assert (reply.error, reply.text, reply.stderr) == (None, text, "")


ERRORS = {
    "  throw new TypeError('bad')": ("TypeError", "bad", "TypeError: bad\n    at cell 1:1:9"),
    "const a = 1, b = 2; let c = no": (
        "ReferenceError",
        "no is not defined",
        "ReferenceError: no is not defined\n    at cell 1:1:29",
    ),
    "await 1; await 2; no": (
        "ReferenceError",
        "no is not defined",
        "ReferenceError: no is not defined\n    at cell 1:1:19",
    ),
    "import fs from 'fs'\nfunction f() {\n  no }\nawait 1\nconst x = f()": (
        "ReferenceError",
        "no is not defined",
        "ReferenceError: no is not defined\n    at f (cell 1:3:3)\n    at cell 1:5:11",
    ),
    "{a: no}": ("ReferenceError", "no is not defined", "ReferenceError: no is not defined\n    at cell 1:1:5"),
    "let x = ;": (
        "SyntaxError",
        "Unexpected token ';'",
        "cell 1:1\nlet x = ;\n        ^\nSyntaxError: Unexpected token ';'",
    ),
    "1\n  await f( ;": (
        "SyntaxError",
        "Unexpected token",
        "cell 1:2\n  await f( ;\n           ^\nSyntaxError: Unexpected token",
    ),
    "let a; let a": (
        "SyntaxError",
        "Identifier 'a' has already been declared",
        "cell 1:1\nlet a; let a\n           ^\nSyntaxError: Identifier 'a' has already been declared",
    ),
    "function f() {": (
        "SyntaxError",
        "Unexpected end of input",
        "cell 1:1\nfunction f() {\n              \n\nSyntaxError",
    ),
    "import {no} from 'fs'": ("SyntaxError", "The requested module 'fs' does not provide an export named 'no'", None),
    "import 'no-such-package'": ("Error", None, None),
    "throw 5": ("Number", "5", "Uncaught 5"),
    "throw null": ("null", "null", "Uncaught null"),
    "throw {a: 1}": ("Object", "{ a: 1 }", "Uncaught { a: 1 }"),
    "throw new (class Own extends Error {})('m')": ("Own", "m", None),
    "await Promise.reject(7)": ("Number", "7", "Uncaught 7"),
    "Promise.reject(new RangeError('r'))": ("RangeError", "r", "RangeError: r\n    at cell 1:1:16"),
    "throw new Error('out', {cause: new Error('in')})": (
        "Error",
        "out",
        "Error: out\n    at cell 1:1:7 {\n  [cause]: Error: in\n      at cell 1:1:32\n}",
    ),
    "await Promise.any([Promise.reject(new Error('one'))])": ("AggregateError", "All promises were rejected", None),
    "(function f() { f() })()": ("RangeError", "Maximum call stack size exceeded", None),
    "({ [Symbol.for('nodejs.util.inspect.custom')]() { throw new Error('shy') } })": ("Error", "shy", None),
    "throw Object.defineProperty(new Error('x'), 'message', {get() { throw 1 }})": ("Error", None, None),
    "throw new Proxy({}, {get() { throw 1 }})": ("Error", None, None),
}


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_has_a_name_a_value_and_the_cells_own_lines(code: str, driver: Started) -> None:
    name, value, traceback = ERRORS[code]
    error = driver.run(code).error
    assert error is not None
    assert error["name"] == name
    assert value in (None, error["value"])
    assert traceback is None or error["traceback"].split(" at node:")[0].startswith(traceback.split("\n\n")[0].rstrip())
    assert (
        "cloche" not in error["traceback"].replace("imported from", "").split("cloche-driver.js' {")[0] or value is None
    )
    assert driver.run("'on'").text == "'on'"


def test_what_code_prints_of_an_error_has_its_lines_too(driver: Started) -> None:
    reply = driver.run("const a = 1; console.error(new Error('shown'))")
    assert reply.stderr == "Error: shown\n    at cell 1:1:28\n"


def test_what_is_printed_comes_before_the_reply(driver: Started) -> None:
    reply = driver.run("console.log('x'.repeat(300000)); console.error('é'); process.stdout.write('end', () => {})")
    assert (len(reply.stdout), reply.stdout[-3:], reply.stderr) == (300_004, "end", "é\n")


def test_the_rest_of_a_promise_that_nobody_awaits_is_told_on_stderr(driver: Started) -> None:
    code = "setTimeout(() => { throw new Error('later') }, 1); Promise.reject(new Error('lost')); await new Promise(r => setTimeout(r, 20))"
    reply = driver.run(code)
    assert reply.error is None
    assert "Uncaught Error: later\n    at " in reply.stderr
    assert "Uncaught Error: lost\n    at cell 1" in reply.stderr


def test_a_handler_of_the_code_gets_what_is_thrown_later(driver: Started) -> None:
    driver.run("process.on('uncaughtException', error => console.log('mine', error.message))")
    reply = driver.run("setTimeout(() => { throw new Error('later') }, 1); await new Promise(r => setTimeout(r, 20))")
    assert (reply.stdout, reply.stderr) == ("mine later\n", "")


def test_timers_and_servers_go_on_between_executions(driver: Started) -> None:
    driver.run("let n = 0; setInterval(() => n++, 1).unref()")
    driver.run(
        "const server = require('http').createServer((q, s) => s.end('served')); await new Promise(r => server.listen(0, r))"
    )
    wait_until(lambda: int(driver.run("n").text or "0") > 3)
    code = "await new Promise(r => require('http').get({port: server.address().port}, s => s.on('data', d => r(String(d)))))"
    assert driver.run(code).text == "'served'"


def test_typescript_runs_where_node_can_strip_its_types(version: int, driver: Started) -> None:
    code = "interface A { b: number }\nconst a: A = {b: 1}; throw new Error(`${a.b}` as string)"
    error = driver.run(code, language="typescript").error
    assert error is not None
    if version < 22:
        assert error["value"].startswith("TypeScript needs Node.js 22.13 or newer; this is ")
        assert error["traceback"].endswith(error["value"])
    else:
        assert error["traceback"] == "Error: 1\n    at cell 1:2:28"
        assert driver.run("enum E { X = 3 }; await E.X", language="typescript").text == "3"


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()
DISPLAYS = {
    "display({a: 1})": {"text/plain": "{ a: 1 }"},
    "display.html('<b>é</b>')": {"text/html": "<b>é</b>"},
    "display.markdown('# x')": {"text/markdown": "# x"},
    "display.latex('x')": {"text/latex": "x"},
    "display.svg('<svg/>')": {"image/svg+xml": "<svg/>"},
    "display.json({a: [1, '\\u00e9']})": {"application/json": {"a": [1, "é"]}},
    "display.javascript('1')": {"application/javascript": "1"},
    f"display.png('{PNG}')": {"image/png": PNG},
    f"display.png(Buffer.from('{PNG}', 'base64'))": {"image/png": PNG},
    f"display(new Uint8Array(Buffer.from('{PNG}', 'base64')))": {"image/png": PNG},
    "display(Buffer.from([0xff, 0xd8, 0xff, 0]))": {"image/jpeg": "/9j/AA=="},
    "display(Buffer.from('no picture'))": {"text/plain": "<Buffer 6e 6f 20 70 69 63 74 75 72 65>"},
    "display({'text/html': 'x', 'application/geo+json': [1]}, {raw: true})": {
        "text/html": "x",
        "application/geo+json": [1],
    },
    "display({[Symbol.for('Jupyter.display')]: () => ({'text/html': 'rich'})})": {"text/html": "rich"},
    "display({[Symbol.for('Jupyter.display')]: async () => ({'text/html': 'late'})}); 0": {"text/html": "late"},
}


@pytest.mark.parametrize("code", DISPLAYS)
def test_display_sends_a_result(code: str, driver: Started) -> None:
    reply = driver.run(f"{code}; undefined")
    assert reply.error is None
    assert [(one["main"], one["data"]) for one in reply.of("result")] == [(False, DISPLAYS[code])]


def test_a_value_may_say_how_it_is_shown(driver: Started) -> None:
    reply = driver.run("({a: 1, async [Symbol.for('Jupyter.display')]() { return {'text/html': '<i>'} }})")
    (result,) = reply.of("result")
    assert result["main"]
    assert result["data"]["text/html"] == "<i>"
    assert "a: 1" in result["data"]["text/plain"]


def test_display_when_no_code_runs_says_so(driver: Started) -> None:
    said = [driver.run("setTimeout(() => display(1), 1)").stderr]
    wait_until(lambda: said.append(driver.run("1").stderr) or "display: no code is running" in "".join(said))


MIB = 1 << 20


def test_a_large_value_is_in_a_file(driver: Started) -> None:
    reply = driver.run(
        f"display.html('é'.repeat({5 * MIB})); display.png(Buffer.alloc({9 * MIB})); display.json('x'.repeat({9 * MIB}))"
    )
    html, png, data = reply.of("result")
    assert html["data"]["text/html"] == "é" * (32 << 10)
    assert (png["data"], data["data"]) == ({}, {})
    files = [one["cut"][mime] for one, mime in ((html, "text/html"), (png, "image/png"), (data, "application/json"))]
    assert [Path(one["path"]).stat().st_size for one in files] == [one["size"] for one in files]
    assert [one["size"] for one in files] == [10 * MIB, 9 * MIB, 9 * MIB + 2]
    assert {Path(one["path"]).stat().st_mode & 0o777 for one in files} == {0o600}
    assert Path(files[0]["path"]).read_text() == "é" * (5 * MIB)
    shutil.rmtree(Path(files[0]["path"]).parent)


@pytest.mark.parametrize("version", [22])
def test_a_message_and_an_execution_have_limits(driver: Started) -> None:
    driver.run(f"const x = 'x'.repeat({7 * MIB}), all = {{'text/plain': x, 'text/html': x, 'text/markdown': x}}")
    (one,) = driver.run("display(all, {raw: true})").of("result")
    assert list(one["cut"]) == ["text/markdown"]
    many = driver.run("for (let i = 0; i < 10; i++) display.html(x); display.text('small')").of("result")
    assert ["cut" in result for result in many] == [False] * 9 + [True, False]
    shutil.rmtree(Path(one["cut"]["text/markdown"]["path"]).parent)


def test_a_bound_keeps_results_short(driver: Started) -> None:
    assert len(driver.run("'x'.repeat(1e8)").text or "") < 11_000
    error = driver.run("throw new Error('x'.repeat(1e6))").error
    assert error is not None
    assert max(len(error["value"]), len(error["traceback"])) < 70_000


LOOPS = {
    "a loop": "console.log('on'); for (;;);",
    "a wait": "console.log('on'); await new Promise(() => {})",
    "a loop of waits": "console.log('on'); for (;;) await new Promise(r => setTimeout(r, 1))",
    "a loop after a wait": "await 1; console.log('on'); for (;;);",
    "an endless print": "for (;;) console.log('on')",
    "a recursion that catches": "console.log('on'); function f() { try { f() } catch { f() } } f()",
    "a result that hangs": "console.log('on'); ({[Symbol.for('nodejs.util.inspect.custom')]() { for (;;); }})",
    "an error that hangs": "console.log('on'); throw {[Symbol.for('nodejs.util.inspect.custom')]() { for (;;); }}",
    "a promise of a function": "(async () => { console.log('on'); await new Promise(() => {}) })()",
    "a loop with handlers": "process.on('SIGINT', () => {}); console.log('on'); for (;;);",
    "a wait without handlers": "process.removeAllListeners('SIGINT'); console.log('on'); await new Promise(() => {})",
    "a for await": "console.log('on'); for await (const x of (async function* () { await new Promise(() => {}) })()) ;",
    "a child": "const code = 'console.log(`on`); setTimeout(() => {}, 60000)'; "
    "require('child_process').execFileSync(process.execPath, ['-e', code], {stdio: 'inherit'})",
    "displays": "console.log('on'); for (;;) display('x'.repeat(5000))",
}


def interrupt(driver: Started, code: str) -> Reply:
    """Interrupts code that prints `on` when it is where it is to be interrupted."""
    driver.begin(code)
    driver.wait_for_output(b"on")
    driver.interrupt()
    return driver.collect("done")


@pytest.mark.parametrize("loop", LOOPS)
def test_an_interrupt_ends(loop: str, driver: Started) -> None:
    driver.run("let kept = 1")
    reply = interrupt(driver, LOOPS[loop])
    assert reply.error is not None
    assert (reply.error["name"], reply.error["traceback"]) == ("Interrupted", "")
    after = driver.run("console.log('after'); kept")
    assert (after.stdout.splitlines()[-1], after.text) == ("after", "1")


def test_an_interrupted_wait_runs_its_finally_and_no_more(driver: Started) -> None:
    wait = "setTimeout(() => console.log('on'), 5); await new Promise(() => {})"
    interrupt(driver, f"let end = 0; try {{ {wait} }} catch {{ end = 2 }} finally {{ end++ }} end = 3")
    assert driver.run("end").text == "1"


def test_an_interrupted_loop_of_waits_does_not_go_on(driver: Started) -> None:
    wait = "await new Promise(r => setTimeout(r, 1))"
    interrupt(driver, f"let n = 0; for (;;) {{ try {{ {wait}; if (n++ === 3) console.log('on') }} catch {{}} }}")
    before = driver.run("n").text
    time.sleep(0.03)
    assert driver.run("n").text == before


def test_an_interrupt_may_come_at_any_time(driver: Started) -> None:
    driver.run("let x = 1")
    for _ in range(30):
        driver.interrupt()
        reply = driver.run("display('x'.repeat(100000)); x", until="begun")
        driver.interrupt()
        if not reply.of("done"):
            driver.collect("done")
    driver.run("x")  # the last signal may be noted so late that it ends this one
    assert driver.run("x").text == "1"


def test_variables_of_a_request_are_for_its_code_only(driver: Started) -> None:
    driver.run("process.env.A = 'old'; delete process.env.B")
    reply = driver.run(
        "const seen = [process.env.A, process.env.B]; delete process.env.A; process.env.B = 1; seen",
        env={"A": "new", "B": "b"},
    )
    assert reply.text == "[ 'new', 'b' ]"
    assert driver.run("[process.env.A, process.env.B]").text == "[ 'old', undefined ]"


def test_a_folder_of_a_request_is_for_good(driver: Started) -> None:
    assert driver.run("process.cwd()", cwd="/usr").text == "'/usr'"
    error = driver.run("1", cwd="/nope").error
    assert error is not None
    assert error["value"].startswith("ENOENT")
    assert driver.run("process.cwd()").text == "'/usr'"


def test_children_hold_neither_the_channel_nor_the_requests(driver: Started) -> None:
    code = "require('child_process').spawnSync('ls', ['-l', '/proc/self/fd'], {stdio: 'inherit'}); require('fs').readFileSync(0, 'utf8')"
    reply = driver.run(code)
    assert driver.pipes_in(reply.stdout) == {1, 2}
    assert reply.text == "''"


def test_a_forked_module_and_a_worker_run_without_the_driver(driver: Started, tmp_path: Path) -> None:
    (tmp_path / "child.js").write_text("process.send(6)")
    fork = "await new Promise(r => require('child_process').fork('./child.js').on('message', r))"
    assert driver.run(fork).text == "6"
    (tmp_path / "child.js").write_text("require('worker_threads').parentPort.postMessage(7)")
    worker = "await new Promise(r => new (require('worker_threads').Worker)('./child.js').on('message', r))"
    assert driver.run(worker).text == "7"


@pytest.mark.parametrize("code", ["process.exit(3)", "process.abort()", "process.kill(process.pid, 'SIGKILL')"])
def test_where_the_process_ends_nothing_is_said(code: str, driver: Started) -> None:
    reply = driver.run(code)
    assert [message["type"] for message in reply.messages if message["type"] != "ready"] == ["begun"]


def test_the_end_of_the_requests_ends_the_process(driver: Started) -> None:
    driver.run("setInterval(() => {}, 1000); process.on('exit', () => console.log('bye'))")
    code, reply = driver.end()
    assert (code, reply.stdout) == (0, "bye\n")


DISTURBANCES = (
    "process.stdout.write = process.stderr.write = () => { throw new Error('no') }; console.log = null",
    "require('fs').closeSync(1); require('fs').closeSync(2); console.log(1)",
    "process.removeAllListeners(); process.emit = null",
    "globalThis.Promise = globalThis.Buffer = globalThis.process = globalThis.setInterval = undefined",
    "Object.prototype.then = undefined; Array.prototype[Symbol.iterator].x = 1",
    "Error.prepareStackTrace = () => { throw 1 }",
    "Error.stackTraceLimit = 0",
    "delete globalThis.display; delete globalThis.require; delete globalThis.Error",
    "setTimeout = setInterval = queueMicrotask = () => {}",
    "process.stdin.resume(); process.stdin.on('data', () => {})",
    "process.chdir('/'); process.umask(0o777)",
    "process.exitCode = 9; process.title = 'x'",
)


@pytest.mark.parametrize("code", DISTURBANCES)
def test_a_context_goes_on_after(code: str, driver: Started) -> None:
    driver.run(code)
    assert driver.run("[await 1, 2]").text == "[ 1, 2 ]"
    assert driver.run("throw 5").error is not None
    assert driver.run("1").text == "1"


def test_code_and_output_may_be_of_any_characters(driver: Started) -> None:
    text = 'é\u2028😀\\"\0\x7f' * 10_000
    reply = driver.run(f"console.log({json.dumps(text)}.length); display.text({json.dumps(text)}); '\\ud800'")
    assert reply.stdout == "80000\n"
    assert reply.of("result")[0]["data"]["text/plain"] == text
    assert str(reply.text).lower() == "'\\ud800'"


def test_requests_that_come_at_once_are_answered_in_turn(driver: Started) -> None:
    driver.begin("await 1", "await 2", "await 3")
    counts: list[int] = []
    while len(counts) < 3:
        counts += [message["count"] for message in driver.collect("done").of("begun")]
    assert counts == [1, 2, 3]
