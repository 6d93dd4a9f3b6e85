//! A registry of the tests' own, and a way to it that can go wrong.

use crate::support::Folder;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The name and the password of a registry with a login.
pub(crate) const LOGIN: &str = "me:word";
const HTPASSWD: &str = "me:$2b$04$xg8CIvqmotu322h4nKMzR..BcA09iuz/8zwat65ojhJS3B7kROWKm\n";

/// Debian's docker-registry on a port of its own, ended with the test.
pub(crate) struct Registry {
    process: Child,
    pub(crate) address: String,
    _folder: Folder,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Registry {
    pub(crate) fn start(has_login: bool) -> Self {
        let folder = Folder::new();
        // Nobody else takes the port in the moment between.
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port();
        let address = format!("127.0.0.1:{port}");
        let mut config = format!(
            "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {address}\n",
            folder.path("data")
        );
        if has_login {
            let file = folder.file("htpasswd", HTPASSWD);
            config += &format!("auth:\n  htpasswd:\n    realm: tests\n    path: {file}\n");
        }
        let config = folder.file("config.yml", &config);
        let mut command = Command::new("docker-registry");
        command.args(["serve", &config]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("docker-registry is installed");
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(&address).is_err() {
            assert!(Instant::now() < deadline, "no registry at {address}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { process, address, _folder: folder }
    }

    /// Puts an archive of Docker's there, as others do.
    pub(crate) fn push(&self, archive: &str, name: &str, has_login: bool) {
        let mut skopeo = Command::new("skopeo");
        skopeo.args(["copy", "--quiet", "--insecure-policy", "--dest-tls-verify=false"]);
        if has_login {
            skopeo.args(["--dest-creds", LOGIN]);
        }
        skopeo.arg(format!("docker-archive:{archive}")).arg(format!("docker://{}/{name}", self.address));
        assert!(skopeo.status().expect("skopeo is installed").success());
    }

    /// The digest of a manifest.
    pub(crate) fn digest(&self, name: &str) -> String {
        let (repository, tag) = name.split_once(':').expect("a tag");
        let url = format!("http://{}/v2/{repository}/manifests/{tag}", self.address);
        let accept = "Accept: application/vnd.docker.distribution.manifest.v2+json";
        let output = Command::new("curl").args(["-sfI", "-H", accept, &url]).output().expect("curl");
        let head = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = head.lines().find_map(|line| line.strip_prefix("Docker-Content-Digest: "));
        line.unwrap_or_else(|| panic!("{head}")).trim().to_owned()
    }

    /// One name for two platforms: the image for this machine, and another one.
    pub(crate) fn put_index(&self, name: &str, ours: &str, other: &str) {
        let (repository, tag) = name.split_once(':').expect("a tag");
        let kind = "application/vnd.docker.distribution.manifest.v2+json";
        let entry = |digest: &str, architecture: &str| {
            serde_json::json!({"mediaType": kind, "digest": digest, "size": self.size(repository, digest),
                "platform": {"os": "linux", "architecture": architecture}})
        };
        let list = "application/vnd.docker.distribution.manifest.list.v2+json";
        let manifests = [entry(other, "arm64"), entry(ours, "amd64")];
        let index = serde_json::json!({"schemaVersion": 2, "mediaType": list, "manifests": manifests});
        let url = format!("http://{}/v2/{repository}/manifests/{tag}", self.address);
        let mut curl = Command::new("curl");
        curl.args([
            "-sf",
            "-X",
            "PUT",
            "-H",
            &format!("Content-Type: {list}"),
            "-d",
            &index.to_string(),
            &url,
        ]);
        assert!(curl.status().expect("curl").success());
    }

    fn size(&self, repository: &str, digest: &str) -> usize {
        let url = format!("http://{}/v2/{repository}/manifests/{digest}", self.address);
        let accept = "Accept: application/vnd.docker.distribution.manifest.v2+json";
        Command::new("curl").args(["-sf", "-H", accept, &url]).output().expect("curl").stdout.len()
    }
}

/// What goes wrong on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// So many answers are cut after so many bytes.
    Cuts {
        times: usize,
        after: usize,
    },
    /// One byte of every large answer is another.
    Damage,
    /// A token is wanted.
    Tokens,
}

/// Answers that are large enough to be layers.
const LARGE: usize = 64 << 10;

const TOKEN: &str = "a-token-of-the-tests";

/// Stands before a registry. Every request's first line, and its range, is written down.
pub(crate) struct Way {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Way {
    pub(crate) fn to(registry: &Registry, trouble: Trouble) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (to, seen, own) = (registry.address.clone(), Arc::clone(&requests), address.clone());
        let cuts = Arc::new(AtomicUsize::new(0));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (to, seen, own, cuts) = (to.clone(), Arc::clone(&seen), own.clone(), Arc::clone(&cuts));
                // A connection that ends early is what some tests want.
                std::thread::spawn(move || pass(client, &to, &own, trouble, &seen, &cuts));
            }
        });
        Self { address, requests }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("a list").clone()
    }
}

fn pass(
    mut client: TcpStream,
    to: &str,
    own: &str,
    trouble: Trouble,
    seen: &Mutex<Vec<String>>,
    cuts: &AtomicUsize,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut head: Vec<String> = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line == "\r\n" {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let header = |name: &str| {
        head.iter()
            .find(|line| line.to_ascii_lowercase().starts_with(name))
            .map(|line| line[name.len()..].trim())
    };
    let range = header("range:").unwrap_or_default().to_owned();
    seen.lock().expect("a list").push(format!("{} {range}", head[0]));
    if trouble == Trouble::Tokens {
        let answer = |status: &str, more: &str, body: &str| {
            format!(
                "HTTP/1.1 {status}\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
        };
        let login = header("authorization:").unwrap_or_default();
        let text = match (head[0].contains("/token"), login) {
            // "me:word", as a browser sends it.
            (true, "Basic bWU6d29yZA==") => Some(answer("200 OK", "", &format!(r#"{{"token":"{TOKEN}"}}"#))),
            (true, _) => Some(answer("401 Unauthorized", "", "")),
            (false, login) if login == format!("Bearer {TOKEN}") => None,
            (false, _) => {
                let realm =
                    format!("WWW-Authenticate: Bearer realm=\"http://{own}/token\",service=\"tests\"\r\n");
                Some(answer("401 Unauthorized", &realm, ""))
            }
        };
        if let Some(text) = text {
            return client.write_all(text.as_bytes());
        }
    }
    let mut server = TcpStream::connect(to)?;
    let kept = head.iter().filter(|line| {
        let line = line.to_ascii_lowercase();
        !line.starts_with("connection:")
            && (trouble != Trouble::Tokens || !line.starts_with("authorization:"))
    });
    let lines: Vec<&str> = kept.map(String::as_str).collect();
    server.write_all(format!("{}\r\nConnection: close\r\n\r\n", lines.join("\r\n")).as_bytes())?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    match trouble {
        Trouble::Cuts { times, after }
            if answer.len() > LARGE && cuts.fetch_add(1, Ordering::Relaxed) < times =>
        {
            answer.truncate(after);
        }
        Trouble::Damage if answer.len() > LARGE => {
            let last = answer.len() - 100;
            answer[last] ^= 1;
        }
        _ => {}
    }
    client.write_all(&answer)
}
