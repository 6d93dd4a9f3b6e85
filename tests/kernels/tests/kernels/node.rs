//! Cells in JavaScript and TypeScript.

use crate::support::*;
use cofferdam_core::Outcome;
use cofferdam_kernels::{Cell, CellOutcome, KernelLanguage, ResultKind};
use std::time::Duration;

async fn node() -> Notebook {
    Notebook::open(KernelLanguage::JavaScript).await
}

const KEPT: CellOutcome = CellOutcome::Interrupted { state_kept: true };

#[tokio::test]
async fn cells_build_on_each_other_and_names_can_be_declared_again() {
    let mut notebook = node().await;
    assert!(
        notebook
            .run("const a = 1; let b = 2; class C { m() { return 1 } }; function f() { return a + b }")
            .await
            .well()
            .told
            .shown
            .is_empty()
    );
    let ran = notebook.run("console.log('hello'); f()").await.well();
    assert_eq!((ran.stdout().as_str(), ran.plain()), ("hello\n", "3"));
    notebook.run("const a = 10; let b = 20; class C { m() { return 2 } }").await.well();
    assert_eq!(notebook.run("[a, b, new C().m()]").await.well().plain(), "[ 10, 20, 2 ]");
    assert_eq!(notebook.run("{ x: 1, y: 'z' }").await.well().plain(), "{ x: 1, y: 'z' }");
    assert_eq!(notebook.run("({}).missing").await.well().told.shown.len(), 0);
    for (code, text) in [
        ("NaN", "NaN"),
        ("-0", "-0"),
        ("10n ** 20n", "100000000000000000000n"),
        ("null", "null"),
        ("'a'", "'a'"),
        ("Symbol('s')", "Symbol(s)"),
        ("true", "true"),
    ] {
        assert_eq!(notebook.run(code).await.well().plain(), text, "{code}");
    }
}

#[tokio::test]
async fn top_level_await_and_imports_work() {
    let mut notebook = node().await;
    assert_eq!(
        notebook.run("const v = await new Promise(r => setTimeout(() => r(7), 10)); v").await.well().plain(),
        "7"
    );
    assert_eq!(notebook.run("await Promise.resolve(8)").await.well().plain(), "8");
    assert_eq!(notebook.run("(await import('node:path')).join('a', 'b')").await.well().plain(), "'a/b'");
    let code = "import fs, { existsSync as there } from 'node:fs';\nimport * as os from \"node:os\"\n// import nothing from 'nowhere'\nconst text = `import x from 'y' ${1 + 1} import('z')`, re = /import ('x')/;\n[typeof fs.readFileSync, there('/'), typeof os.cpus, text]";
    assert_eq!(
        notebook.run(code).await.well().plain(),
        "[ 'function', true, 'function', \"import x from 'y' 2 import('z')\" ]"
    );
    assert_eq!(notebook.run("require('path').basename('/a/b')").await.well().plain(), "'b'");
    notebook
        .run("require('fs').writeFileSync('/workspace/m.mjs', 'export default 5; export const q = 6')")
        .await
        .well();
    assert_eq!(notebook.run("import d, { q } from './m.mjs'\nd + q").await.well().plain(), "11");
}

#[tokio::test]
async fn errors_have_name_value_and_only_the_users_frames() {
    let mut notebook = node().await;
    let ran = notebook.run("function f() {\n  throw new TypeError('one\\ntwo')\n}\nf()").await;
    assert_eq!(ran.end.outcome, CellOutcome::Raised);
    assert_eq!((ran.error().name.as_str(), ran.error().value.as_str()), ("TypeError", "one\ntwo"));
    assert_eq!(
        ran.error().traceback,
        ["TypeError: one", "two", "    at f (cell-1:2:9)", "    at cell-1:4:1"]
    );
    let ran = notebook.run("await null; null.x").await;
    assert_eq!(ran.error().name, "TypeError");
    let ran = notebook.run("let ok = 1;\nlet = = 2").await;
    assert_eq!(ran.error().name, "SyntaxError");
    assert!(ran.error().traceback.join("\n").contains("let = = 2"), "{ran:?}");
    let ran = notebook.run("throw 5").await;
    assert_eq!((ran.error().name.as_str(), ran.error().value.as_str()), ("Uncaught", "5"));
    let ran = notebook.run("await Promise.reject(new RangeError('r'))").await;
    assert_eq!(ran.error().name, "RangeError");
    assert!(!format!("{:?}", ran.error().traceback).contains("kernel"), "{ran:?}");
}

#[tokio::test]
async fn what_runs_too_long_is_interrupted_and_the_state_is_kept() {
    let mut notebook = node().await;
    notebook.run("const x = 5; const never = new Promise(() => {}); const sleep = (ms) => new Promise(r => setTimeout(r, ms))").await.well();
    for code in [
        "console.log('on'); for (;;) {}",
        "console.log('on'); await never",
        "console.log('on'); await sleep(1000000)",
        "await sleep(1); console.log('on'); for (;;) {}",
        "console.log('on'); while (true) { JSON.stringify({ a: [1, 2] }) }",
        "console.log('on'); require('child_process').execSync('sleep 1000')",
    ] {
        let ran = notebook.run_and_interrupt(code, "on").await;
        assert_eq!(ran.end.outcome, KEPT, "{code}: {ran:?}");
        assert_eq!(notebook.run("x").await.well().plain(), "5", "{code}");
    }
    let cell = Cell { code: "for (;;) {}".into(), env: vec![], timeout: Some(Duration::from_millis(300)) };
    assert_eq!(notebook.run_cell(cell).await.end.outcome, CellOutcome::TimedOut { state_kept: true });
    assert_eq!(notebook.run("x").await.well().plain(), "5");
}

#[tokio::test]
async fn an_exit_ends_the_kernel_with_its_code_and_a_late_error_does_not() {
    let mut notebook = node().await;
    let ran = notebook.run("setTimeout(() => { throw new Error('late') }, 1); Promise.reject(new Error('alone')); await new Promise(r => setTimeout(r, 50))").await;
    assert_eq!(ran.end.outcome, CellOutcome::Completed);
    assert!(ran.stderr().contains("late") && ran.stderr().contains("alone"), "{ran:?}");
    let ran = notebook.run("console.log('bye'); process.exit(7)").await;
    assert_eq!(ran.end.outcome, CellOutcome::Died { cause: Outcome::Exited { code: 7 } });
    assert_eq!(ran.stdout(), "bye\n");
}

#[tokio::test]
async fn stdin_is_at_its_end_variables_are_set_and_much_comes_whole() {
    let mut notebook = node().await;
    assert_eq!(notebook.run("require('fs').readFileSync(0).length").await.well().plain(), "0");
    let env = vec![("CYNODE_STEP".to_owned(), "2".to_owned())];
    let ran =
        notebook.run_cell(Cell { code: "process.env.CYNODE_STEP".into(), env, timeout: None }).await.well();
    assert_eq!(ran.plain(), "'2'");
    let ran = notebook
        .run("for (let i = 0; i < 160; i++) console.log('x'.repeat(65535)); console.error('e'.repeat(99999))")
        .await;
    assert_eq!((ran.told.stdout.len(), ran.told.stderr.len()), (160 * 65536, 100_000));
    let ran = notebook.run("require('child_process').spawnSync('sh', ['-c', 'echo sub'], { stdio: 'inherit' }); process.stdout.write('no end')").await;
    assert_eq!(ran.stdout(), "sub\nno end");
}

#[tokio::test]
async fn values_are_shown_in_every_form_they_offer() {
    let mut notebook = node().await;
    let code = "await display({ [Symbol.for('Jupyter.display')]: () => ({ 'text/html': '<b>', 'image/png': new Uint8Array([137, 80]) }) });\n({ _repr_svg_() { return '<svg/>' }, _repr_json_() { return { a: 1 } } })";
    let ran = notebook.run(code).await.well();
    assert_eq!(ran.told.shown.len(), 2, "{ran:?}");
    let data = &ran.told.shown[0].data;
    assert_eq!(
        (ran.told.shown[0].kind, data["text/html"].as_str(), data["image/png"].as_str()),
        (ResultKind::Display, "<b>", "iVA=")
    );
    let data = &ran.told.shown[1].data;
    assert_eq!((data["image/svg+xml"].as_str(), data["application/json"].as_str()), ("<svg/>", "{\"a\":1}"));
}

#[tokio::test]
async fn typescript_runs_beside_javascript() {
    let mut notebook = Notebook::open(KernelLanguage::TypeScript).await;
    let code = "interface P { x: number }\ntype Q = P | null\nconst p: P = { x: 41 } as P;\nfunction f<T extends P>(v: T): number { return v!.x + 1 }\nf(p)";
    assert_eq!(notebook.run(code).await.well().plain(), "42");
    let ran = notebook.run("const x: = 1").await;
    assert_eq!(
        (ran.end.outcome.clone(), ran.error().name.as_str()),
        (CellOutcome::Raised, "SyntaxError"),
        "{ran:?}"
    );
    notebook.kernel.switch(KernelLanguage::JavaScript).expect("they share");
    assert_eq!(notebook.run("p.x").await.well().plain(), "41");
    assert!(notebook.kernel.switch(KernelLanguage::Python).is_err());
}

#[tokio::test]
async fn typescript_that_cannot_run_says_what_to_install() {
    let mut notebook = node().await;
    let code = "const m = require('module'), load = m._load;
delete m.stripTypeScriptTypes;
m._load = (name, ...rest) => { if (/amaro|typescript|sucrase/.test(name)) throw new Error('none'); return load(name, ...rest) };
1";
    notebook.run(code).await.well();
    notebook.kernel.switch(KernelLanguage::TypeScript).expect("they share");
    let ran = notebook.run("const x: number = 1").await;
    assert_eq!(ran.error().name, "TypeScriptUnavailable");
    assert!(ran.error().value.contains("node 22.13") && ran.error().value.contains("amaro"), "{ran:?}");
}
