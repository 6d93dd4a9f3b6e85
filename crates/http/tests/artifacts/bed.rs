//! A server for one test, and enough of HTTP to ask it.

use async_trait::async_trait;
use cofferdam_api::JobRequest;
use cofferdam_artifacts::{Location as Place, MasterKey, Vault};
use cofferdam_control::{
    ArtifactSettings, Capacity, Checker, Control, Offer, OutputSink, Quotas, RunEnd, RunOrder, RunSignals,
    Settings, Worker, Workers,
};
use cofferdam_core::{InvalidValue, Limits};
use cofferdam_http::HttpSettings;
use cofferdam_store::{Location, Store};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Runs nothing: these tests are about bytes that come from outside.
struct NoWorker;

#[async_trait]
impl Worker for NoWorker {
    async fn run(&self, _: RunOrder, _: &mut dyn OutputSink, _: RunSignals) -> RunEnd {
        RunEnd::Errored { code: "sandbox_failed".into(), message: "there are no sandboxes here".to_owned() }
    }
}

impl Checker for NoWorker {
    fn check(&self, _: &JobRequest) -> Result<Limits, InvalidValue> {
        Ok(Limits::default())
    }
}

fn workers() -> Workers {
    let offer = Offer {
        labels: Default::default(),
        backends: vec!["native".to_owned()],
        images: None,
        capacity: Capacity { slots: 1, cpus_millis: 1_000, memory_bytes: 1 << 40 },
    };
    Workers { checker: Arc::new(NoWorker), local: Some((Arc::new(NoWorker), offer)), remote: None }
}

pub(crate) struct Bed {
    pub(crate) control: Control,
    pub(crate) store: Store,
    pub(crate) folder: PathBuf,
    pub(crate) client: Client,
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn folder() -> PathBuf {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("cofferdam-http-{}-{number}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    folder
}

/// A server with its artifacts in a folder, and small limits.
pub(crate) async fn server() -> Bed {
    server_with(ArtifactSettings::default()).await
}

pub(crate) async fn server_with(artifacts: ArtifactSettings) -> Bed {
    let folder = folder();
    let place = Place::Folder(folder.join("artifacts"));
    server_at(folder, &place, artifacts, Quotas::default()).await
}

/// One whose tenants may keep so many bytes.
pub(crate) async fn server_with_quota(artifacts: ArtifactSettings, artifact_bytes: u64) -> Bed {
    let folder = folder();
    let place = Place::Folder(folder.join("artifacts"));
    server_at(folder, &place, artifacts, Quotas { artifact_bytes, ..Quotas::default() }).await
}

pub(crate) async fn server_on_s3() -> Bed {
    let bucket = tokio::task::spawn_blocking(crate::s3::bucket).await.unwrap();
    server_at(folder(), &Place::S3(bucket), ArtifactSettings::default(), Quotas::default()).await
}

async fn server_at(folder: PathBuf, place: &Place, artifacts: ArtifactSettings, quotas: Quotas) -> Bed {
    let store = Store::open(&Location::Sqlite(folder.join("store.db"))).await.unwrap();
    let vault = Vault::open(place, MasterKey::open_or_make(&folder.join("master.key")).unwrap()).unwrap();
    let settings = Settings { artifacts, quotas, ..Settings::default() };
    let control = Control::start_with(store.clone(), workers(), settings, Some(vault)).await.unwrap();
    let key = Control::first_key(&store, "t1").await.unwrap().secret;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client { address: listener.local_addr().unwrap(), key };
    tokio::spawn(cofferdam_http::serve(
        listener,
        cofferdam_http::router(control.clone()),
        HttpSettings::default(),
        None,
        std::future::pending(),
    ));
    Bed { control, store, folder, client }
}

impl Bed {
    /// Someone of another tenant, who may do everything there.
    pub(crate) async fn stranger(&self, tenant: &str) -> Client {
        let key = Control::first_key(&self.store, tenant).await.unwrap().secret;
        Client { key, ..self.client.clone() }
    }

    /// Every file in the place, but for its mark.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => walk(&entry.path(), files),
                    false => files.push(entry.path()),
                }
            }
        }
        let mut files = Vec::new();
        walk(&self.folder.join("artifacts"), &mut files);
        files.retain(|file| !file.ends_with("cofferdam-artifacts"));
        files.sort();
        files
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Client {
    /// Sends a request, with the key only where it is to go along, and reads the answer to its end.
    pub(crate) async fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Reply {
        let length = format!("Content-Length: {}\r\n", body.len());
        self.send_raw(method, path, &format!("{headers}{length}"), body).await.unwrap()
    }

    pub(crate) async fn send_raw(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> std::io::Result<Reply> {
        let mut stream = TcpStream::connect(self.address).await?;
        let head = format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await?;
        // A server that refuses may not wait for the whole body.
        let _ = stream.write_all(body).await;
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        let end = bytes.windows(4).position(|part| part == b"\r\n\r\n");
        let end = end.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok(Reply { status, head, body: bytes[end + 4..].to_vec() })
    }

    pub(crate) async fn keyed(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Reply {
        self.send(method, path, &format!("X-API-Key: {}\r\n{headers}", self.key), body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.keyed("GET", path, "", b"").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.keyed("POST", path, "", body.to_string().as_bytes()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.keyed("DELETE", path, "", b"").await
    }

    /// Announces something, and returns its id and where its bytes go.
    pub(crate) async fn announce(&self, name: &str, kind: &str, bytes: &[u8]) -> (String, String) {
        let body = json!({
            "name": name, "size_bytes": bytes.len(), "sha256": sha256(bytes), "content_type": kind,
        });
        let made = self.post("/v1/artifacts", &body).await;
        assert_eq!(made.status, 201, "{made:?}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&made.json()["id"]), text(&made.json()["upload"]["url"]))
    }

    /// Uploads something whole, and returns its id.
    pub(crate) async fn upload(&self, name: &str, kind: &str, bytes: &[u8]) -> String {
        let (id, url) = self.announce(name, kind, bytes).await;
        let put = self.send("PUT", &url, "", bytes).await;
        assert_eq!(put.status, 200, "{put:?}");
        let done = self.post(&format!("/v1/artifacts/{id}/finalize"), &json!({})).await;
        assert_eq!((done.status, done.json()["state"].as_str()), (200, Some("ready")), "{done:?}");
        id
    }

    /// A signed address to read an artifact.
    pub(crate) async fn link(&self, id: &str, body: &Value) -> String {
        let made = self.post(&format!("/v1/artifacts/{id}/url"), body).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["url"].as_str().unwrap().to_owned()
    }
}

/// Waits until something holds; a minute without is a failure.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let began = std::time::Instant::now();
    while !holds().await {
        assert!(began.elapsed().as_secs() < 60, "{what}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
