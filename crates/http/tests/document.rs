//! The OpenAPI document says what is served: all of it, nothing else, and as it is kept in the repository.

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode, header};
use cofferdam_api::JobRequest;
use cofferdam_control::{
    Capacity, Checker, Control, OutputSink, RunEnd, RunOrder, RunSignals, ServiceTokens, Settings, Worker,
    Workers,
};
use cofferdam_core::{InvalidValue, Limits};
use cofferdam_http::{
    Runs, internal_openapi_json, openapi_json, router, router_with_workers, worker_openapi_json,
    worker_router,
};
use cofferdam_store::{Location, Store};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tower::ServiceExt;

/// Nothing here runs a job.
struct NoWorker;

#[async_trait]
impl Worker for NoWorker {
    async fn run(&self, _: RunOrder, _: &mut dyn OutputSink, _: RunSignals) -> RunEnd {
        RunEnd::Errored { code: "test".into(), message: "nothing runs here".to_owned() }
    }
}

impl Checker for NoWorker {
    fn check(&self, _: &JobRequest) -> Result<Limits, InvalidValue> {
        Ok(Limits::default())
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn served(name: &str) -> (Folder, Router) {
    let path = std::env::temp_dir().join(format!("cofferdam-document-{name}-{}", std::process::id()));
    std::fs::create_dir(&path).expect("a folder");
    let store = Store::open(&Location::Sqlite(path.join("cofferdam.db"))).await.expect("a store");
    let workers = Workers { checker: Arc::new(NoWorker), local: None, remote: None };
    let control = Control::start(store, workers, Settings::default()).await.expect("control");
    (Folder(path), router(control))
}

fn document() -> Value {
    serde_json::from_str(openapi_json()).expect("the document is JSON")
}

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The methods of each path of a document, in capitals.
fn documented(document: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let paths = document["paths"].as_object().expect("paths");
    let methods = |item: &Value| {
        METHODS.iter().filter(|method| item.get(method).is_some()).map(|m| m.to_uppercase()).collect()
    };
    paths.iter().map(|(path, item)| (path.clone(), methods(item))).collect()
}

/// The paths of a router. It tells them to nobody but a debugger.
fn paths(router: &Router) -> BTreeSet<String> {
    let text = format!("{router:?}");
    let quoted = text.split('"').skip(1).step_by(2);
    // Whatever has no route of its own is kept under these two.
    let is_fallback = |text: &str| text == "/" || text.contains("__private__");
    quoted.filter(|text| text.starts_with('/') && !is_fallback(text)).map(str::to_owned).collect()
}

async fn ask(router: &Router, method: &str, path: &str) -> Response<Body> {
    let method = Method::from_bytes(method.as_bytes()).expect("a method");
    let request = Request::builder().method(method).uri(path).body(Body::empty()).expect("a request");
    router.clone().oneshot(request).await.expect("an answer")
}

#[tokio::test]
async fn every_path_is_documented_and_every_documented_path_is_served() {
    let (_folder, router) = served("paths").await;
    let (served, documented) = (paths(&router), documented(&document()));
    assert!(served.len() > 8, "the router's paths were not found: {served:?}");
    assert_eq!(served, documented.keys().cloned().collect());
}

#[tokio::test]
async fn a_path_has_the_methods_that_the_document_says() {
    let (_folder, router) = served("methods").await;
    for (path, methods) in documented(&document()) {
        let path = path.replace("{id}", "x").replace("{code}", "invalid");
        let answer = ask(&router, "BREW", &path).await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        let allow = answer.headers()[header::ALLOW].to_str().expect("text").to_owned();
        // Whatever can be got can be asked about.
        let allowed = allow.split(',').filter(|method| *method != "HEAD").map(str::to_owned);
        assert_eq!(allowed.collect::<BTreeSet<_>>(), methods, "{path}");
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
        let error: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(error["error"]["code"], "method_not_allowed", "{path}");
    }
}

/// What needs a key says so, and what says that it needs none can be had without.
#[tokio::test]
async fn only_what_the_document_opens_is_open() {
    let (_folder, router) = served("open").await;
    let document = document();
    let mut open = Vec::new();
    for (path, methods) in documented(&document) {
        for method in methods {
            let operation = &document["paths"][&path][method.to_lowercase()];
            let is_open = operation["security"] == serde_json::json!([{}]);
            let status =
                ask(&router, &method, &path.replace("{id}", "x").replace("{code}", "invalid")).await.status();
            assert_eq!(status != StatusCode::UNAUTHORIZED, is_open, "{method} {path}: {status}");
            if is_open {
                open.push(path.clone());
            }
        }
    }
    assert_eq!(
        open,
        [
            "/docs",
            "/docs/errors/{code}",
            "/docs/page.css",
            "/docs/page.js",
            "/healthz",
            "/openapi.json",
            "/readyz",
            // By a signed address only.
            "/v1/artifacts/{id}/upload",
            "/v1/sessions/{id}/files/signed",
            "/v1/sessions/{id}/files/signed",
            "/v1/signing-keys"
        ]
    );
}

#[test]
fn every_operation_is_described() {
    let document = document();
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in METHODS.iter().filter(|method| item.get(**method).is_some()) {
            let operation = &item[method];
            let id = operation["operationId"].as_str().expect("an id");
            assert!(ids.insert(id.to_owned()), "{id} is there twice");
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{method} {path}");
            assert_eq!(operation["tags"].as_array().map(Vec::len), Some(1), "{method} {path}");
            for (status, answer) in operation["responses"].as_object().expect("responses") {
                assert!(
                    answer.get("$ref").is_some() || answer["description"] != "",
                    "{method} {path} {status}"
                );
            }
        }
    }
}

/// Unknown fields are refused in every request, and the schema says so.
#[test]
fn requests_have_no_other_fields() {
    let document = document();
    for name in [
        "JobRequest",
        "LimitsRequest",
        "InlineFile",
        "KeyRequest",
        "TenantRequest",
        "TenantPatch",
        "QuotasRequest",
        "RetryPolicy",
        "ArtifactRequest",
        "LinkRequest",
    ] {
        let schema = &document["components"]["schemas"][name];
        assert_eq!(schema["additionalProperties"], false, "{name}: {schema}");
    }
}

#[test]
fn references_lead_somewhere() {
    fn visit(document: &Value, at: &Value, seen: &mut usize) {
        match at {
            Value::Object(fields) => {
                if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                    let place = reference.strip_prefix('#').expect("a reference into the document");
                    assert!(document.pointer(place).is_some(), "{reference} leads nowhere");
                    *seen += 1;
                }
                fields.values().for_each(|value| visit(document, value, seen));
            }
            Value::Array(items) => items.iter().for_each(|value| visit(document, value, seen)),
            _ => {}
        }
    }
    let (document, mut seen) = (document(), 0);
    visit(&document, &document, &mut seen);
    assert!(seen > 20, "only {seen} references were found");
}

/// A worker has a document of its own: all that it serves, and only its health and the document are open.
#[tokio::test]
async fn a_workers_document_says_what_it_serves() {
    let tokens = ServiceTokens::parse(&"t".repeat(32)).expect("a token");
    let capacity = Capacity { slots: 1, cpus_millis: 1, memory_bytes: 1 };
    let runs = Runs::new("wrk-x".to_owned(), Arc::new(NoWorker), Arc::new(NoWorker), capacity);
    let router = worker_router(runs, tokens);
    let document: Value = serde_json::from_str(worker_openapi_json()).expect("JSON");
    assert_eq!(paths(&router), documented(&document).keys().cloned().collect());
    let mut open = Vec::new();
    for (path, methods) in documented(&document) {
        for method in methods {
            let is_open =
                document["paths"][&path][method.to_lowercase()]["security"] == serde_json::json!([{}]);
            let status = ask(&router, &method, &path.replace("{id}", "x")).await.status();
            assert_eq!(status != StatusCode::UNAUTHORIZED, is_open, "{method} {path}: {status}");
            if is_open {
                open.push(path.clone());
            }
        }
    }
    assert_eq!(open, ["/healthz", "/openapi.json"]);
    for name in ["RunCreate", "RunLease", "RunTerminate", "RunOutputKept"] {
        assert_eq!(document["components"]["schemas"][name]["additionalProperties"], false, "{name}");
    }
    // What is refused says why, in the words of every error.
    let refused = ask(&router, "GET", "/runs/x").await;
    let body = axum::body::to_bytes(refused.into_body(), 1 << 20).await.expect("a body");
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(body["error"]["code"], "unauthenticated", "{body}");
}

/// What workers ask of control is in a document, too, and is served to those with a token only.
#[tokio::test]
async fn the_internal_document_says_what_is_served_to_workers() {
    let path = std::env::temp_dir().join(format!("cofferdam-document-internal-{}", std::process::id()));
    std::fs::create_dir(&path).expect("a folder");
    let folder = Folder(path);
    let store = Store::open(&Location::Sqlite(folder.0.join("cofferdam.db"))).await.expect("a store");
    let workers = Workers { checker: Arc::new(NoWorker), local: None, remote: None };
    let control = Control::start(store, workers, Settings::default()).await.expect("control");
    let tokens = ServiceTokens::parse(&"t".repeat(32)).expect("a token");
    let router = router_with_workers(control, tokens);
    let document: Value = serde_json::from_str(internal_openapi_json()).expect("JSON");
    let internal: BTreeSet<_> =
        paths(&router).into_iter().filter(|path| path.starts_with("/internal")).collect();
    assert_eq!(internal, documented(&document).keys().cloned().collect());
    assert_eq!(ask(&router, "PUT", "/internal/workers/x").await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(ask(&router, "GET", "/internal/openapi.json").await.status(), StatusCode::OK);
}

/// `COFFERDAM_BLESS=1` writes the files anew.
#[test]
fn the_documents_are_as_they_are_kept() {
    for (name, text) in [
        ("openapi.json", openapi_json()),
        ("openapi-internal.json", internal_openapi_json()),
        ("openapi-worker.json", worker_openapi_json()),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        if std::env::var_os("COFFERDAM_BLESS").is_some() {
            std::fs::write(&path, text).expect("the file is written");
        }
        let kept = std::fs::read_to_string(&path).expect("the document is in docs");
        assert!(kept == text, "docs/{name} is not what is served; COFFERDAM_BLESS=1 writes it anew");
    }
}

/// What the document calls enough is what a sandbox can be made with.
#[test]
fn the_bounds_of_limits_are_those_of_sandboxes() {
    use cofferdam_core::{MAX_DISK, MAX_GRACE, MIN_DISK, MIN_MEMORY};
    let document = document();
    let bound = |field: &str, name: &str| {
        document["components"]["schemas"]["LimitsRequest"]["properties"][field][name].as_u64()
    };
    assert_eq!(bound("memory_bytes", "minimum"), Some(MIN_MEMORY.0));
    assert_eq!(bound("disk_bytes", "minimum"), Some(MIN_DISK.0));
    assert_eq!(bound("disk_bytes", "maximum"), Some(MAX_DISK.0));
    assert_eq!(bound("grace_ms", "maximum"), Some(MAX_GRACE.as_millis() as u64));
}
