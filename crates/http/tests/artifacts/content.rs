//! Bytes as they are served: parts, conditions, and headers that keep a browser from believing them.

use crate::bed::{Bed, Reply, server, sha256};
use cofferdam_artifacts::SEGMENT_BYTES;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

async fn with_letters() -> (Bed, String) {
    let bed = server().await;
    let id = bed.client.upload("letters.txt", "text/plain", LETTERS).await;
    (bed, format!("/v1/artifacts/{id}/content"))
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_are_served_as_the_standard_says() {
    let (bed, path) = with_letters().await;
    for (range, status, body, content_range) in [
        ("bytes=0-2", 206, &b"abc"[..], Some("bytes 0-2/26")),
        ("bytes=24-99", 206, b"yz", Some("bytes 24-25/26")),
        ("bytes=23-", 206, b"xyz", Some("bytes 23-25/26")),
        ("bytes=-2", 206, b"yz", Some("bytes 24-25/26")),
        ("bytes=-99", 206, LETTERS, Some("bytes 0-25/26")),
        ("bytes=2-1", 200, LETTERS, None),
        ("bytes=0-0,2-2", 200, LETTERS, None),
        ("apples=1-2", 200, LETTERS, None),
    ] {
        let reply = bed.client.keyed("GET", &path, &format!("Range: {range}\r\n"), b"").await;
        assert_eq!((reply.status, &reply.body[..]), (status, body), "{range}");
        assert_eq!(reply.header("content-range"), content_range, "{range}");
        assert_eq!(reply.header("content-length"), Some(body.len().to_string().as_str()), "{range}");
    }
    for range in ["bytes=26-", "bytes=-0"] {
        let reply = bed.client.keyed("GET", &path, &format!("Range: {range}\r\n"), b"").await;
        assert_eq!((reply.status, reply.header("content-range")), (416, Some("bytes */26")), "{range}");
        assert_eq!(reply.code(), "range_not_satisfiable");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_go_by_the_hash() {
    let (bed, path) = with_letters().await;
    let etag = format!("\"{}\"", sha256(LETTERS));
    let send = async |method: &str, headers: String| bed.client.keyed(method, &path, &headers, b"").await;
    let head = send("HEAD", String::new()).await;
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("26"), 0));
    assert_eq!((head.header("etag"), head.header("accept-ranges")), (Some(etag.as_str()), Some("bytes")));
    let same = send("GET", format!("Range: bytes=0-0\r\nIf-Range: {etag}\r\n")).await;
    assert_eq!((same.status, &same.body[..]), (206, &b"a"[..]));
    for other in ["\"other\"", "Sun, 06 Nov 1994 08:49:37 GMT", &format!("W/{etag}")] {
        let reply = send("GET", format!("Range: bytes=0-0\r\nIf-Range: {other}\r\n")).await;
        assert_eq!((reply.status, reply.body.len()), (200, 26), "{other}");
    }
    assert_eq!(send("GET", format!("If-None-Match: \"x\", {etag}\r\n")).await.status, 304);
    assert_eq!(send("GET", "If-None-Match: \"x\"\r\n".to_owned()).await.status, 200);
}

fn assert_inert(reply: &Reply) {
    let disposition = reply.header("content-disposition").unwrap();
    assert!(disposition.starts_with("attachment; filename=\""), "{disposition}");
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(reply.header("content-security-policy"), Some("sandbox; default-src 'none'"));
    assert_eq!(reply.header("x-frame-options"), Some("DENY"));
}

/// art-04. The control is the type of something harmless, which is served as it was announced.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_active_is_served_as_such() {
    let bed = server().await;
    let page = b"<script>alert(1)</script>";
    for (kind, served) in [
        ("text/plain", "text/plain"),
        ("image/png", "image/png"),
        ("text/html", "application/octet-stream"),
        ("TEXT/HTML; charset=utf-8", "application/octet-stream"),
        ("image/svg+xml", "application/octet-stream"),
        ("application/xhtml+xml", "application/octet-stream"),
        ("text/xml", "application/octet-stream"),
        ("text/javascript", "application/octet-stream"),
    ] {
        let id = bed.client.upload("\"><b\u{202e}.html", kind, page).await;
        for method in ["GET", "HEAD"] {
            let reply = bed.client.keyed(method, &format!("/v1/artifacts/{id}/content"), "", b"").await;
            assert_eq!(reply.header("content-type"), Some(served), "{kind}");
            assert_inert(&reply);
        }
        let link = bed.client.link(&id, &serde_json::json!({})).await;
        let part = bed.client.send("GET", &link, "Range: bytes=0-3\r\n", b"").await;
        assert_eq!((part.status, part.header("content-type")), (206, Some(served)));
        assert_inert(&part);
        assert_eq!(part.header("referrer-policy"), Some("no-referrer"));
    }
}

/// What was changed at rest is never served: told at once where that can be, cut off where it cannot.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_bytes_are_not_served() {
    let bed = server().await;
    let bytes = vec![7; SEGMENT_BYTES as usize + 5000];
    let id = bed.client.upload("a", "text/plain", &bytes).await;
    let path = format!("/v1/artifacts/{id}/content");
    let files = bed.files();
    let [first, second] = &files[..] else { panic!("{files:?}") };
    let flip = |file: &std::path::Path, at: usize| {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[at] ^= 1;
        std::fs::write(file, bytes).unwrap();
    };
    flip(second, 100);
    let cut = bed.client.get(&path).await;
    assert_eq!((cut.status, cut.header("content-length")), (200, Some(bytes.len().to_string().as_str())));
    assert!(cut.body.len() < bytes.len(), "the end is missing, and the length says so");
    flip(second, 100);
    assert_eq!(bed.client.get(&path).await.body.len(), bytes.len());
    flip(first, 0);
    let refused = bed.client.get(&path).await;
    assert_eq!((refused.status, refused.code().as_str()), (500, "internal"));
    let text = String::from_utf8(refused.body).unwrap();
    assert!(!text.contains("artifacts/") && !text.contains(&*bed.folder.to_string_lossy()), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_artifact_is_one() {
    let bed = server().await;
    let id = bed.client.upload("empty", "text/plain", b"").await;
    let reply = bed.client.get(&format!("/v1/artifacts/{id}/content")).await;
    assert_eq!((reply.status, reply.header("content-length"), reply.body.len()), (200, Some("0"), 0));
    let reply =
        bed.client.keyed("GET", &format!("/v1/artifacts/{id}/content"), "Range: bytes=0-0\r\n", b"").await;
    assert_eq!(reply.status, 416);
}
