//! `cofferdam image pull docker-daemon:…`, from a real dockerd of the test's own.

use crate::bed::Bed;
use crate::docker::Daemon;
use crate::support::{Answer, finish};
use cofferdam_docker::Engine;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

const IMAGE: &str = "docker-daemon:cofferdam-test:root";

/// Large enough that an archive can be cut in the middle of its layer.
const FILLER: usize = 4 << 20;

fn daemon(bed: &Bed) -> Daemon {
    let daemon = Daemon::start(Engine::Docker, &bed.path("dockerd")).expect("dockerd is installed");
    let filler = "filler ".repeat(FILLER / 7);
    let root = bed.busybox("root", &[("etc/motd", "from a daemon\n"), ("opt/filler", &filler)]);
    daemon.import(Path::new(&root)).expect("an image");
    daemon
}

fn pull(bed: &Bed, host: &str, words: &[&str]) -> Answer {
    let mut command = bed.command(&[&["image", "pull"], words].concat());
    finish(command.env("DOCKER_HOST", host).spawn().expect("the program starts"))
}

fn host(daemon: &Daemon) -> String {
    format!("unix://{}", daemon.socket.display())
}

/// That a pull failed with these words, and left nothing.
fn fails(bed: &Bed, answer: &Answer, words: &[&str]) {
    assert_eq!(answer.code, Some(125), "{answer:?}");
    for word in words {
        assert!(answer.stderr.contains(word), "{word}: {answer:?}");
    }
    assert_eq!(bed.ok(&["image", "list", "--json"]), "[]\n");
    let left = |folder: &str| fs::read_dir(bed.store().join(folder)).map_or(0, |entries| entries.count());
    assert_eq!(["staging", "layers", "downloads"].map(left), [0, 0, 0], "{answer:?}");
}

/// A daemon that is gone after so many bytes of its archive: a way to the real one, which is cut.
fn cut_after(socket: PathBuf, bytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("tcp://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let Ok(daemon) = UnixStream::connect(&socket) else { return };
            let (mut from, mut to) =
                (client.try_clone().expect("a copy"), daemon.try_clone().expect("a copy"));
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(n @ 1..) = from.read(&mut buffer) {
                    // One request a connection, so that what comes back is of one answer.
                    let text = String::from_utf8_lossy(&buffer[..n])
                        .replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
                    if to.write_all(text.as_bytes()).is_err() {
                        return;
                    }
                }
            });
            thread::spawn(move || {
                let mut left = bytes;
                let (mut daemon, mut client, mut buffer) = (daemon, client, [0; 4096]);
                while let Ok(n @ 1..) = daemon.read(&mut buffer) {
                    if client.write_all(&buffer[..n.min(left)]).is_err() || n >= left {
                        break;
                    }
                    left -= n;
                }
                let _ = (client.shutdown(Shutdown::Both), daemon.shutdown(Shutdown::Both));
            });
        }
    });
    address
}

#[test]
fn an_image_of_a_daemon_is_taken_in_like_any_other() {
    let bed = Bed::new();
    let daemon = daemon(&bed);
    let answer = pull(&bed, &host(&daemon), &[IMAGE, "--json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let first: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!((&first["names"], &first["layers_shared"]), (&json!(["cofferdam-test:root"]), &json!(0)));
    assert_eq!(
        bed.ok(&["run", "--image", "cofferdam-test:root", "--", "cat", "/etc/motd"]),
        "from a daemon\n"
    );
    // The id is the daemon's own, and its layers come once.
    let theirs = daemon.request("GET", "/images/cofferdam-test:root/json", None).expect("an answer");
    assert!(theirs.contains(first["id"].as_str().expect("an id")), "{first} {theirs}");
    let answer = pull(&bed, &host(&daemon), &[IMAGE, "--name", "other:2", "--json"]);
    let second: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{answer:?}"));
    assert_eq!((&second["id"], &second["layers_shared"]), (&first["id"], &json!(1)));
    assert_eq!(fs::read_dir(bed.store().join("staging")).expect("a folder").count(), 0);
    // Where only Podman's variable names a daemon, it is that one.
    let mut command = bed.command(&["image", "pull", IMAGE, "--name", "third"]);
    command.env_remove("DOCKER_HOST").env("CONTAINER_HOST", host(&daemon));
    assert_eq!(finish(command.spawn().expect("the program starts")).code, Some(0));
}

#[test]
fn what_a_daemon_lacks_or_breaks_off_leaves_nothing() {
    let bed = Bed::new();
    let daemon = daemon(&bed);
    let theirs = host(&daemon);
    let answer = pull(&bed, &theirs, &["docker-daemon:cofferdam-test"]);
    fails(&bed, &answer, &["no image \"cofferdam-test:latest\"", "docker images", "cofferdam image pull"]);
    let answer = pull(&bed, &theirs, &[IMAGE, "--max-size", "1m"]);
    fails(&bed, &answer, &["--max-size"]);
    let answer = pull(&bed, &theirs, &[IMAGE, "--plain-http"]);
    fails(&bed, &answer, &["--plain-http is for registries"]);
    let answer = pull(&bed, &theirs, &["docker-daemon:Not A Name"]);
    fails(&bed, &answer, &["NAME:TAG"]);
    for bytes in [FILLER / 2, 20_000] {
        let answer = pull(&bed, &cut_after(daemon.socket.clone(), bytes), &[IMAGE]);
        fails(&bed, &answer, &["the docker daemon broke off", "try again"]);
    }
    // Far enough, it is not cut: what failed was the cut, not the way.
    let answer = pull(&bed, &cut_after(daemon.socket.clone(), usize::MAX), &[IMAGE]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

#[test]
fn a_daemon_that_is_not_there_is_said_at_once() {
    let bed = Bed::new();
    let nowhere = format!("unix://{}", bed.path("no-socket").display());
    let answer = pull(&bed, &nowhere, &[IMAGE]);
    fails(&bed, &answer, &["the docker daemon cannot be reached", "no-socket", "start dockerd"]);
}
