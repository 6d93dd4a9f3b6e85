//! Signed addresses: what they allow, to whom, and what they do not.

use crate::bed::{server, until};
use serde_json::json;

/// art-01. The control is the link as it was made, before and after every try.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_was_changed_is_refused() {
    let bed = server().await;
    let (id, other) = (
        bed.client.upload("a", "text/plain", b"one").await,
        bed.client.upload("b", "text/plain", b"two").await,
    );
    let link = bed.client.link(&id, &json!({})).await;
    let (path, query) = link.split_once('?').unwrap();
    let fields: Vec<&str> = query.split('&').collect();
    let [expires, size, by, signature] = fields[..] else { panic!("{query}") };
    let later = format!("expires={}", expires[8..].parse::<u64>().unwrap() + 1);
    let changed = [
        format!("{path}?{later}&{size}&{by}&{signature}"),
        format!("{path}?{expires}&size=4&{by}&{signature}"),
        format!("{path}?{expires}&{size}&by=key-other&{signature}"),
        format!("{path}?{expires}&{size}&{by}&signature={}", "0".repeat(64)),
        format!("{path}?{size}&{expires}&{by}&{signature}"),
        format!("{path}?{expires}&{later}&{size}&{by}&{signature}"),
        format!("{path}?{expires}&{size}&{by}&{signature}&{later}"),
        format!("{path}?{expires}&{size}&{by}&{signature}&x=1"),
        format!("{path}?{expires}&{size}&{by}&{signature}&{signature}"),
        format!("{path}?{expires}&{size}&{signature}"),
        format!("{path}?{query}").replace(&id, &other),
        format!("{path}?{query}").replace("/content", "/upload"),
    ];
    for changed in changed {
        assert_eq!(bed.client.send("GET", &link, "", b"").await.body, b"one");
        let method = if changed.contains("/upload") { "PUT" } else { "GET" };
        let reply = bed.client.send(method, &changed, "", b"").await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "denied"), "{changed}");
        assert!(!String::from_utf8_lossy(&reply.body).contains("two"), "{changed}");
    }
    // Whether there is such an artifact is not said to whoever has no good link.
    let (known, unknown) =
        (link.replace(by, "by=x"), link.replace(by, "by=x").replace(&id, "art-aaaaaaaaaaaaaaaa"));
    let (known, unknown) =
        (bed.client.send("GET", &known, "", b"").await, bed.client.send("GET", &unknown, "", b"").await);
    let without_id = |mut value: serde_json::Value| {
        value["error"]["request_id"] = json!(null);
        value
    };
    assert_eq!(without_id(known.json()), without_id(unknown.json()));
}

/// art-02: for another method, after its time, after its maker's key, after the artifact.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_ends_with_its_time_its_key_and_its_artifact() {
    let bed = server().await;
    let id = bed.client.upload("a", "text/plain", b"one").await;
    let link = bed.client.link(&id, &json!({})).await;
    assert_eq!(bed.client.send("GET", &link, "", b"").await.status, 200);
    for method in ["HEAD", "PUT", "POST", "DELETE"] {
        let status = bed.client.send(method, &link, "", b"").await.status;
        assert!(status == 403 || status == 405, "{method}: {status}");
    }
    let head = bed.client.link(&id, &json!({"method": "HEAD"})).await;
    let reply = bed.client.send("HEAD", &head, "", b"").await;
    assert_eq!((reply.status, reply.header("content-length"), reply.body.len()), (200, Some("3"), 0));
    assert_eq!(bed.client.send("GET", &head, "", b"").await.status, 403);

    let short = bed.client.link(&id, &json!({"ttl_seconds": 1})).await;
    until("the link expires", || async { bed.client.send("GET", &short, "", b"").await.status == 403 }).await;
    assert_eq!(bed.client.send("GET", &link, "", b"").await.status, 200);

    let made = bed.client.post("/v1/keys", &json!({"name": "k", "scopes": ["artifacts:read"]})).await.json();
    let secret = made["secret"].as_str().unwrap().to_owned();
    let maker = crate::bed::Client { key: secret, ..bed.client.clone() };
    let theirs = maker.link(&id, &json!({})).await;
    assert_eq!(bed.client.send("GET", &theirs, "", b"").await.status, 200);
    bed.client.delete(&format!("/v1/keys/{}", made["id"].as_str().unwrap())).await;
    assert_eq!(bed.client.send("GET", &theirs, "", b"").await.status, 403);
    assert_eq!(bed.client.send("GET", &link, "", b"").await.status, 200);

    bed.client.delete(&format!("/v1/artifacts/{id}")).await;
    assert_eq!(bed.client.send("GET", &link, "", b"").await.status, 404);
}

/// Whoever was only let in to upload cannot read, nor the other way round, even with the same artifact.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_for_one_direction() {
    let bed = server().await;
    let (id, upload) = bed.client.announce("a", "text/plain", b"one").await;
    let read = upload.replace("/upload", "/content");
    assert_eq!(bed.client.send("GET", &read, "", b"").await.status, 403);
    assert_eq!(bed.client.send("PUT", &upload, "", b"one").await.status, 200);
    assert_eq!(bed.client.post(&format!("/v1/artifacts/{id}/url"), &json!({})).await.code(), "wrong_state");
    assert_eq!(bed.client.get(&format!("/v1/artifacts/{id}/content")).await.code(), "wrong_state");
}
