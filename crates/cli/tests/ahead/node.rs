//! Node programs that look at what a wait could have changed.

use super::{Program, program};

pub(crate) static PROGRAMS: [Program; 20] = [
    program("print", "console.log(1)"),
    Program {
        args: &["a", "-v", "", "ü"],
        ..program("argv", "console.log(process.argv, process.execArgv, process.argv0, process.title)")
    },
    program("names", "console.log(Object.getOwnPropertyNames(globalThis).sort().join())"),
    program(
        "module",
        "console.log(__filename, __dirname, module.id, module.paths, require.main === undefined)",
    ),
    Program { env: &[("A", "1"), ("B", "x=y")], ..program("environment", "console.log(process.env)") },
    Program {
        env: &[("CHILD", "seen")],
        ..program(
            "environment of a child",
            "console.log(require('child_process').execSync('env | sort').toString())",
        )
    },
    program("folder", "console.log(process.cwd(), require('fs').readdirSync('.'))"),
    program("an error", "function f() { throw new TypeError('x') }\nf()\n"),
    program("a caught error", "try { null.x } catch (e) { console.log(String(e)) }"),
    program("a rejection", "Promise.reject(new Error('late'))"),
    program("a syntax error", "console.log(1"),
    program("a module", "import fs from 'fs'; console.log(typeof fs.readFileSync, import.meta.url)"),
    program("a dynamic import", "import('fs').then((fs) => console.log(typeof fs.readFileSync))"),
    program(
        "timers",
        "setTimeout(() => console.log('later'), 5); process.on('exit', (c) => console.log('exit', c))",
    ),
    program("exit code", "process.exitCode = 7"),
    program("killed", "process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 9000)"),
    program("no input", "process.stdin.on('data', console.log).on('end', () => console.log('end'))"),
    Program {
        stdin: Some("one\ntwo\n"),
        ..program("input", "console.log(JSON.stringify(require('fs').readFileSync(0, 'utf8')))")
    },
    Program {
        file: Some(("/workspace/helper.js", "module.exports = __filename")),
        ..program("an import", "console.log(require('./helper'))")
    },
    Program {
        timeout_ms: Some(500),
        ..program(
            "time-out",
            "require('fs').writeFileSync('.artifacts/a', 'kept'); console.log('began'); for (;;);",
        )
    },
];

/// Where a stack is shown, two frames of the wait are below the program's own.
pub(crate) fn without_the_wait(text: &str) -> String {
    let mut lines = Vec::new();
    let mut rest = text.split_inclusive('\n');
    while let Some(line) = rest.next() {
        if line.starts_with("    at Script.runInThisContext (node:vm:") {
            assert!(rest.next().is_some_and(|line| line.starts_with("    at [eval]:")), "{text}");
        } else {
            lines.push(line);
        }
    }
    lines.concat()
}
