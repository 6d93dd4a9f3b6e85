//! Requests that no honest client sends: each gets an answer of the interface's own, and none is a defect.

use crate::client::Client;
use crate::server::{Folder, Server};

fn server() -> (Folder, Server) {
    let folder = Folder::new("odd");
    let server = Server::start(folder.path(), &[]);
    (folder, server)
}

/// The status and the code of an error.
fn refused(client: &Client, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let answer = client.send(method, path, headers, body).expect("an answer");
    (answer.status, answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn an_id_that_nothing_can_have_is_not_found() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let long = "a".repeat(5000);
    for id in ["x", "%00", "%FF", "%2e%2e", "a%20b", "job-%C3%BC", "%", "JOB-AAAAAAAAAAAAAAAA", &long] {
        for (method, path) in [
            ("GET", format!("/v1/jobs/{id}")),
            ("DELETE", format!("/v1/jobs/{id}")),
            ("POST", format!("/v1/jobs/{id}/cancel")),
            ("GET", format!("/v1/jobs/{id}/output")),
            ("DELETE", format!("/v1/keys/{id}")),
        ] {
            let (status, code) = refused(&client, method, &path, "", "");
            assert_eq!((status, code.as_str()), (404, "not_found"), "{method} {path}");
        }
    }
}

#[test]
fn parameters_and_headers_that_mean_nothing_are_refused() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let (id, body) = ("job-aaaaaaaaaaaaaaaa", r#"{"command":["true"]}"#);
    for (method, path, headers) in [
        ("GET", "/v1/jobs?limit=1&limit=1".to_owned(), ""),
        ("GET", "/v1/jobs?limit=0".to_owned(), ""),
        ("GET", "/v1/jobs?limit=%2B1".to_owned(), ""),
        ("GET", "/v1/jobs?task_id=%00".to_owned(), ""),
        ("GET", "/v1/jobs?cursor=!".to_owned(), ""),
        ("GET", "/v1/audit?limit=0".to_owned(), ""),
        ("GET", format!("/v1/jobs/{id}?verbose=1"), ""),
        ("GET", format!("/v1/jobs/{id}/output"), "Last-Event-ID: -1\r\n"),
        ("GET", "/v1/keys?x".to_owned(), ""),
        ("POST", "/v1/jobs".to_owned(), "Idempotency-Key: \u{fc}\r\n"),
    ] {
        let (status, code) = refused(&client, method, &path, headers, body);
        assert_eq!((status, code.as_str()), (422, "invalid"), "{method} {path} {headers}");
    }
}

#[test]
fn a_body_is_json_and_is_said_to_be() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let body = r#"{"command":["true"]}"#;
    for kind in ["application/json", "Application/JSON; charset=utf-8", "application/x-www-form-urlencoded"] {
        let headers = format!("Content-Type: {kind}\r\n");
        assert_eq!(client.send("POST", "/v1/jobs", &headers, body).expect("an answer").status, 202, "{kind}");
    }
    for kind in ["text/plain", "application/xml", "multipart/form-data; boundary=x", "json", "\u{fc}"] {
        let headers = format!("Content-Type: {kind}\r\n");
        let (status, code) = refused(&client, "POST", "/v1/jobs", &headers, body);
        assert_eq!((status, code.as_str()), (415, "unsupported_media_type"), "{kind}");
    }
}

/// The page and what it needs come from the server itself, and the browser is told to take nothing else.
#[test]
fn the_interface_describes_itself_without_a_key() {
    let (_folder, server) = server();
    let client = Client::of(&server).with_key("none");
    assert_eq!(client.get("/openapi.json").json()["openapi"], "3.1.0");
    for path in ["/docs", "/docs/page.js", "/docs/page.css"] {
        let answer = client.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.body.contains("://"), "{path} names another server");
    }
}
