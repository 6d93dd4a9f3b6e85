//! Jobs of the service on images, and behind other walls.

use crate::client::Client;
use crate::server::{Folder, Server, program};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An image store with a root of this machine's own programs, called `app:1`.
pub(crate) fn store(folder: &Path) -> String {
    // On a disk, as layers have to lie.
    let root = folder.join("root");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/container-root.sh");
    assert!(Command::new(script).arg(&root).arg(program()).status().expect("container-root.sh").success());
    std::fs::write(root.join("etc/motd"), "from the store\n").expect("a file");
    let store = folder.join("images");
    let mut import = Command::new(program());
    import.args(["image", "import"]).arg(&root).args(["--name", "app:1"]).env("COFFERDAM_IMAGES", &store);
    assert!(import.stdout(Stdio::null()).status().expect("an import").success());
    std::fs::remove_dir_all(&root).expect("the root to be removed");
    store.to_string_lossy().into_owned()
}

fn run(client: &Client, request: &Value) -> Value {
    client.post("/v1/jobs?wait_ms=60000", &request.to_string()).json()
}

fn refused(client: &Client, request: &Value) -> String {
    let answer = client.post("/v1/jobs", &request.to_string());
    let error = answer.json()["error"].clone();
    assert_eq!((answer.status, error["code"].as_str()), (422, Some("unsupported")), "{request}: {error}");
    error["message"].as_str().expect("a message").to_owned()
}

#[test]
fn jobs_run_on_images_behind_the_backend_that_they_ask_for() {
    let folder = Folder::new("backends");
    let images = store(folder.path());
    let data = folder.path().join("data");
    let options = ["--set", "backends.images=true", "--set", "backends.enabled=native,oci"];
    let server = Server::start_in(&data, &options, &[("COFFERDAM_IMAGES", &images)]);
    let client = Client::of(&server);
    for backend in ["native", "oci"] {
        let job =
            run(&client, &json!({"command": "cat /etc/motd; id -u", "image": "app:1", "backend": backend}));
        assert_eq!(job["result"]["stdout"], "from the store\n1000\n", "{job}");
        assert_eq!(job["result"]["isolation"]["backend"], backend, "{job}");
    }
    let code = json!({"language": "python", "code": "print(open('/etc/motd').read(), end='')", "image": "app:1", "backend": "oci"});
    assert_eq!(run(&client, &code)["result"]["stdout"], "from the store\n");
    // Without an image it is the machine's own programs, as ever.
    assert_eq!(run(&client, &json!({"command": "echo on"}))["result"]["stdout"], "on\n");
    let missing = run(&client, &json!({"command": "true", "image": "nowhere:1"}));
    assert_eq!(missing["status"]["state"], "errored", "{missing}");
    assert!(
        missing.to_string().contains("nowhere:1") && missing.to_string().contains("image_not_found"),
        "{missing}"
    );
    assert!(
        refused(&client, &json!({"command": "true", "backend": "docker", "image": "app:1"}))
            .contains("backend")
    );
    assert!(
        refused(&client, &json!({"command": "true", "backend": "lxc", "image": "app:1"}))
            .contains("native, oci")
    );
    assert!(refused(&client, &json!({"command": "true", "backend": "oci"})).contains("image"));
    let ready = client.get("/readyz").json();
    let expected = json!([{"name": "native", "state": "ready"}, {"name": "oci", "state": "ready"}]);
    assert_eq!(ready["backends"], expected, "{ready}");
}

/// What the pools have done: hits, misses, and how many wait.
pub(crate) fn pool_counts(client: &Client) -> [u64; 3] {
    let metrics = client.get("/metrics").body;
    let names = [
        r#"cofferdam_pool_starts_total{kind="hit"} "#,
        r#"cofferdam_pool_starts_total{kind="miss"} "#,
        "cofferdam_pool_waiting ",
    ];
    names.map(|name| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name}: {metrics}"))
    })
}

#[test]
fn what_waits_serves_the_next_job_on_an_image_and_goes_with_the_server() {
    let folder = Folder::new("waiting");
    let images = store(folder.path());
    let data = folder.path().join("data");
    let options = ["--set", "backends.images=true", "--set", "backends.enabled=native,oci"];
    let server = Server::start_in(&data, &options, &[("COFFERDAM_IMAGES", &images)]);
    let client = Client::of(&server);
    // All that waits from the start is there.
    let at_rest = || {
        let waiting = || pool_counts(&client)[2];
        let mut before = (waiting(), Instant::now());
        while before.1.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(50));
            let now = waiting();
            if now != before.0 {
                before = (now, Instant::now());
            }
        }
        before.0
    };
    let mut waiting = at_rest();
    for backend in ["native", "oci"] {
        let job = json!({"language": "python", "code": "print(open('/etc/motd').read(), end='')",
                         "image": "app:1", "backend": backend, "limits": {"pids": 20}});
        let mut runs = (0..3).map(|_| {
            let [hits, misses, _] = pool_counts(&client);
            let done = run(&client, &job);
            assert_eq!(done["result"]["stdout"], "from the store\n", "{done}");
            assert_eq!(done["result"]["isolation"]["backend"], backend, "{done}");
            let [more_hits, more_misses, _] = pool_counts(&client);
            let now_waiting = at_rest();
            assert!(now_waiting > waiting, "{backend}: nothing more waits than {waiting}");
            (more_hits - hits, more_misses - misses)
        });
        assert_eq!(runs.next(), Some((0, 1)), "{backend}: the first one");
        assert_eq!(runs.next(), Some((1, 0)), "{backend}: the next one");
        assert_eq!(runs.next(), Some((1, 0)), "{backend}: the one after that");
        waiting = at_rest();
    }
    let id = server.id();
    assert!(places_of(id) > 0, "no container waits");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(places_of(id), 0, "a container is left");
}

/// How many containers of a runtime a process has.
fn places_of(process: u32) -> usize {
    let places = std::fs::read_dir("/run/cofferdam/oci/places").into_iter().flatten().flatten();
    let is_its = |place: &Path| {
        let owner = std::fs::read_to_string(place.join("owner")).unwrap_or_default();
        owner.split(':').nth(1) == Some(&process.to_string())
    };
    places.filter(|place| is_its(&place.path())).count()
}

#[test]
fn what_an_operator_has_not_allowed_is_unsupported() {
    let folder = Folder::new("no-backends");
    let server = Server::start(&folder.path().join("data"), &[]);
    let client = Client::of(&server);
    assert!(refused(&client, &json!({"command": "true", "image": "app:1"})).contains("backends.images"));
    assert!(
        refused(&client, &json!({"command": "true", "profile": "base-tools"})).contains("backends.images")
    );
    drop(server);
    let mut wrong = Command::new(program());
    wrong.args(["serve", "--data"]).arg(folder.path().join("data"));
    let output = wrong.args(["--set", "backends.enabled=native,lxc"]).output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(125) && said.contains("backends.enabled"), "{said}");
}

/// A dockerd of the test's own, killed with it.
pub(crate) struct Daemon {
    child: Child,
    folder: PathBuf,
}

impl Daemon {
    pub(crate) fn start(folder: &Path) -> Self {
        let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let mut dockerd = Command::new("dockerd");
        dockerd.args(["--data-root", &at("docker"), "--exec-root", &at("run"), "--pidfile", &at("pid")]);
        dockerd.args(["-H", &format!("unix://{}", at("socket")), "--bridge=none", "--iptables=false"]);
        dockerd.args(["--ip6tables=false", "--ip-masq=false"]);
        let child = dockerd.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null()).spawn();
        let daemon = Self { child: child.expect("dockerd is installed"), folder: folder.to_owned() };
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::os::unix::net::UnixStream::connect(folder.join("socket")).is_err() {
            assert!(Instant::now() < deadline, "no daemon");
            std::thread::sleep(Duration::from_millis(50));
        }
        daemon
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("its end");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // What the daemon left: those that watch its containers, and what they have mounted.
        let script = r#"for process in /proc/[0-9]*; do
                tr '\0' ' ' < $process/cmdline 2> /dev/null | grep -q -e "containerd.*$1/" && kill -KILL ${process#/proc/}
            done
            for mount in $(grep -o " $1/[^ ]*" /proc/mounts | sort -r); do umount -l $mount; done"#;
        let _ = Command::new("sh").args(["-c", script, "sh"]).arg(&self.folder).status();
    }
}

#[test]
fn a_job_whose_daemon_is_killed_is_lost() {
    let folder = Folder::new("daemon");
    let images = store(folder.path());
    let mut daemon = Daemon::start(folder.path());
    let socket = format!("backends.docker_socket={}", folder.path().join("socket").display());
    let data = folder.path().join("data");
    let options =
        ["--set", "backends.images=true", "--set", "backends.enabled=native,docker", "--set", &socket];
    let server = Server::start_in(&data, &options, &[("COFFERDAM_IMAGES", &images)]);
    let client = Client::of(&server);
    let request = |command: &str| json!({"command": command, "image": "app:1", "backend": "docker"});
    let id = client.post("/v1/jobs", &request("cat /etc/motd; echo standing; sleep 1000").to_string()).json();
    let id = id["id"].as_str().unwrap_or_else(|| panic!("{id}")).to_owned();
    let path = format!("/v1/jobs/{id}");
    // The daemon is given the image, and then the helper, which is large where it is not a release.
    let deadline = Instant::now() + Duration::from_secs(240);
    let output = || client.get(&format!("{path}/output?follow=false")).body;
    while !output().contains("standing") {
        assert!(Instant::now() < deadline, "{:?}", client.get(&path));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(output().contains("from the store"), "{}", output());
    daemon.kill();
    let deadline = Instant::now() + Duration::from_secs(60);
    let state = || client.get(&path).json()["status"]["state"].clone();
    while state() == "running" {
        assert!(Instant::now() < deadline, "{:?}", client.get(&path));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(state(), "lost", "{:?}", client.get(&path));
    // Others go on.
    assert_eq!(run(&client, &json!({"command": "echo on"}))["result"]["stdout"], "on\n");
}
