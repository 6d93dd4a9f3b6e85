//! From an announcement to the last byte gone, in a folder and in a bucket.

use crate::bed::{Bed, server, server_on_s3, sha256, until};
use serde_json::json;

async fn the_whole_life(bed: Bed) {
    let client = &bed.client;
    let bytes: Vec<u8> = (0..10_000_000u32).map(|i| ((i * 31) >> 3) as u8).collect();
    let id = client.upload("numbers.bin", "application/x-numbers", &bytes).await;
    let record = client.get(&format!("/v1/artifacts/{id}")).await.json();
    assert_eq!(
        (record["name"].as_str(), record["size_bytes"].as_u64(), record["sha256"].as_str()),
        (Some("numbers.bin"), Some(10_000_000), Some(sha256(&bytes).as_str()))
    );
    let listed = client.get("/v1/artifacts").await.json();
    assert_eq!(listed["artifacts"][0]["id"].as_str(), Some(id.as_str()));
    let content = client.get(&format!("/v1/artifacts/{id}/content")).await;
    assert_eq!(content.status, 200);
    assert!(content.body == bytes, "{} bytes came", content.body.len());
    let link = client.link(&id, &json!({"ttl_seconds": 60})).await;
    let content = client.send("GET", &link, "Range: bytes=9000000-9000009\r\n", b"").await;
    assert_eq!((content.status, &content.body[..]), (206, &bytes[9_000_000..9_000_010]));
    assert_eq!(client.delete(&format!("/v1/artifacts/{id}")).await.status, 204);
    assert_eq!(client.get(&format!("/v1/artifacts/{id}")).await.status, 404);
    assert_eq!(client.send("GET", &link, "", b"").await.status, 404);
    until("its record is gone as well", || async {
        bed.store.deleting_artifacts(1).await.unwrap().is_empty()
    })
    .await;
    assert_eq!(bed.files(), [""; 0].map(std::path::PathBuf::from));
    let audit = client.get("/v1/audit").await.json();
    let entries = audit["entries"].as_array().cloned().unwrap_or_default();
    let about = entries.iter().filter(|entry| entry["resource"].as_str() == Some(&id));
    let kinds: Vec<_> = about.map(|entry| entry["kind"].as_str().unwrap().to_owned()).collect();
    let expected =
        ["artifact.created", "artifact.ready", "artifact.read", "artifact.read", "artifact.deleted"];
    assert_eq!(kinds, expected, "{audit}");
    assert!(!audit.to_string().contains("signature"), "no signed address is noted");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_life_in_a_folder() {
    the_whole_life(server().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_life_in_a_bucket() {
    the_whole_life(server_on_s3().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_an_announcement_is_named() {
    let bed = server().await;
    for (body, field) in [
        (json!({"name": "", "size_bytes": 1}), "name"),
        (json!({"name": "a\nb", "size_bytes": 1}), "name"),
        (json!({"name": "a", "size_bytes": 1u64 << 50}), "size_bytes"),
        (json!({"name": "a", "size_bytes": -1}), "size_bytes"),
        (json!({"name": "a", "size_bytes": 1, "sha256": "x"}), "sha256"),
        (json!({"name": "a", "size_bytes": 1, "content_type": "a\r\nb: c"}), "content_type"),
        (json!({"name": "a", "size_bytes": 1, "tenant": "t2"}), "tenant"),
    ] {
        let reply = bed.client.post("/v1/artifacts", &body).await;
        assert_eq!(
            (reply.status, reply.json()["error"]["details"]["field"].as_str()),
            (422, Some(field)),
            "{body}"
        );
    }
    let id = bed.client.upload("a", "text/plain", b"a").await;
    for (body, field) in [
        (json!({"ttl_seconds": 0}), "ttl_seconds"),
        (json!({"ttl_seconds": 8 * 86400}), "ttl_seconds"),
        (json!({"method": "PUT"}), "method"),
        (json!({"size": 3}), "size"),
    ] {
        let reply = bed.client.post(&format!("/v1/artifacts/{id}/url"), &body).await;
        assert_eq!(
            (reply.status, reply.json()["error"]["details"]["field"].as_str()),
            (422, Some(field)),
            "{body}"
        );
    }
    assert_eq!(bed.client.get("/v1/artifacts?x=1").await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_announcement_is_made_once() {
    let bed = server().await;
    let send = async |body: &str| {
        bed.client.keyed("POST", "/v1/artifacts", "Idempotency-Key: one\r\n", body.as_bytes()).await
    };
    let first = send(r#"{"name":"a","size_bytes":3}"#).await;
    let again = send(r#"{"name":"a","size_bytes":3}"#).await;
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!(send(r#"{"name":"b","size_bytes":3}"#).await.code(), "idempotency_conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_are_apart() {
    let bed = server().await;
    let id = bed.client.upload("a", "text/plain", b"a").await;
    let key = async |scope: &str| {
        let made = bed.client.post("/v1/keys", &json!({"name": scope, "scopes": [scope]})).await.json();
        crate::bed::Client { key: made["secret"].as_str().unwrap().to_owned(), ..bed.client.clone() }
    };
    let (reader, writer) = (key("artifacts:read").await, key("artifacts:write").await);
    let path = format!("/v1/artifacts/{id}");
    let new = json!({"name": "b", "size_bytes": 1});
    assert_eq!(reader.get(&format!("{path}/content")).await.status, 200);
    assert_eq!(reader.get("/v1/artifacts").await.status, 200);
    assert_eq!(reader.post(&format!("{path}/url"), &json!({})).await.status, 201);
    for reply in [reader.post("/v1/artifacts", &new).await, reader.delete(&path).await] {
        assert_eq!((reply.status, reply.json()["error"]["details"]["rule"].as_str()), (403, Some("scope")));
    }
    assert_eq!(writer.post("/v1/artifacts", &new).await.status, 201);
    for place in ["", "/content"] {
        assert_eq!(writer.get(&format!("{path}{place}")).await.status, 403);
    }
    assert_eq!(writer.post(&format!("{path}/url"), &json!({})).await.status, 403);
    assert_eq!(writer.get("/v1/artifacts").await.status, 403);
    assert_eq!(bed.client.send("GET", &format!("{path}/content"), "", b"").await.status, 401);
}
