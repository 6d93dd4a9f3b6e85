//! Control and workers over TLS, each with a certificate that the other checks.

use crate::server::{Folder, end};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

/// Starts a role, and returns it with the address that it says it listens on.
fn start(words: &[&str]) -> (Process, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
    let mut child = command.args(words).stdout(Stdio::piped()).spawn().expect("a process");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
    let process = Process(child);
    let url = line.trim().rsplit(' ').next().expect("an address").to_owned();
    assert!(url.starts_with("https://"), "{line}");
    (process, url)
}

/// A certificate for this machine that signs itself, and its key.
fn certificate(folder: &Path, name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    let write = |end: &str, text: String| {
        let path: PathBuf = folder.join(format!("{name}.{end}"));
        std::fs::write(&path, text).expect("a file");
        path.to_string_lossy().into_owned()
    };
    (write("pem", made.cert.pem()), write("key", made.signing_key.serialize_pem()))
}

#[test]
fn control_and_worker_speak_tls_and_check_each_other() {
    let folder = Folder::new("tls");
    let data = folder.path().join("data").to_string_lossy().into_owned();
    let (control_cert, control_key) = certificate(folder.path(), "control");
    let (worker_cert, worker_key) = certificate(folder.path(), "worker");
    let (other_cert, _) = certificate(folder.path(), "other");
    let control = ["control", "--data", &data, "--listen", "127.0.0.1:0", "--lease", "1s"];
    let tls = ["--tls-cert", &control_cert, "--tls-key", &control_key, "--worker-ca", &worker_cert];
    let (_control, url) = start(&[&control[..], &tls].concat());
    let token = format!("{data}/service.token");
    let worker = ["worker", "--control", &url, "--service-token-file", &token, "--listen", "127.0.0.1:0"];
    let tls = ["--tls-cert", &worker_cert, "--tls-key", &worker_key];
    let curl = |path: &str, more: &[&str]| {
        let key = std::fs::read_to_string(format!("{data}/admin.key")).expect("a key");
        let mut curl = Command::new("curl");
        let output = curl
            .args(["--silent", "--max-time", "60", "--cacert", &control_cert])
            .args(["-H", &format!("X-API-Key: {key}")])
            .args(more)
            .arg(format!("{url}{path}"))
            .output();
        String::from_utf8_lossy(&output.expect("curl").stdout).into_owned()
    };
    // A worker that trusts somebody else does not tell control that it is there.
    let (stranger, _) = start(&[&worker[..], &tls, &["--control-ca", &other_cert]].concat());
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(curl("/v1/workers", &[]), r#"{"workers":[]}"#);
    drop(stranger);
    let (_worker, _) = start(&[&worker[..], &tls, &["--control-ca", &control_cert]].concat());
    crate::machine::wait_until("it is registered", || curl("/v1/workers", &[]).contains("ready"));
    let done = curl("/v1/jobs?wait_ms=30000", &["-d", r#"{"command":"echo over tls"}"#]);
    assert!(done.contains(r#""stdout":"over tls\n""#), "{done}");
}
