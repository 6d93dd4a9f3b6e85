//! Images, and other walls, on workers in other processes: what they offer is what is sent to them.

use crate::backends::{Daemon, store};
use crate::client::Client;
use crate::docker_sandbox::wait_for_none;
use crate::images::{cli, delete, good, registered};
use crate::load::{id as id_of, state};
use crate::machine::wait_until;
use crate::roles::Apart;
use crate::server::{Folder, program};
use crate::session_backends::{a_container_is_removed_by_somebody, check_whole, request, warm};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const IMAGES: [&str; 2] = ["--set", "backends.images=true"];

/// A worker has sessions and jobs of everybody at once.
const ROOMY: [&str; 4] = ["--slots", "32", "--memory", "64g"];

fn run(client: &Client, request: &Value) -> Value {
    client.post("/v1/jobs?wait_ms=60000", &request.to_string()).json()
}

/// Refused for want of a worker, with the backend named and what turns it on.
fn refused(client: &Client, backend: &str) {
    let job = json!({"command": "true", "backend": backend, "image": "app:1"});
    for (path, body) in [("/v1/jobs", job), ("/v1/sessions", request(backend))] {
        let answer = client.post(path, &body.to_string());
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, &error["code"]), (422, &json!("unsupported")), "{path}: {error}");
        assert_eq!(error["details"]["field"], "backend", "{path}: {error}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(&format!("has {backend};")), "{path}: {message}");
        assert!(message.contains(&format!("worker --backend {backend}")), "{path}: {message}");
    }
}

#[test]
fn jobs_and_sessions_on_images_go_to_the_worker_that_has_them() {
    let apart = Apart::with("apart-oci", &IMAGES);
    let folder = Folder::new("apart-oci-images");
    let images = store(folder.path());
    let empty = folder.path().join("empty").to_string_lossy().into_owned();
    let _plain = apart.worker_with(&["--label", "has=nothing"], &[("COFFERDAM_IMAGES", &empty)]);
    let client = &apart.client;
    refused(client, "oci");
    let options = [&["--backend", "oci", "--label", "has=images"], &ROOMY[..]].concat();
    let walled = apart.worker_with(&options, &[("COFFERDAM_IMAGES", &images)]);
    let listed = client.get("/v1/workers").json();
    assert!(listed.to_string().contains(r#"["native","oci"]"#), "{listed}");
    let look = "cat /etc/motd; id -u";
    let job = run(client, &json!({"command": look, "backend": "oci", "image": "app:1"}));
    assert_eq!(job["result"]["stdout"], "from the store\n1000\n", "{job}");
    assert_eq!(job["result"]["isolation"]["backend"], "oci", "{job}");
    // Every worker has the native backend; whether it has the image is a matter of its store.
    let native = |label: &str| {
        let labels = json!({"has": label});
        run(client, &json!({"command": look, "image": "app:1", "worker_labels": labels}))
    };
    let (there, missing) = (native("images"), native("nothing"));
    assert_eq!(there["result"]["stdout"], "from the store\n1000\n", "{there}");
    assert_eq!(
        (&missing["status"]["state"], &missing["status"]["reason"]),
        (&json!("errored"), &json!("image_not_found")),
        "{missing}"
    );
    let session = json!({"image": "app:1", "worker_labels": {"has": "nothing"}});
    let answer = client.post("/v1/sessions", &session.to_string());
    assert_eq!(
        (answer.status, &answer.json()["error"]["details"]["field"]),
        (422, &json!("image")),
        "{answer:?}"
    );
    check_whole(client, "oci");
    refused(client, "docker");
    // Nobody has it, and no profile is anything before one is registered for it.
    let register =
        client.post("/v1/images", &json!({"name": "none:1", "profiles": ["base-tools"]}).to_string());
    assert_eq!(
        (register.status, &register.json()["error"]["details"]["field"]),
        (422, &json!("name")),
        "{register:?}"
    );
    let profile = client.post("/v1/jobs", &json!({"command": "true", "profile": "base-tools"}).to_string());
    assert_eq!(
        (profile.status, &profile.json()["error"]["details"]["field"]),
        (422, &json!("profile")),
        "{profile:?}"
    );
    // With the worker goes what it offered.
    assert_eq!(walled.stop(), Some(0));
    let has_oci = |worker: &Value| worker["state"] != "out" && worker["backends"].to_string().contains("oci");
    let is_ready =
        || client.get("/v1/workers").json()["workers"].as_array().expect("workers").iter().any(has_oci);
    wait_until("the worker is out", || !is_ready());
    refused(client, "oci");
}

#[test]
fn a_profile_goes_to_the_worker_that_has_its_image() {
    let apart = Apart::with("apart-profiles", &IMAGES);
    let folder = Folder::new("apart-profile-images");
    let digest = good(folder.path(), "tools:1", "of the worker\n");
    let client = &apart.client;
    let tools = json!({"name": "tools:1", "profiles": ["base-tools"]});
    let nobody = client.post("/v1/images", &tools.to_string());
    assert_eq!(nobody.status, 503, "{nobody:?}");
    let store = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let _plain = apart.worker_with(&["--label", "has=nothing"], &[("COFFERDAM_IMAGES", &store("empty"))]);
    let lacking = client.post("/v1/images", &tools.to_string());
    assert_eq!(
        (lacking.status, &lacking.json()["error"]["details"]["field"]),
        (422, &json!("name")),
        "{lacking:?}"
    );
    let having = apart.worker_with(&["--label", "has=images"], &[("COFFERDAM_IMAGES", &store("images"))]);
    let id = registered(client, &tools);
    let shown = client.get(&format!("/v1/images/{id}")).json();
    assert_eq!(shown["digest"], json!(digest), "{shown}");
    let check = client.post(&format!("/v1/images/{id}/check"), "");
    assert_eq!((check.status, &check.json()["passed"]), (200, &json!(true)), "{check:?}");

    // Several, since by its emptiness alone the other worker would be given half of them.
    let motd = json!({"command": ["cat", "/etc/motd"], "profile": "base-tools"});
    let jobs: Vec<_> = (0..8).map(|_| id_of(&client.post("/v1/jobs", &motd.to_string()).json())).collect();
    for job in jobs {
        wait_until("it has ended", || !["accepted", "queued", "running"].contains(&&*state(client, &job)));
        let done = client.get(&format!("/v1/jobs/{job}")).json();
        assert_eq!(done["result"]["stdout"], "of the worker\n", "{done}");
    }
    let session = client.post("/v1/sessions", &json!({"profile": "base-tools"}).to_string());
    assert_eq!(session.status, 201, "{session:?}");
    let wrong = json!({"command": "true", "profile": "base-tools", "worker_labels": {"has": "nothing"}});
    let wrong = client.post("/v1/jobs", &wrong.to_string());
    assert_eq!(
        (wrong.status, &wrong.json()["error"]["details"]["field"]),
        (422, &json!("image")),
        "{wrong:?}"
    );

    // What is registered stays on the worker, whatever becomes of its name there.
    let removed = cli(folder.path(), &["image", "rm", "tools:1"].map(str::to_owned));
    assert!(removed.contains("stays"), "{removed}");
    assert_eq!(run(client, &motd)["result"]["stdout"], "of the worker\n");

    assert_eq!(having.stop(), Some(0));
    let refused = || client.post("/v1/jobs", &motd.to_string()).status == 422;
    wait_until("nobody has it any more", refused);
    let check = client.post(&format!("/v1/images/{id}/check"), "");
    assert_eq!(check.status, 409, "{check:?}");
    assert_eq!(delete(client, &id), 204);
}

#[test]
fn containers_of_a_worker_elsewhere_are_whole_and_lost_with_their_sandboxes() {
    let apart = Apart::with("apart-docker", &IMAGES);
    let folder = Folder::new("apart-docker-images");
    let images = store(folder.path());
    let mut daemon = Daemon::start(folder.path());
    let socket = folder.path().join("socket").to_string_lossy().into_owned();
    let _plain = apart.worker(&[]);
    let options =
        [&["--backend", "docker", "--docker-socket", &socket, "--waiting", "0"], &ROOMY[..]].concat();
    let _walled = apart.worker_with(&options, &[("COFFERDAM_IMAGES", &images)]);
    let client = &apart.client;
    warm(client);
    check_whole(client, "docker");
    wait_for_none(folder.path());
    a_container_is_removed_by_somebody(client, folder.path());
    // A worker does not go on offering what it cannot use; the rest of it does.
    daemon.kill();
    let offers = || client.get("/v1/workers").body.contains("\"docker\"");
    wait_until("nobody offers docker", || !offers());
    refused(client, "docker");
    assert_eq!(run(client, &json!({"command": "echo on"}))["result"]["stdout"], "on\n");
}

/// What cannot be offered is told at the start, and nobody registers.
#[test]
fn a_worker_that_lacks_what_it_is_to_offer_does_not_start() {
    let apart = Apart::with("apart-missing", &IMAGES);
    let token = apart.folder.path().join("service.token");
    let start = |words: &[&str]| {
        let mut worker = Command::new(program());
        worker.args(["worker", "--listen", "127.0.0.1:0", "--control", "http://127.0.0.1:1"]);
        let output = worker.arg("--service-token-file").arg(&token).args(words).output().expect("it ends");
        assert_eq!(output.status.code(), Some(125), "{words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let nowhere = apart.folder.path().join("nowhere").to_string_lossy().into_owned();
    assert!(Path::new(&nowhere).parent().is_some_and(Path::exists));
    for (words, expected) in [
        (&["--backend", "lxc"][..], "--backend: \"lxc\""),
        (&["--backend", "oci", "--oci-runtime", "no-such-runtime"], "no-such-runtime"),
        (&["--backend", "docker", "--docker-socket", &nowhere], &nowhere),
        (&["--docker-socket", &nowhere], "--backend docker"),
    ] {
        let said = start(words);
        assert!(said.contains(expected), "{words:?}: {said}");
    }
}
