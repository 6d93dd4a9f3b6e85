//! Uploads that are not what was announced, come too late, or too many at once.

use crate::bed::{Bed, server, server_with_quota, sha256, until};
use cofferdam_control::ArtifactSettings;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

async fn nothing_is_left(bed: &Bed) {
    until("what was refused leaves nothing", || async { bed.files().is_empty() }).await;
}

/// art-03. The control is that the announced bytes are taken by the same link afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn only_what_was_announced_is_taken() {
    let bed = server().await;
    let bytes = vec![b'x'; 100_000];
    let (id, url) = bed.client.announce("a", "text/plain", &bytes).await;
    let put = async |body: &[u8]| bed.client.send("PUT", &url, "", body).await;

    let large = put(&vec![b'x'; 100_001]).await;
    assert_eq!((large.status, large.code().as_str()), (413, "too_large"));
    // Without a length, so that only counting finds it.
    let mut chunked = b"186a1\r\n".to_vec();
    chunked.extend(vec![b'x'; 100_001]);
    chunked.extend(b"\r\n0\r\n\r\n");
    let reply = bed.client.send_raw("PUT", &url, "Transfer-Encoding: chunked\r\n", &chunked).await;
    assert_eq!(reply.unwrap().status, 413);
    nothing_is_left(&bed).await;

    let short = put(&bytes[1..]).await;
    assert_eq!((short.status, short.json()["error"]["details"]["field"].as_str()), (422, Some("size_bytes")));
    nothing_is_left(&bed).await;
    let mut other = bytes.clone();
    other[7] = b'y';
    let wrong = put(&other).await;
    assert_eq!((wrong.status, wrong.json()["error"]["details"]["field"].as_str()), (422, Some("sha256")));
    nothing_is_left(&bed).await;
    let early = bed.client.post(&format!("/v1/artifacts/{id}/finalize"), &json!({})).await;
    assert_eq!((early.status, early.code().as_str()), (409, "wrong_state"));

    assert_eq!(put(&bytes).await.status, 200);
    assert_eq!(bed.client.post(&format!("/v1/artifacts/{id}/finalize"), &json!({})).await.status, 200);
    // Again is no error; another upload is.
    assert_eq!(bed.client.post(&format!("/v1/artifacts/{id}/finalize"), &json!({})).await.status, 200);
    let late = put(&bytes).await;
    assert_eq!((late.status, late.code().as_str()), (409, "wrong_state"));
    assert_eq!(bed.client.get(&format!("/v1/artifacts/{id}/content")).await.body, bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hash_may_be_said_at_the_end_and_has_to_be_right() {
    let bed = server().await;
    let made = bed.client.post("/v1/artifacts", &json!({"name": "a", "size_bytes": 3})).await.json();
    let (id, url) = (made["id"].as_str().unwrap(), made["upload"]["url"].as_str().unwrap());
    assert_eq!(bed.client.send("PUT", url, "", b"one").await.status, 200);
    let finalize = async |body| bed.client.post(&format!("/v1/artifacts/{id}/finalize"), &body).await;
    for body in [json!({}), json!({"sha256": sha256(b"two")}), json!({"sha256": "x"})] {
        let reply = finalize(body).await;
        assert_eq!((reply.status, reply.json()["error"]["details"]["field"].as_str()), (422, Some("sha256")));
    }
    assert_eq!(bed.client.get(&format!("/v1/artifacts/{id}/content")).await.status, 409);
    assert_eq!(finalize(json!({"sha256": sha256(b"one").to_uppercase()})).await.status, 200);
}

/// A client that dies in the middle leaves nothing, and another try works.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_cut_off_can_be_done_again() {
    let bed = server().await;
    let bytes = vec![b'x'; 20 << 20];
    let (id, url) = bed.client.announce("a", "text/plain", &bytes).await;
    let mut stream = TcpStream::connect(bed.client.address).await.unwrap();
    let head = format!("PUT {url} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", bytes.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&bytes[..10 << 20]).await.unwrap();
    until("a segment is written", || async { !bed.files().is_empty() }).await;
    // Nobody else may upload the same at the same time: together they would take more than was counted.
    let second = bed.client.send("PUT", &url, "", &bytes).await;
    assert_eq!((second.status, second.code().as_str()), (409, "wrong_state"));
    drop(stream);
    nothing_is_left(&bed).await;
    until("it can be uploaded again", || async {
        bed.client.send("PUT", &url, "", &bytes).await.status == 200
    })
    .await;
    assert_eq!(bed.client.post(&format!("/v1/artifacts/{id}/finalize"), &json!({})).await.status, 200);
}

/// Many at once take the last room of a quota once; so does a job's, as the store's own tests show.
#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_do_not_pass_the_quota() {
    let bed = server_with_quota(ArtifactSettings::default(), 1000).await;
    let tries: Vec<_> = (0..50)
        .map(|i| {
            let client = bed.client.clone();
            let body = json!({"name": format!("{i}"), "size_bytes": 300});
            tokio::spawn(async move { client.post("/v1/artifacts", &body).await })
        })
        .collect();
    let mut made = Vec::new();
    for one in tries {
        let reply = one.await.unwrap();
        match reply.status {
            201 => made.push(reply.json()["id"].as_str().unwrap().to_owned()),
            _ => {
                let rule = reply.json()["error"]["details"]["rule"].as_str().map(str::to_owned);
                assert_eq!((reply.status, rule.as_deref()), (403, Some("artifact_quota")), "{reply:?}");
            }
        }
    }
    assert_eq!(made.len(), 3);
    assert_eq!(bed.client.delete(&format!("/v1/artifacts/{}", made[0])).await.status, 204);
    let again = bed.client.post("/v1/artifacts", &json!({"name": "again", "size_bytes": 400})).await;
    assert_eq!(again.status, 201, "what was deleted gives its room back");
}
