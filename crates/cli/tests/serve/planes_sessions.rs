//! Sessions of two control planes and two workers on one PostgreSQL: whoever is asked finds the way, whoever is killed
//! takes no more along than it had, and whoever was away too long ends what is not its own.

use crate::client::Client;
use crate::machine::{OwnProgram, processes_with, wait_until};
use crate::pausing::{resume, stdout};
use crate::postgres;
use crate::server::{Folder, Server};
use crate::sessions::{begin, create, delete, get, python, shell};
use serde_json::json;
use std::path::PathBuf;

struct Planes {
    program: OwnProgram,
    address: String,
    folders: [Folder; 2],
    token: PathBuf,
    /// The first one's key is in the store that both share.
    key: String,
    planes: Vec<Option<Server>>,
    // The last to go.
    _postgres: postgres::Server,
}

impl Planes {
    fn start(name: &str) -> Self {
        let postgres = postgres::Server::start();
        let folders = [Folder::new(&format!("{name}-a")), Folder::new(&format!("{name}-b"))];
        let token = folders[0].path().join("service.token");
        let mut planes = Self {
            program: OwnProgram::new(),
            address: postgres.address("postgres"),
            folders,
            token,
            key: String::new(),
            planes: vec![None, None],
            _postgres: postgres,
        };
        planes.start_plane(0);
        planes.key = planes.planes[0].as_ref().expect("a plane").key.clone();
        planes.folders[1].share_key_of(&planes.folders[0]);
        planes.start_plane(1);
        planes
    }

    fn start_plane(&mut self, at: usize) {
        let token = self.token.to_string_lossy().into_owned();
        let artifacts = self.folders[0].path().join("artifacts").to_string_lossy().into_owned();
        let mut options = vec!["--database", &self.address, "--lease", "1s", "--artifacts", &artifacts];
        if at > 0 {
            options.extend(["--service-token-file", &token]);
        }
        let folder = self.folders[at].path();
        self.planes[at] = Some(Server::start_role(&self.program.path(), "control", folder, &options));
    }

    fn worker(&self) -> Server {
        let planes: Vec<_> = self.planes.iter().flatten().collect();
        let before: Vec<_> = (0..planes.len()).map(|at| self.ready(at)).collect();
        let worker = Server::start_worker(
            &self.program.path(),
            &planes,
            &self.token,
            &["--slots", "16", "--memory", "64g"],
        );
        wait_until("both know the worker", || (0..planes.len()).all(|at| self.ready(at) > before[at]));
        worker
    }

    fn client(&self, at: usize) -> Client {
        Client::of(self.planes[at].as_ref().expect("a plane")).with_key(&self.key)
    }

    fn workers(&self, at: usize) -> Vec<serde_json::Value> {
        self.client(at).get("/v1/workers").json()["workers"].as_array().expect("workers").clone()
    }

    fn ready(&self, at: usize) -> usize {
        self.workers(at).iter().filter(|worker| worker["state"] == "ready").count()
    }

    fn stop(mut self, workers: Vec<Server>) {
        for server in workers.into_iter().chain(self.planes.iter_mut().filter_map(Option::take)) {
            assert_eq!(server.stop(), Some(0));
        }
        self.program.wait_until_gone();
    }
}

fn number(step: &serde_json::Value) -> &str {
    step["result"]["results"][0]["data"]["text/plain"].as_str().unwrap_or_else(|| panic!("{step}"))
}

/// A variable is set through one plane and read through the other, also when the first was killed in the middle of a
/// step.
#[test]
fn a_session_is_reached_through_any_plane_and_outlives_each() {
    let mut planes = Planes::start("planes-state");
    let worker = planes.worker();
    let (a, b) = (planes.client(0), planes.client(1));
    let id = create(&a, "{}");
    python(&a, &id, "x = 41");
    assert_eq!(number(&python(&b, &id, "x + 1")), "42");
    // One plane interrupts what another runs, and ends what another has made.
    let endless = begin(&a, &id, &json!({"language": "python", "code": "while True: pass"}));
    let path = format!("/v1/sessions/{id}/steps/{endless}");
    wait_until("it runs", || b.get(&path).json()["status"]["state"] == "running");
    assert_eq!(b.post(&format!("{path}/interrupt"), "").status, 202);
    wait_until("it is cancelled", || b.get(&path).json()["status"]["state"] == "cancelled");
    let other = create(&a, "{}");
    assert_eq!(delete(&b, &format!("/v1/sessions/{other}")).status, 204);
    wait_until("the plane that has placed it knows", || planes.workers(0)[0]["used"]["slots"] == 1);
    // A step runs, and its plane is killed.
    let lost = begin(&a, &id, &json!({"command": "sleep 314.271"}));
    wait_until("it runs", || processes_with("314.271") == 1);
    planes.planes[0].take().expect("a plane").kill();
    let path = format!("/v1/sessions/{id}/steps/{lost}");
    wait_until("nobody knows how far it came", || b.get(&path).json()["status"]["state"] == "lost");
    assert_eq!(number(&python(&b, &id, "x + 2")), "43");
    assert_eq!(get(&b, &id)["status"]["state"], "ready");
    wait_until("it is interrupted", || processes_with("314.271") == 0);
    planes.start_plane(0);
    assert_eq!(number(&python(&planes.client(0), &id, "x + 3")), "44");
    assert_eq!(delete(&planes.client(0), &format!("/v1/sessions/{id}")).status, 204);
    planes.stop(vec![worker]);
}

/// A worker that stops keeps what is to be kept; another one goes on with it, and takes everything along when killed.
#[test]
fn a_drained_worker_leaves_archives_and_a_killed_one_nothing() {
    let planes = Planes::start("planes-drain");
    let first = planes.worker();
    let (a, b) = (planes.client(0), planes.client(1));
    let kept = create(&a, r#"{"on_drain":"archive"}"#);
    let lost = create(&a, "{}");
    python(&a, &kept, "open('kept', 'w').write('files')");
    let second = planes.worker();
    assert_eq!(first.stop(), Some(0));
    assert_eq!(get(&b, &kept)["pause"]["mode"], "archive", "{}", get(&b, &kept));
    wait_until("what is not kept is lost", || get(&b, &lost)["status"]["cause"] == "lost");
    resume(&b, &kept);
    assert_eq!(stdout(&shell(&a, &kept, "cat kept; sleep 314.272 & sleep 0")), "files");
    let archived = create(&a, "{}");
    shell(&b, &archived, "echo archived > kept");
    crate::pausing::pause(&a, &archived, "archive");
    wait_until("it runs", || processes_with("314.272") == 1);
    second.kill();
    wait_until("nothing of it runs", || processes_with("314.272") == 0);
    wait_until("it is lost", || get(&a, &kept)["status"]["cause"] == "lost");
    assert_eq!(get(&b, &archived)["status"]["state"], "paused");
    let third = planes.worker();
    resume(&b, &archived);
    assert_eq!(stdout(&shell(&a, &archived, "cat kept")), "archived\n");
    planes.stop(vec![third]);
}

/// A worker sleeps until its sessions are given up; it wakes, is told so, and ends them.
#[test]
fn a_worker_that_was_away_too_long_ends_what_is_not_its_own() {
    let planes = Planes::start("planes-fence");
    let worker = planes.worker();
    let (a, b) = (planes.client(0), planes.client(1));
    let id = create(&a, "{}");
    shell(&a, &id, "sleep 314.273 & sleep 0");
    wait_until("it runs", || processes_with("314.273") == 1);
    worker.signal("STOP");
    wait_until("it is lost", || get(&b, &id)["status"]["cause"] == "lost");
    let before = get(&b, &id);
    assert_eq!(processes_with("314.273"), 1, "it sleeps, and its sandbox does not");
    worker.signal("CONT");
    wait_until("its sandbox is ended", || processes_with("314.273") == 0);
    wait_until("it is back", || planes.ready(1) == 1);
    assert_eq!(get(&b, &id), before);
    let next = create(&b, "{}");
    assert_eq!(number(&python(&a, &next, "40 + 2")), "42");
    // Also where no call ever told it: it has a placement of the session that the store knows nothing of.
    let secret = std::fs::read_to_string(&planes.token).expect("a token");
    let header = format!("Authorization: Bearer {secret}\r\n");
    let at_worker = |path: &str, body: serde_json::Value| {
        let sent = Client::of(&worker).send("POST", path, &header, &body.to_string());
        assert_eq!(sent.expect("an answer").status, 201);
    };
    let worker_id = planes.workers(0)[0]["id"].clone();
    at_worker(
        "/sessions",
        json!({"worker_id": worker_id, "session_id": id, "task_id": "t", "generation": 9, "request": {}}),
    );
    let request = json!({"command": "sleep 314.274"});
    at_worker(
        &format!("/sessions/{id}/steps"),
        json!({"generation": 9, "number": 1, "lease_ms": 600_000, "request": request}),
    );
    wait_until("it runs", || processes_with("314.274") == 1);
    wait_until("it is told that it is not its own", || processes_with("314.274") == 0);
    assert_eq!(number(&python(&a, &next, "40 + 3")), "43");
    assert_eq!(delete(&a, &format!("/v1/sessions/{next}")).status, 204);
    planes.stop(vec![worker]);
}

/// A plane is killed while it reads the files of a session that stands still for that: the session goes on. What it was
/// making ends, and what it was archiving is archived by the other, or ends; nothing stays half done.
#[test]
fn a_plane_that_is_killed_in_the_middle_leaves_nothing_half_done() {
    let mut planes = Planes::start("planes-middle");
    let worker = planes.worker();
    let b = planes.client(1);
    let body = r#"{"limits":{"memory_bytes":536870912,"disk_bytes":268435456}}"#;
    let id = create(&b, body);
    python(&b, &id, "x = 41\nimport os\nopen('large', 'wb').write(os.urandom(100 << 20))");
    for (kill, (verb, body)) in [
        ("fork", json!({"count": 2})),
        ("snapshots", json!({"name": "base"})),
        ("fork", json!({"count": 1})),
        ("pause", json!({"mode": "archive"})),
    ]
    .into_iter()
    .enumerate()
    {
        let (a, path) = (planes.client(0), format!("/v1/sessions/{id}/{verb}"));
        let asked = std::thread::spawn(move || {
            a.send("POST", &path, "", &body.to_string()).map(|answer| answer.status)
        });
        std::thread::sleep(std::time::Duration::from_millis(60 + 40 * kill as u64));
        planes.planes[0].take().expect("a plane").kill();
        println!("{verb}: {:?}", asked.join().expect("a thread"));
        if verb == "pause" {
            let path = format!("/v1/sessions/{id}/resume");
            wait_until("it is archived, or has ended", || {
                let resumed = b.send("POST", &path, "", "").expect("an answer").status;
                resumed == 200 || get(&b, &id)["status"]["state"] != "paused"
            });
            let session = get(&b, &id);
            match session["status"]["state"].as_str() {
                Some("ready") => assert_eq!(stdout(&shell(&b, &id, "wc -c < large")), "104857600\n"),
                _ => assert_eq!(session["status"]["cause"], "lost", "{session}"),
            }
        } else {
            assert_eq!(number(&python(&b, &id, "x + 1")), "42");
        }
        planes.start_plane(0);
    }
    let left = || {
        let list = b.get("/v1/sessions?limit=100").json();
        let all = list["sessions"].as_array().expect("sessions").clone();
        all.into_iter()
            .filter(|session| session["id"] != json!(id) && session["status"]["state"] != "ended")
            .count()
    };
    println!("{} children were made in time", left());
    wait_until("no session is being made for ever", || {
        !b.get("/v1/sessions?limit=100").body.contains("creating")
    });
    planes.stop(vec![worker]);
}
