//! art-05: tenants are apart, however much their names have in common.

use crate::bed::server;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn anothers_artifact_is_as_one_that_is_not_there() {
    let bed = server().await;
    let stranger = bed.stranger("t10").await;
    let id = bed.client.upload("a", "text/plain", b"mine").await;
    let (waiting, _) = bed.client.announce("b", "text/plain", b"more").await;
    let body = json!({"command": ["true"], "files": [{"path": "a", "artifact": id}]});
    let none = "art-aaaaaaaaaaaaaaaa";
    let clean = |mut value: Value, id: &str| {
        value["error"]["request_id"] = json!(null);
        value.to_string().replace(id, "ID")
    };
    for (method, suffix) in [
        ("GET", ""),
        ("GET", "/content"),
        ("HEAD", "/content"),
        ("DELETE", ""),
        ("POST", "/finalize"),
        ("POST", "/url"),
    ] {
        for theirs in [&id, &waiting] {
            let foreign = stranger.keyed(method, &format!("/v1/artifacts/{theirs}{suffix}"), "", b"").await;
            let missing = stranger.keyed(method, &format!("/v1/artifacts/{none}{suffix}"), "", b"").await;
            assert_eq!((foreign.status, missing.status), (404, 404), "{method} {suffix}");
            if method != "HEAD" {
                assert_eq!(clean(foreign.json(), theirs), clean(missing.json(), none), "{method} {suffix}");
            }
        }
    }
    // As an input of a job, too.
    let foreign = stranger.post("/v1/jobs", &body).await;
    let body_of_none = json!({"command": ["true"], "files": [{"path": "a", "artifact": none}]});
    let missing = stranger.post("/v1/jobs", &body_of_none).await;
    assert_eq!((foreign.status, missing.status), (422, 422));
    assert_eq!(foreign.json()["error"]["details"]["field"], "files[0].artifact");
    assert_eq!(clean(foreign.json(), &id), clean(missing.json(), none));
    assert_eq!(stranger.get("/v1/artifacts").await.json()["artifacts"], json!([]));
    // The controls: it is there, and its owner may do all of that.
    assert_eq!(bed.client.post("/v1/jobs", &body).await.status, 202);
    assert_eq!(bed.client.get(&format!("/v1/artifacts/{id}/content")).await.body, b"mine");
}

/// The same bytes of two tenants are two things: neither can tell that the other has them.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_shared_between_tenants() {
    let bed = server().await;
    let stranger = bed.stranger("t10").await;
    let one = bed.client.upload("a", "text/plain", b"the same").await;
    let two = stranger.upload("a", "text/plain", b"the same").await;
    assert_ne!(one, two);
    let files = bed.files();
    assert_eq!(files.len(), 2);
    assert_ne!(std::fs::read(&files[0]).unwrap(), std::fs::read(&files[1]).unwrap());
    assert_eq!(bed.client.delete(&format!("/v1/artifacts/{one}")).await.status, 204);
    assert_eq!(stranger.get(&format!("/v1/artifacts/{two}/content")).await.body, b"the same");
}

/// A key that may submit jobs and not read artifacts does not read them through a job.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_reads_no_more_than_its_submitter() {
    let bed = server().await;
    let id = bed.client.upload("a", "text/plain", b"mine").await;
    let key = async |scopes: Value| {
        let made = bed.client.post("/v1/keys", &json!({"name": "k", "scopes": scopes})).await.json();
        crate::bed::Client { key: made["secret"].as_str().unwrap().to_owned(), ..bed.client.clone() }
    };
    let body = json!({"command": ["true"], "files": [{"path": "a", "artifact": id}]});
    let denied = key(json!(["jobs:write"])).await.post("/v1/jobs", &body).await;
    assert_eq!((denied.status, denied.json()["error"]["details"]["rule"].as_str()), (403, Some("scope")));
    let allowed = key(json!(["jobs:write", "artifacts:read"])).await.post("/v1/jobs", &body).await;
    assert_eq!(allowed.status, 202);
}
