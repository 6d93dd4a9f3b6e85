//! Images that are registered with the service: what may be, who sees them, and how a job comes to one by a profile.

use crate::client::{Answer, Client};
use crate::server::{Folder, Server, program};
use base64::Engine;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

/// What runs every tool of the contract.
const BUSYBOX: &str = "/bin/busybox";

/// The bundle that an image has to have.
const BUNDLE: &str = "etc/ssl/certs/ca-certificates.crt";

/// Imports a root around a static busybox under a name, and returns its digest.
fn import(folder: &Path, name: &str, files: &[(&str, &str)]) -> String {
    let root = folder.join("root");
    std::fs::create_dir_all(root.join("bin")).expect("a folder");
    std::fs::copy(BUSYBOX, root.join("bin/busybox")).expect("busybox-static is installed");
    for tool in ["sh", "cat"] {
        symlink("busybox", root.join("bin").join(tool)).expect("a link");
    }
    for (path, content) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, content).expect("a file");
    }
    let import = ["image", "import", &root.to_string_lossy(), "--name", name].map(str::to_owned);
    cli(folder, &import);
    std::fs::remove_dir_all(&root).expect("the root to be removed");
    let shown: Value =
        serde_json::from_str(&cli(folder, &["image", "show", name, "--json"].map(str::to_owned)))
            .expect("JSON");
    shown["id"].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned()
}

pub(crate) fn cli(folder: &Path, words: &[String]) -> String {
    let mut command = Command::new(program());
    command.args(words).env("COFFERDAM_IMAGES", folder.join("images")).stderr(Stdio::inherit());
    let output = command.output().expect("the program");
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// An image that passes `base-tools`, and says who it is.
pub(crate) fn good(folder: &Path, name: &str, motd: &str) -> String {
    let bundle = std::fs::read_to_string(format!("/{BUNDLE}")).expect("ca-certificates is installed");
    import(folder, name, &[(BUNDLE, &bundle), ("etc/motd", motd)])
}

pub(crate) fn start(folder: &Path) -> Server {
    let images = folder.join("images").to_string_lossy().into_owned();
    let options = ["--set", "backends.images=true"];
    Server::start_in(&folder.join("data"), &options, &[("COFFERDAM_IMAGES", &images)])
}

fn register(client: &Client, body: &Value) -> Answer {
    client.post("/v1/images", &body.to_string())
}

pub(crate) fn delete(client: &Client, id: &str) -> u16 {
    client.send("DELETE", &format!("/v1/images/{id}"), "", "").expect("an answer").status
}

/// The id of an image that could be registered.
pub(crate) fn registered(client: &Client, body: &Value) -> String {
    let made = register(client, body);
    assert_eq!(made.status, 201, "{body}: {made:?}");
    made.json()["id"].as_str().expect("an id").to_owned()
}

fn names(client: &Client, query: &str) -> Vec<String> {
    let list = client.get(&format!("/v1/images{query}")).json();
    let images = list["images"].as_array().unwrap_or_else(|| panic!("{list}"));
    images.iter().map(|image| image["name"].as_str().expect("a name").to_owned()).collect()
}

/// A tenant of its own, with a key for everything in it.
fn tenant(operator: &Client, name: &str) -> Client {
    let made = operator.post("/v1/tenants", &json!({"name": name}).to_string()).json();
    let key = json!({"name": "all", "scopes": ["*"], "tenant": made["id"]}).to_string();
    let key = operator.post("/v1/keys", &key).json();
    operator.with_key(key["secret"].as_str().unwrap_or_else(|| panic!("{key}")))
}

fn run(client: &Client, request: &Value) -> Value {
    client.post("/v1/jobs?wait_ms=60000", &request.to_string()).json()
}

#[test]
fn an_image_is_registered_listed_checked_and_taken_back() {
    let folder = Folder::new("images");
    let digest = good(folder.path(), "app:1", "one\n");
    let server = start(folder.path());
    let client = Client::of(&server);
    let body = json!({"name": "app:1", "profiles": ["base-tools"], "capabilities": ["greeting"]});
    let key = "Idempotency-Key: once\r\n";
    let first = client.send("POST", "/v1/images", key, &body.to_string()).expect("an answer");
    assert_eq!(first.status, 201, "{first:?}");
    let image = first.json();
    assert_eq!((&image["name"], &image["digest"]), (&json!("app:1"), &json!(digest)), "{image}");
    assert_eq!((&image["visibility"], &image["has_credentials"]), (&json!("tenant"), &json!(false)));
    let capabilities = json!(["archives", "certificates", "greeting", "shell"]);
    assert_eq!((&image["profiles"], &image["capabilities"]), (&json!(["base-tools"]), &capabilities));
    // The same request again is the same image, and another one under that name is none.
    let again = client.send("POST", "/v1/images", key, &body.to_string()).expect("an answer");
    assert_eq!((again.status, again.json()), (201, image.clone()));
    let other = json!({"name": "app:2", "profiles": ["base-tools"]}).to_string();
    assert_eq!(client.send("POST", "/v1/images", key, &other).expect("an answer").status, 409);
    let taken = register(&client, &body);
    assert_eq!((taken.status, &taken.json()["error"]["code"]), (409, &json!("conflict")), "{taken:?}");
    let id = image["id"].as_str().expect("an id");
    assert_eq!(client.get(&format!("/v1/images/{id}")).json(), image);
    let pinned = json!({"name": "pinned:1", "digest": digest, "profiles": ["base-tools"]});
    registered(&client, &pinned);
    assert_eq!(names(&client, ""), ["pinned:1", "app:1"]);
    assert_eq!(names(&client, "?profile=base-tools&limit=1"), ["pinned:1"]);
    let cursor =
        client.get("/v1/images?limit=1").json()["next_cursor"].as_str().expect("a cursor").to_owned();
    assert_eq!(names(&client, &format!("?limit=1&cursor={cursor}")), ["app:1"]);
    assert_eq!(names(&client, "?profile=python-tools"), Vec::<String>::new());
    let checked = client.post(&format!("/v1/images/{id}/check"), "");
    let table = checked.json();
    assert_eq!((checked.status, &table["passed"], &table["digest"]), (200, &json!(true), &json!(digest)));
    let rows = table["profiles"][0]["checks"].as_array().unwrap_or_else(|| panic!("{table}"));
    assert!(rows.iter().any(|row| row["name"] == "unzip" && row["state"] == "ok"), "{table}");
    // Whoever removes its name does not take it away: it stays for as long as it is registered.
    let said = cli(folder.path(), &["image", "rm", "app:1"].map(str::to_owned));
    assert!(said.contains("a service has registered it"), "{said}");
    assert_eq!(client.post(&format!("/v1/images/{id}/check"), "").status, 200);
    let job = json!({"command": "cat /etc/motd", "profile": "base-tools"}).to_string();
    let ran = client.post("/v1/jobs?wait_ms=60000", &job).json();
    assert_eq!(ran["status"]["state"], "succeeded", "{ran}");
    assert_eq!(delete(&client, id), 204);
    // What is registered by another name is kept by that, and nothing is kept by none.
    good(folder.path(), "other:1", "another\n");
    assert_eq!(names(&client, ""), ["pinned:1"]);
    let kept = client.get("/v1/images").json()["images"][0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(client.post(&format!("/v1/images/{kept}/check"), "").status, 200);
    // What is not in the store any more cannot be checked, and is still in the list.
    std::fs::remove_dir_all(folder.path().join("images/pins")).expect("pins");
    good(folder.path(), "third:1", "third\n");
    let gone = client.post(&format!("/v1/images/{kept}/check"), "");
    assert_eq!((gone.status, gone.body.contains(&digest)), (409, true), "{gone:?}");
    assert_eq!(delete(&client, &kept), 204);
    assert_eq!((delete(&client, id), client.get(&format!("/v1/images/{id}")).status), (404, 404));
    let audit = client.get("/v1/audit?limit=500").json();
    let entries = audit["entries"].as_array().unwrap_or_else(|| panic!("{audit}"));
    let kinds = entries.iter().filter(|entry| entry["resource"] == id).map(|entry| entry["kind"].clone());
    let mut kinds: Vec<_> = kinds.collect();
    kinds.sort_by_key(Value::to_string);
    kinds.dedup();
    assert_eq!(kinds, ["image.checked", "image.registered", "image.unregistered"]);
}

#[test]
fn what_fails_its_check_or_has_credentials_is_refused() {
    let folder = Folder::new("images-refused");
    let bare = import(folder.path(), "bare:1", &[("etc/motd", "")]);
    let bundle = std::fs::read_to_string(format!("/{BUNDLE}")).expect("ca-certificates is installed");
    let login = "machine a login b password hunter2\n";
    import(folder.path(), "leaky:1", &[(BUNDLE, &bundle), ("root/.netrc", login)]);
    let server = start(folder.path());
    let client = Client::of(&server);
    let refused = |body: Value, field: &str, word: &str| {
        let answer = register(&client, &body);
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, &error["code"]), (422, &json!("invalid")), "{body}: {answer:?}");
        assert_eq!(error["details"]["field"], field, "{body}: {error}");
        assert!(error["remediation"].as_str().is_some_and(|fix| fix.contains(word)), "{body}: {error}");
        assert!(!answer.body.contains("hunter2") && !answer.body.contains("/images"), "{answer:?}");
        error
    };
    let base = json!(["base-tools"]);
    let failed = refused(json!({"name": "bare:1", "profiles": base}), "profiles", "certificates");
    let rows = failed["details"]["check"]["profiles"][0]["checks"].as_array().expect("a table");
    assert!(rows.iter().any(|row| row["name"] == "certificates" && row["state"] == "failed"), "{failed}");
    refused(json!({"name": "bare:1", "digest": bare, "profiles": base}), "profiles", "certificates");
    let leaky = json!({"name": "leaky:1", "profiles": base});
    let found = refused(leaky.clone(), "allow_credentials", "allow_credentials");
    assert_eq!(found["details"]["check"]["credentials"][0]["place"], "/root/.netrc", "{found}");
    // One that passes one profile is not registered for another.
    let both =
        json!({"name": "leaky:1", "profiles": ["base-tools", "python-tools"], "allow_credentials": true});
    refused(both, "profiles", "pip");
    refused(json!({"name": "nowhere:1", "profiles": base}), "name", "no such image");
    let nobodys = format!("sha256:{}", "0".repeat(64));
    refused(json!({"name": "a:1", "digest": nobodys, "profiles": base}), "digest", "no such image");
    refused(json!({"name": "a:1", "digest": "sha256:00", "profiles": base}), "digest", "");
    refused(json!({"name": "../a", "profiles": base}), "name", "");
    refused(json!({"name": "leaky:1", "profiles": ["cobol-tools"]}), "profiles", "python-tools");
    refused(json!({"name": "leaky:1", "profiles": []}), "profiles", "");
    refused(json!({"name": "leaky:1", "profiles": ["a b"]}), "profiles[0]", "");
    assert_eq!(names(&client, ""), Vec::<String>::new());
    let mut allowed = leaky;
    allowed["allow_credentials"] = json!(true);
    let id = registered(&client, &allowed);
    assert_eq!(client.get(&format!("/v1/images/{id}")).json()["has_credentials"], true);
    let audit = client.get("/v1/audit?limit=500").body;
    assert!(audit.contains("credentials_allowed") && audit.contains("/root/.netrc"), "{audit}");
    assert!(!audit.contains("hunter2"), "{audit}");
}

#[test]
fn a_tenant_learns_nothing_of_anothers_images() {
    let folder = Folder::new("images-tenants");
    good(folder.path(), "app:1", "one\n");
    let server = start(folder.path());
    let operator = Client::of(&server);
    let (alice, eve) = (tenant(&operator, "alice"), tenant(&operator, "eve"));
    let body = |name: &str| json!({"name": name, "digest": null, "profiles": ["base-tools"]});
    let id = registered(&alice, &body("app:1"));
    let nobody = "img-aaaaaaaaaaaaaaaa";
    for (method, end) in [("GET", ""), ("DELETE", ""), ("POST", "/check")] {
        let ask = |id: &str| {
            let answer = eve.send(method, &format!("/v1/images/{id}{end}"), "", "").expect("an answer");
            let mut error = answer.json()["error"].clone();
            error["request_id"] = Value::Null;
            (answer.status, error)
        };
        assert_eq!(ask(&id).0, 404, "{method}{end}");
        assert_eq!(ask(&id), ask(nobody), "{method}{end}");
    }
    assert_eq!(names(&eve, ""), Vec::<String>::new());
    let refused = eve.post("/v1/jobs", r#"{"command":"true","profile":"base-tools"}"#);
    assert!(refused.status == 422 && !refused.body.contains("there are base-tools"), "{refused:?}");
    // A name that another has is free.
    registered(&eve, &body("app:1"));
    // What all see is the operator's.
    let mut global = body("app:1");
    global["visibility"] = json!("global");
    let denied = register(&eve, &global);
    assert_eq!((denied.status, &denied.json()["error"]["details"]["rule"]), (403, &json!("operator")));
    let all = registered(&operator, &global);
    assert_eq!(names(&alice, "").len(), 2);
    let seen = eve.get(&format!("/v1/images/{all}")).json();
    assert_eq!((&seen["visibility"], &seen["created_by"]), (&json!("global"), &Value::Null), "{seen}");
    assert_eq!((delete(&eve, &all), delete(&eve, &id)), (403, 404));
    assert_eq!((delete(&operator, &id), delete(&operator, &all), delete(&alice, &id)), (404, 204, 204));
}

#[test]
fn a_job_runs_on_the_newest_image_of_its_profile() {
    let folder = Folder::new("images-profiles");
    let first = good(folder.path(), "app:1", "one\n");
    let second = good(folder.path(), "app:2", "two\n");
    let server = start(folder.path());
    let operator = Client::of(&server);
    let (alice, eve) = (tenant(&operator, "alice"), tenant(&operator, "eve"));
    let job = json!({"command": "cat /etc/motd", "profile": "base-tools"});
    let none = alice.post("/v1/jobs", &job.to_string());
    let error = none.json()["error"].clone();
    assert_eq!((none.status, &error["details"]["field"]), (422, &json!("profile")), "{none:?}");
    assert!(none.body.contains("POST /v1/images"), "{none:?}");
    let base = json!(["base-tools"]);
    registered(&operator, &json!({"name": "app:1", "profiles": base, "visibility": "global"}));
    assert_eq!(run(&eve, &job)["result"]["stdout"], "one\n");
    let own = registered(&alice, &json!({"name": "app:2", "profiles": base}));
    let ran = run(&alice, &job);
    assert_eq!(ran["result"]["stdout"], "two\n", "{ran}");
    let receipt = alice.get(&format!("/v1/jobs/{}/receipt", ran["id"].as_str().expect("an id"))).json();
    let payload = receipt["payload"].as_str().unwrap_or_else(|| panic!("{receipt}"));
    let payload = base64::engine::general_purpose::STANDARD.decode(payload).expect("base64");
    let statement: Value = serde_json::from_slice(&payload).expect("JSON");
    let expected = json!({"name": "app:2", "sha256": second.trim_start_matches("sha256:")});
    assert!(statement.to_string().contains(&expected.to_string()), "{statement}");
    assert_eq!(run(&eve, &job)["result"]["stdout"], "one\n", "another's is nobody else's");
    let audit = alice.get("/v1/audit?limit=500").body;
    assert!(audit.contains(&format!("app:2@{second}")) && !audit.contains(&first), "{audit}");
    assert_eq!(delete(&alice, &own), 204);
    assert_eq!(run(&alice, &job)["result"]["stdout"], "one\n");
    let unknown = alice.post("/v1/jobs", &json!({"command": "true", "profile": "python-tools"}).to_string());
    assert!(unknown.status == 422 && unknown.body.contains("there are base-tools"), "{unknown:?}");
    // A job that names an image is as it was.
    let named = run(&alice, &json!({"command": "cat /etc/motd", "image": "app:2"}));
    assert_eq!(named["result"]["stdout"], "two\n", "{named}");
    let both = json!({"command": "true", "image": "app:2", "profile": "base-tools"}).to_string();
    assert_eq!(alice.post("/v1/jobs", &both).status, 422);
    // A name that means something else in the store by now is not what was registered, which is kept.
    good(folder.path(), "app:1", "changed\n");
    let changed = run(&eve, &job);
    assert_eq!(changed["result"]["stdout"], "one\n", "{changed}");
}

#[test]
fn without_images_none_is_registered() {
    let folder = Folder::new("images-off");
    let server = Server::start(&folder.path().join("data"), &[]);
    let client = Client::of(&server);
    let answer = register(&client, &json!({"name": "app:1", "profiles": ["base-tools"]}));
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (422, &json!("unsupported")), "{answer:?}");
    assert!(answer.body.contains("backends.images"), "{answer:?}");
    assert_eq!(names(&client, ""), Vec::<String>::new());
}

#[test]
fn the_commands_register_list_and_take_back() {
    let folder = Folder::new("images-commands");
    let digest = good(folder.path(), "app:1", "one\n");
    let server = start(folder.path());
    let told = |words: &[&str]| {
        let mut command = Command::new(program());
        command.arg("image").args(words).env("COFFERDAM_URL", format!("http://{}", server.address));
        let output = command.env("COFFERDAM_API_KEY", &server.key).output().expect("the program");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let words = ["register", "app:1", "--profile", "base-tools", "--capability", "greeting", "--global"];
    let (code, id, _) = told(&words);
    assert!(code == Some(0) && id.starts_with("img-"), "{id}");
    let (code, listed, _) = told(&["list", "--remote"]);
    assert!(code == Some(0) && listed.contains(id.trim()) && listed.contains("app:1"), "{listed}");
    let (_, listed, _) = told(&["list", "--remote", "--profile", "base-tools", "--json"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(
        (&listed["images"][0]["digest"], &listed["images"][0]["visibility"]),
        (&json!(digest), &json!("global"))
    );
    let (code, _, said) = told(&["register", "app:2", "--digest", &digest, "--profile", "python-tools"]);
    assert!(code == Some(125) && said.contains("pip"), "{code:?} {said}");
    // What would be passed over is refused.
    assert_eq!(told(&["list", "--profile", "base-tools"]).0, Some(125));
    assert_eq!(told(&["unregister", id.trim()]).1, id);
    assert!(!told(&["list", "--remote"]).1.contains("img-"));
}
