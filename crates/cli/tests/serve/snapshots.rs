//! Sessions from the files of others: snapshots and forks.

use crate::client::Client;
use crate::machine::{OwnProgram, wait_until};
use crate::pausing::{ROOMY, pause, post, stdout, writings};
use crate::server::{Folder, Server};
use crate::sessions::{create, delete, get, python, shell};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) fn snapshot(client: &Client, session: &str, name: &str) -> Value {
    let answer = post(client, session, "snapshots", &json!({"name": name}));
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

pub(crate) fn fork(client: &Client, session: &str, count: u64) -> Vec<String> {
    let answer = post(client, session, "fork", &json!({"count": count}));
    assert_eq!(answer.status, 201, "{answer:?}");
    let forks = answer.json();
    assert!(forks["kept"].to_string().contains("files"), "{forks}");
    assert!(forks["not_kept"].to_string().contains("interpreters"), "{forks}");
    let id = |session: &Value| session["id"].as_str().expect("an id").to_owned();
    forks["sessions"].as_array().expect("sessions").iter().map(id).collect()
}

fn other_tenant(client: &Client) -> Client {
    let tenant = client.post("/v1/tenants", r#"{"name":"other"}"#).json();
    let body = json!({"name": "k", "scopes": ["*"], "tenant": tenant["id"]});
    let key = client.post("/v1/keys", &body.to_string()).json();
    client.with_key(key["secret"].as_str().expect("a secret"))
}

#[test]
fn sessions_are_made_from_a_snapshot() {
    let folder = Folder::new("snapshots");
    let server = Server::start(folder.path(), &ROOMY);
    let client = Client::of(&server);
    let base = create(&client, "{}");
    shell(&client, &base, "mkdir lib && echo one > lib/file && ln -s lib/file link");
    python(&client, &base, "x = 1");
    let made = snapshot(&client, &base, "with-tools");
    assert_eq!((&made["name"], &made["session"]), (&json!("with-tools"), &json!(base)), "{made}");
    // It went on, and what it does now is not in the snapshot.
    let known = python(&client, &base, "x");
    assert_eq!(known["result"]["results"][0]["data"]["text/plain"], "1", "{known}");
    shell(&client, &base, "echo two > lib/file");
    for wanted in ["with-tools", made["id"].as_str().expect("an id")] {
        let id = create(&client, &json!({"snapshot": wanted}).to_string());
        assert_eq!(stdout(&shell(&client, &id, "cat link; echo three > lib/file")), "one\n");
    }
    let taken = post(&client, &base, "snapshots", &json!({"name": "with-tools"}));
    assert_eq!((taken.status, taken.json()["error"]["code"].clone()), (409, json!("conflict")), "{taken:?}");
    for name in ["", "A", "-a", "snp-a", "a b", "a/b"] {
        let wrong = post(&client, &base, "snapshots", &json!({"name": name}));
        assert_eq!(wrong.status, 422, "{name}: {wrong:?}");
    }
    // Of one that is archived as well.
    pause(&client, &base, "archive");
    snapshot(&client, &base, "later");
    let id = create(&client, r#"{"snapshot":"later"}"#);
    assert_eq!(stdout(&shell(&client, &id, "cat lib/file")), "two\n");
    let listed = client.get("/v1/snapshots?limit=1").json();
    assert_eq!(listed["snapshots"][0]["name"], "later", "{listed}");
    let cursor = listed["next_cursor"].as_str().expect("there is one more");
    let rest = client.get(&format!("/v1/snapshots?cursor={cursor}")).json();
    assert_eq!(rest["snapshots"][0]["name"], "with-tools", "{rest}");
    // It is its tenant's.
    let foreign = other_tenant(&client);
    assert_eq!(foreign.get("/v1/snapshots").json()["snapshots"], json!([]));
    for snapshot in ["with-tools", "nothing-there", made["id"].as_str().expect("an id")] {
        let refused = foreign.post("/v1/sessions", &json!({"snapshot": snapshot}).to_string());
        assert_eq!(refused.status, 422, "{refused:?}");
        assert!(refused.body.contains("there is no such snapshot"), "{refused:?}");
    }
    assert_eq!(delete(&foreign, "/v1/snapshots/with-tools").status, 404);
    // Deleted, it is gone with its bytes; what was made from it stays.
    assert_eq!(delete(&client, "/v1/snapshots/with-tools").status, 204);
    assert_eq!(delete(&client, "/v1/snapshots/with-tools").status, 404);
    assert_eq!(client.post("/v1/sessions", r#"{"snapshot":"with-tools"}"#).status, 422);
    wait_until("its bytes go", || writings(folder.path()).len() == 2);
    assert_eq!(server.stop(), Some(0));
    assert_eq!(writings(folder.path()).len(), 2, "one that is archived, and one that is a snapshot");
}

#[test]
fn children_of_a_session_go_their_own_ways() {
    let folder = Folder::new("forks");
    let server = Server::start(folder.path(), &["--slots", "4", "--memory", "64g"]);
    let client = Client::of(&server);
    let parent = create(&client, r#"{"env":{"COLOUR":"green"},"ttl_seconds":600}"#);
    python(&client, &parent, "x = 1; open('file', 'w').write('shared')");
    let children = fork(&client, &parent, 2);
    for (number, child) in children.iter().enumerate() {
        let seen = shell(
            &client,
            child,
            &format!("cat file; echo \" $COLOUR $CYNODE_JOB_ID\"; echo {number} > file"),
        );
        assert_eq!(stdout(&seen), format!("shared green {child}\n"), "{seen}");
    }
    assert_eq!(stdout(&shell(&client, &parent, "cat file")), "shared");
    assert_eq!(stdout(&shell(&client, &children[0], "cat file")), "0\n");
    let known = python(&client, &parent, "x");
    assert_eq!(known["result"]["results"][0]["data"]["text/plain"], "1", "{known}");
    // There is place for one more: of two, none is made.
    let refused = post(&client, &parent, "fork", &json!({"count": 2}));
    assert_eq!(refused.status, 503, "{refused:?}");
    let live = client.get("/v1/sessions?state=ready").json();
    assert_eq!(live["sessions"].as_array().map(Vec::len), Some(3), "{live}");
    for count in [0, 17] {
        assert_eq!(post(&client, &parent, "fork", &json!({"count": count})).status, 422);
    }
    assert_eq!(stdout(&shell(&client, &parent, "echo goes on")), "goes on\n", "it is not left frozen");
    // From a frozen one, which stays so; and not from a dead one.
    pause(&client, &parent, "freeze");
    let child = fork(&client, &parent, 1).remove(0);
    assert_eq!(stdout(&shell(&client, &child, "cat file")), "shared");
    assert_eq!(get(&client, &parent)["pause"]["mode"], "freeze");
    assert_eq!(delete(&client, &format!("/v1/sessions/{parent}")).status, 204);
    let dead = post(&client, &parent, "fork", &json!({"count": 1}));
    assert_eq!((dead.status, dead.json()["error"]["code"].clone()), (409, json!("wrong_state")), "{dead:?}");
    let noted = client.get("/v1/audit?limit=500").body;
    assert!(noted.contains("session.forked"), "{noted}");
    assert_eq!(server.stop(), Some(0));
}

fn kills() -> usize {
    std::env::var("COFFERDAM_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

#[test]
fn a_kill_in_the_middle_of_a_fork_or_a_snapshot_leaves_nothing_half() {
    let (folder, program) = (Folder::new("fork-kills"), OwnProgram::new());
    let start = || Server::start_role(&program.path(), "serve", folder.path(), &ROOMY);
    for kill in 0..kills() {
        let server = start();
        let client = Client::of(&server);
        let parent = create(&client, "{}");
        shell(&client, &parent, "head -c 8000000 /dev/urandom > large");
        let path = |verb: &str| format!("/v1/sessions/{parent}/{verb}");
        let name = format!("base-{kill}");
        let asked = [
            client.open("POST", &path("fork"), "", r#"{"count":3}"#).expect("a request"),
            client
                .open("POST", &path("snapshots"), "", &json!({"name": name}).to_string())
                .expect("a request"),
        ];
        std::thread::sleep(Duration::from_millis(5 + (kill as u64 * 41) % 150));
        server.kill();
        drop(asked);
        let server = start();
        let client = Client::of(&server);
        let live = client.get("/v1/sessions?state=ready").json();
        assert_eq!(live["sessions"], json!([]), "all were of a worker that is gone");
        let snapshots = client.get("/v1/snapshots").json();
        let listed = snapshots["snapshots"].as_array().expect("snapshots").len();
        wait_until("what was not finished goes", || writings(folder.path()).len() == listed);
        if snapshots.to_string().contains(&name) {
            let id = create(&client, &json!({"snapshot": name}).to_string());
            assert_eq!(stdout(&shell(&client, &id, "wc -c < large")), "8000000\n");
        }
        assert_eq!(server.stop(), Some(0));
    }
    crate::invariants::check(folder.path(), &[]);
    program.wait_until_gone();
}
