//! `cofferdam session shell`, `exec` and `logs`, as somebody at a terminal uses them.

use crate::client::Client;
use crate::machine::{processes_with, wait_until};
use crate::pty::Pty;
use crate::server::{Folder, Server, program};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

struct Bed {
    _folder: Folder,
    server: Server,
    client: Client,
    url: String,
    session: String,
}

impl Bed {
    fn new() -> Self {
        let folder = Folder::new("shells");
        let server = Server::start(folder.path(), &["--slots", "32", "--memory", "64g"]);
        let client = Client::of(&server);
        let made = client.post("/v1/sessions", r#"{"env":{"PS1":"$ "}}"#);
        assert_eq!(made.status, 201, "{made:?}");
        let session = made.json()["id"].as_str().expect("an id").to_owned();
        Self { _folder: folder, url: format!("http://{}", server.address), server, client, session }
    }

    fn variables(&self) -> [(&str, &str); 2] {
        [("COFFERDAM_URL", &self.url), ("COFFERDAM_API_KEY", &self.server.key)]
    }

    fn shell(&self, size: (u16, u16), words: &[&str]) -> Pty {
        let words = [&["session", "shell", &self.session], words].concat();
        Pty::start(size, program(), &words, &self.variables())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.arg("session").args(words).envs(self.variables()).stdin(Stdio::null());
        command
    }

    fn said(&self, words: &[&str]) -> String {
        let output = self.command(words).output().expect("the command");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn processes(&self) -> Value {
        self.client.get(&format!("/v1/sessions/{}/processes", self.session)).json()["processes"].clone()
    }
}

#[test]
fn a_conversation_in_a_shell() {
    let bed = Bed::new();
    let mut shell = bed.shell((24, 80), &[]);
    shell.wait_for("$ ");
    shell.type_in("python3 -q\n");
    shell.wait_for(">>> ");
    shell.type_in("x = 41\nx + 1\n");
    shell.wait_for("\n42\r\n");
    shell.type_in("input('name? ')\n");
    shell.wait_for("name? ");
    shell.type_in("Ada\n");
    shell.wait_for("'Ada'");
    shell.type_in("\u{4}");
    shell.type_in("echo back-$((2+3))\n");
    shell.wait_for("back-5");
    shell.type_in("exit 7\n");
    let (code, is_restored, shown) = shell.end();
    assert_eq!(code, Some(7), "{shown}");
    assert!(is_restored, "the terminal is as it was");
}

#[test]
fn keys_sizes_and_jobs_reach_the_shell() {
    let bed = Bed::new();
    let mut shell = bed.shell((30, 100), &[]);
    shell.type_in("stty size\n");
    shell.wait_for("30 100\r\n");
    // Not before the shell runs something: it writes back the size that it has read before each prompt.
    let looks = "echo looks; until [ \"$(stty size)\" = '41 121' ]; do sleep 0.1; done; stty size\n";
    shell.type_in(looks);
    shell.wait_for("looks\r\n");
    shell.resize(41, 121);
    shell.wait_for("41 121\r\n");
    // Ctrl-C ends what is in the foreground, and nothing else.
    shell.type_in("sleep 621 & sleep 622\n");
    wait_until("both sleep", || processes_with("621") == 1 && processes_with("622") == 1);
    shell.type_in("\u{3}");
    wait_until("the one in front is gone", || processes_with("622") == 0);
    assert_eq!(processes_with("621"), 1);
    shell.type_in("echo code-$?\n");
    shell.wait_for("code-130");
    // Stopped, in the background, in the foreground again.
    shell.type_in("fg\n");
    // It says so a moment before it is so.
    shell.wait_for("sleep 621\r\n");
    wait_until("it is stopped", || {
        shell.type_in("\u{1a}");
        std::thread::sleep(std::time::Duration::from_millis(200));
        shell.shown().contains("Stopped")
    });
    shell.type_in("kill %1; wait; echo done-$((1+1))\n");
    shell.wait_for("done-2");
    wait_until("it is gone", || processes_with("621") == 0);
    shell.type_in("exit\n");
    let (code, is_restored, shown) = shell.end();
    assert!(code.is_some_and(|code| code != 125) && is_restored, "{code:?} {shown}");
}

#[test]
fn top_draws_and_the_screen_comes_back() {
    let bed = Bed::new();
    let mut top = bed.shell((30, 100), &["--", "top", "-d", "1"]);
    top.wait_for("PID USER");
    top.wait_for("top");
    top.type_in("q");
    let (code, is_restored, shown) = top.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(is_restored);
    assert!(shown.contains("\u{1b}[H") && shown.contains("load average"), "{shown}");
}

#[test]
fn what_is_shown_reaches_no_clipboard_no_title_and_no_answer() {
    let bed = Bed::new();
    let hostile = r"printf 'a\033]52;c;QUJD\007b\033]0;evil\007c\033]2;evil\033\\d\033P+q544e\033\\e\033[6n\033[cf\033[21tg\033[31mred\033[0m.end.\n'";
    let shell = bed.shell((24, 80), &["--", "sh", "-c", hostile]);
    let (code, is_restored, shown) = shell.end();
    assert_eq!((code, is_restored), (Some(0), true), "{shown:?}");
    assert!(shown.contains("abcdefg\u{1b}[31mred\u{1b}[0m.end."), "{shown:?}");
    // The same for what a step wrote, where a terminal shows it.
    let step = ["session", "exec", &bed.session, "--", "sh", "-c", hostile];
    let (code, _, shown) = Pty::start((24, 80), program(), &step, &bed.variables()).end();
    assert_eq!(code, Some(0));
    assert!(shown.contains("abcdefg\u{1b}[31mred\u{1b}[0m.end."), "{shown:?}");
    let run = ["run", "-t", "--", "sh", "-c", hostile];
    let (code, _, shown) = Pty::start((24, 80), program(), &run, &[]).end();
    assert_eq!(code, Some(0), "{shown:?}");
    assert!(shown.contains("abcdefg\u{1b}[31mred\u{1b}[0m.end."), "{shown:?}");
    // Into a file goes what was written.
    let exact =
        bed.command(&["exec", &bed.session, "--", "sh", "-c", hostile]).output().expect("exec").stdout;
    assert!(exact.windows(8).any(|part| part == b"\x1b]52;c;Q"), "{:?}", String::from_utf8_lossy(&exact));
}

#[test]
fn whoever_leaves_comes_back_to_what_went_on() {
    let bed = Bed::new();
    let mut shell = bed.shell((24, 80), &[]);
    shell.type_in("kept=$((40+2)); echo first-$kept\n");
    shell.wait_for("first-42");
    shell.signal(1);
    let (code, is_restored, shown) = shell.end();
    assert_eq!((code, is_restored), (Some(129), true), "{shown}");
    assert!(shown.contains("--attach 1"), "{shown}");
    assert!(bed.processes()[0].get("outcome").is_none(), "it goes on");
    let mut shell = bed.shell((24, 80), &["--attach", "1"]);
    shell.wait_for("first-42");
    shell.type_in("echo second-$kept; exit 4\n");
    let (code, _, shown) = shell.end();
    assert_eq!(code, Some(4), "{shown}");
    assert!(shown.contains("second-42"), "{shown}");
    let missing = bed.command(&["shell", &bed.session, "--attach", "9"]).output().expect("a command");
    let text = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(missing.status.code() == Some(125) && text.contains("no such process"), "{text}");
}

#[test]
fn the_output_of_a_step_comes_as_it_is_written() {
    let bed = Bed::new();
    let line = "mkfifo gate; echo one; read word < gate; echo \"two $word\"; exit 5";
    let words = ["exec", &bed.session, "--", "sh", "-c", line];
    let mut child = bed.command(&words).stdout(Stdio::piped()).spawn().expect("exec");
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));
    let mut first = String::new();
    stdout.read_line(&mut first).expect("a line");
    assert_eq!(first, "one\n");
    // It waits for this, so that the first line was seen while it ran.
    let opened = ["exec", &bed.session, "--context", "b", "--", "sh", "-c", "echo go > gate"];
    assert!(bed.command(&opened).status().expect("exec").success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("the rest");
    assert_eq!(rest, "two go\n");
    assert_eq!(child.wait().expect("its end").code(), Some(5));
    // A signal interrupts the step, not only us.
    let mut child = bed.command(&["exec", &bed.session, "--", "sleep", "623"]).spawn().expect("exec");
    wait_until("it sleeps", || processes_with("623") >= 2);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
    assert_eq!(child.wait().expect("its end").code(), Some(130));
    wait_until("it does not sleep any more", || processes_with("623") == 0);
}

#[test]
fn logs_are_those_of_one_step_or_of_all() {
    let bed = Bed::new();
    let id = bed.session.clone();
    assert_eq!(bed.said(&["exec", &id, "-c", "print('first'); 40 + 2"]), "first\n42\n");
    assert_eq!(bed.said(&["exec", &id, "--", "sh", "-c", "echo second; echo not >&2"]), "second\n");
    assert_eq!(bed.said(&["logs", &id]), "first\n42\nsecond\n");
    assert_eq!(bed.said(&["logs", &id, "2"]), "second\n");
    let events = |words: &[&str]| -> Vec<Value> {
        bed.said(words).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let all = events(&["logs", "--json", &id, "1"]);
    let mut names: Vec<_> = all.iter().map(|event| event["event"].as_str().expect("a name")).collect();
    // What code shows and what it writes come by different ways.
    names[1..3].sort_unstable();
    assert_eq!(names, ["init", "display", "stdout", "result", "complete"]);
    // Gone on with from any number, without a gap or a repetition.
    let after = all[1]["seq"].to_string();
    assert_eq!(events(&["logs", "--json", "--after", &after, &id, "1"]), all[2..]);
    let missing = bed.command(&["logs", &id, "9"]).output().expect("logs");
    assert!(String::from_utf8_lossy(&missing.stderr).contains("has no step 9"), "{missing:?}");
    // Followed until the session's end.
    let mut child = bed.command(&["logs", "-f", &id]).stdout(Stdio::piped()).spawn().expect("logs");
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));
    let mut line = String::new();
    while line != "second\n" {
        line.clear();
        assert!(stdout.read_line(&mut line).expect("a line") > 0);
    }
    assert_eq!(bed.said(&["exec", &id, "--", "echo", "third"]), "third\n");
    line.clear();
    stdout.read_line(&mut line).expect("a line");
    assert_eq!(line, "third\n");
    assert!(bed.command(&["rm", &id]).stdout(Stdio::null()).status().expect("rm").success());
    assert!(child.wait().expect("its end").success());
}

#[test]
fn a_server_in_the_background_runs_on_between_steps() {
    let bed = Bed::new();
    let all = format!("/v1/sessions/{}/processes", bed.session);
    let server = json!({"command": ["python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", "8642"]});
    assert_eq!(bed.client.post(&all, &server.to_string()).status, 201);
    let ask = "import urllib.request, time\n\
        def ask():\n    for i in range(300):\n        try: return urllib.request.urlopen('http://127.0.0.1:8642/').status\n        \
        except OSError: time.sleep(0.05)\nask()";
    assert_eq!(bed.said(&["exec", &bed.session, "-c", ask]), "200\n");
    assert_eq!(bed.said(&["exec", &bed.session, "-c", "ask()"]), "200\n");
    let running = bed.client.get(&format!("{all}/1?wait_ms=50")).json();
    assert!(running.get("outcome").is_none(), "{running}");
    let log = bed.client.get(&format!("{all}/1/output?follow=false")).body;
    assert_eq!(log.matches("GET / HTTP").count(), 2, "{log}");
    assert_eq!(bed.client.post(&format!("{all}/1/signal"), r#"{"signal":15}"#).status, 204);
    let ended = bed.client.get(&format!("{all}/1?wait_ms=60000")).json();
    assert_eq!(ended["outcome"], json!({"kind": "signaled", "signal": 15}), "{ended}");
}
