//! Cells in Bash.

use crate::support::*;
use cofferdam_core::Outcome;
use cofferdam_kernels::{Cell, CellOutcome, KernelLanguage};

async fn bash() -> Notebook {
    Notebook::open(KernelLanguage::Bash).await
}

#[tokio::test]
async fn one_shell_runs_all_cells() {
    let mut notebook = bash().await;
    let code = "x=41; declare -A map=([a]=1); f() { echo $((x + 1)); }\nmkdir -p /workspace/d && cd /workspace/d\nalias hi='echo hello'\nexport Y=2";
    notebook.run(code).await.well();
    let ran = notebook.run("f; pwd; echo ${map[a]}; hi; sh -c 'echo $Y'").await.well();
    assert_eq!(ran.stdout(), "42\n/workspace/d\n1\nhello\n2\n");
    assert_eq!((ran.end.execution_count, ran.end.exit_code), (2, Some(0)));
    let ran = notebook
        .run("cat <<END\none\ntwo\nEND\necho 'q\"uo'\"t'e\"; for i in 1 2\ndo echo $i\ndone")
        .await
        .well();
    assert_eq!(ran.stdout(), "one\ntwo\nq\"uot'e\n1\n2\n");
    assert_eq!(notebook.run("echo a; echo b >&2; echo c").await.stdout(), "a\nc\n");
    assert_eq!(notebook.run("echo b >&2").await.stderr(), "b\n");
    assert_eq!(notebook.run("exec 1>/workspace/log; echo hidden").await.stdout(), "");
    assert_eq!(notebook.run("cat /workspace/log >&2").await.stderr(), "hidden\n");
}

#[tokio::test]
async fn a_cell_fails_with_its_exit_code_and_the_next_can_ask_for_it() {
    let mut notebook = bash().await;
    let ran = notebook.run("echo out; (exit 3)").await;
    assert_eq!((ran.end.outcome.clone(), ran.end.exit_code), (CellOutcome::Raised, Some(3)));
    assert_eq!((ran.error().name.as_str(), ran.error().value.as_str()), ("ExitStatus", "3"));
    assert_eq!(notebook.run("echo $?").await.well().stdout(), "3\n");
    let ran = notebook.run("if then").await;
    assert_eq!(ran.end.outcome, CellOutcome::Raised);
    assert!(ran.stderr().contains("syntax error"), "{ran:?}");
    let ran = notebook.run("echo ${nothing?is missing}; echo not reached").await;
    assert!(ran.stderr().contains("is missing") && ran.stdout().is_empty(), "{ran:?}");
    assert_eq!(ran.end.outcome, CellOutcome::Raised);
    assert_eq!(notebook.run("echo on").await.well().stdout(), "on\n");
    let ran = notebook.run("exit 5").await;
    assert_eq!(ran.end.outcome, CellOutcome::Died { cause: Outcome::Exited { code: 5 } });
}

#[tokio::test]
async fn stdin_is_at_its_end_variables_are_set_and_much_comes_whole() {
    let mut notebook = bash().await;
    assert_eq!(notebook.run("cat; read x; echo $?").await.well().stdout(), "1\n");
    let env = vec![("CYNODE_STEP".to_owned(), "a b\n'\"$x".to_owned())];
    let ran =
        notebook.run_cell(Cell { code: "echo \"$CYNODE_STEP\"".into(), env, timeout: None }).await.well();
    assert_eq!(ran.stdout(), "a b\n'\"$x\n");
    let ran = notebook.run("head -c 10000000 /dev/zero | tr '\\0' x").await.well();
    assert_eq!(ran.told.stdout.len(), 10_000_000);
}

#[tokio::test]
async fn an_interrupt_ends_the_cell_and_not_the_shell() {
    let mut notebook = bash().await;
    notebook.run("x=5").await.well();
    for code in [
        "echo on; sleep 1000; echo not reached",
        "echo on; while :; do :; done; echo not reached",
        "f() { echo on; sleep 1000; }; f; echo not reached",
        "echo on; y=$(sleep 1000); echo not reached",
        "(echo on; sleep 1000); echo not reached",
        // The shell has long waited for both when one of them speaks: while it starts them, and just after, an interrupt
        // ends only them, as it does in a terminal.
        "sleep 1000 | sh -c 'sleep 0.5; echo on; exec sleep 1000'; echo not reached",
    ] {
        let ran = notebook.run_and_interrupt(code, "on").await;
        assert_eq!(ran.end.outcome, CellOutcome::Interrupted { state_kept: true }, "{code}: {ran:?}");
        assert_eq!((ran.stdout().as_str(), ran.end.exit_code), ("on\n", Some(130)), "{code}");
        assert_eq!(notebook.run("echo $x").await.well().stdout(), "5\n", "{code}");
    }
}

#[tokio::test]
async fn background_jobs_live_on_and_outlive_an_interrupt() {
    let mut notebook = bash().await;
    notebook.run("{ while [ ! -e go ]; do sleep 0.05; done; echo late > done; } & job=$!").await;
    let ran = notebook.run_and_interrupt("echo on; sleep 1000", "on").await;
    assert_eq!(ran.end.outcome, CellOutcome::Interrupted { state_kept: true });
    let ran = notebook.run("kill -0 $job && touch go && wait $job; cat done").await;
    assert_eq!((ran.stdout().as_str(), ran.end.exit_code), ("late\n", Some(0)), "{ran:?}");
}

#[tokio::test]
async fn nothing_of_the_kernel_is_left_to_programs() {
    let mut notebook = bash().await;
    let ran = notebook
        .run("ls /proc/self/fd | sort -n | tr '\\n' ' '; env | grep -i cofferdam; echo $-")
        .await
        .well();
    assert!(ran.stdout().starts_with("0 1 2 3 "), "{ran:?}");
    assert!(!ran.stdout().contains("19"), "{ran:?}");
}
