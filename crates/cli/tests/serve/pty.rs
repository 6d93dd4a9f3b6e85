//! A user at a terminal: types, resizes the window, reads what is shown.

use crate::machine::wait_until;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub(crate) struct Pty {
    child: Child,
    stdin: Option<ChildStdin>,
    shown: Arc<Mutex<Vec<u8>>>,
    notes: Arc<Mutex<Vec<u8>>>,
    collectors: Vec<JoinHandle<()>>,
}

fn collect(mut from: impl Read + Send + 'static) -> (Arc<Mutex<Vec<u8>>>, JoinHandle<()>) {
    let all = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&all);
    let collector = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            kept.lock().expect("output").extend_from_slice(&buffer[..count]);
        }
    });
    (all, collector)
}

impl Pty {
    pub(crate) fn start(
        size: (u16, u16),
        program: &Path,
        words: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let mut command = Command::new("/usr/bin/python3");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serve/pty.py"));
        command.args([size.0.to_string(), size.1.to_string()]).arg(program).args(words);
        command.envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("python3");
        let stdin = child.stdin.take();
        let (shown, of_shown) = collect(child.stdout.take().expect("stdout"));
        let (notes, of_notes) = collect(child.stderr.take().expect("stderr"));
        Self { child, stdin, shown, notes, collectors: vec![of_shown, of_notes] }
    }

    fn tell(&mut self, what: &Value) {
        writeln!(self.stdin.as_mut().expect("stdin"), "{what}").expect("the terminal is there");
    }

    pub(crate) fn type_in(&mut self, keys: &str) {
        self.tell(&json!({"keys": keys}));
    }

    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        self.tell(&json!({"size": [rows, columns]}));
    }

    pub(crate) fn signal(&mut self, signal: i32) {
        self.tell(&json!({"signal": signal}));
    }

    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().expect("output")).into_owned()
    }

    pub(crate) fn wait_for(&self, text: &str) {
        let began = std::time::Instant::now();
        while !self.shown().contains(text) {
            assert!(began.elapsed().as_secs() < 60, "{text:?} is not in {:?}", self.shown());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// The exit code, and whether the terminal is as it was.
    pub(crate) fn end(mut self) -> (Option<i32>, bool, String) {
        wait_until("the command ends", || self.child.try_wait().expect("its state").is_some());
        let code = self.child.wait().expect("its end").code();
        // What it said last may still be on its way.
        for collector in self.collectors.drain(..) {
            collector.join().expect("all that it said");
        }
        let notes = String::from_utf8_lossy(&self.notes.lock().expect("notes")).into_owned();
        (code, notes.contains("restored"), self.shown())
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
