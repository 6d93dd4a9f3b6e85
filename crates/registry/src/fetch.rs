//! One file of any place, known by its digest.

use crate::client::{http, last_cause};
use crate::pull::{FIRST_WAIT, MAX_CUTS, begins_at};
use crate::{PullError, Result};
use cofferdam_images::{Digest, Download, Store};
use reqwest::header::RANGE;
use reqwest::{StatusCode, Url};

/// No tool of a profile comes near it.
const MAX_BYTES: u64 = 1 << 30;

/// Gets a file over TLS, from this machine also without, and goes on where it was cut. What has another digest is
/// refused, and not kept.
pub async fn fetch(store: &Store, url: &str, digest: Digest) -> Result<Download> {
    let (host, is_loopback) = place(url)?;
    let client = http(is_loopback)
        .map_err(|error| PullError::Unreachable { host: host.clone(), why: last_cause(&error) })?;
    let mut download = store.download(digest)?;
    let (mut cuts, mut wait) = (0, FIRST_WAIT);
    loop {
        let before = download.bytes();
        let Err(why) = some(&client, url, &host, &mut download).await? else { break };
        if download.bytes() > before {
            (cuts, wait) = (0, FIRST_WAIT);
        }
        cuts += 1;
        if cuts >= MAX_CUTS {
            return Err(PullError::Cut { what: url.to_owned(), times: cuts, why });
        }
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
    download.verify()?;
    Ok(download)
}

/// The host of an address, and whether it is this machine.
fn place(url: &str) -> Result<(String, bool)> {
    let refused = |host: &str, why: &str| PullError::Refused {
        host: host.to_owned(),
        what: format!("{url:?}"),
        why: why.to_owned(),
    };
    let parsed = Url::parse(url).map_err(|_| refused("nowhere", "it is no address"))?;
    let host = parsed.host_str().unwrap_or_default().to_owned();
    let is_loopback = ["127.0.0.1", "[::1]", "localhost"].contains(&host.as_str());
    match parsed.scheme() {
        "https" => Ok((host, is_loopback)),
        "http" if is_loopback => Ok((host, true)),
        _ => Err(refused(&host, "nothing is got from elsewhere without TLS")),
    }
}

/// One request for what is missing. The inner error is a cut, after which another one may go on.
async fn some(
    client: &reqwest::Client,
    url: &str,
    host: &str,
    download: &mut Download,
) -> Result<std::result::Result<(), String>> {
    let from = download.bytes();
    let mut request = client.get(url);
    if from > 0 {
        request = request.header(RANGE, format!("bytes={from}-"));
    }
    let mut answer = match request.send().await {
        Ok(answer) => answer,
        Err(error) if error.is_connect() => {
            return Err(PullError::Unreachable { host: host.to_owned(), why: last_cause(&error) });
        }
        Err(error) => return Ok(Err(last_cause(&error))),
    };
    let status = answer.status();
    if status == StatusCode::RANGE_NOT_SATISFIABLE && from > 0 {
        // All of it is here, or more than there is.
        download.restart()?;
        return Ok(Err("it is not as long as what came before".to_owned()));
    }
    if status.is_server_error() {
        return Ok(Err(format!("{host} answered {status}")));
    }
    if !status.is_success() {
        return Err(PullError::Status {
            host: host.to_owned(),
            status: status.as_u16(),
            what: url.to_owned(),
        });
    }
    if from > 0 && !begins_at(&answer, from) {
        download.restart()?;
    }
    loop {
        match answer.chunk().await {
            Ok(Some(piece)) => {
                if download.bytes() + piece.len() as u64 > MAX_BYTES {
                    download.restart()?;
                    let why = format!("it is larger than {MAX_BYTES} bytes");
                    return Err(PullError::Refused { host: host.to_owned(), what: url.to_owned(), why });
                }
                download.append(&piece)?;
            }
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(last_cause(&error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::path::PathBuf;

    /// A server that gives each request its answer, and then is gone. Returns its address and what it was asked.
    fn serve(answers: &'static [&'static str]) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/a.whl", listener.local_addr().unwrap());
        let asked = move || {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 4096];
                let n = stream.read(&mut request).unwrap();
                asked.push(String::from_utf8_lossy(&request[..n]).to_lowercase());
                stream.write_all(answer.as_bytes()).unwrap();
            }
            asked
        };
        (url, std::thread::spawn(asked))
    }

    struct Bed(PathBuf);

    impl Bed {
        fn new(name: &str) -> Self {
            use std::os::unix::fs::DirBuilderExt;
            let folder = std::env::temp_dir().join(format!("cofferdam-fetch-{name}-{}", std::process::id()));
            std::fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
            Self(folder)
        }

        fn fetch(&self, url: &str, digest: Digest) -> Result<Vec<u8>> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let got = runtime.block_on(fetch(&Store::at(self.0.clone()), url, digest))?;
            let to = self.0.join("staging/got");
            got.place(&to).unwrap();
            Ok(std::fs::read(to).unwrap())
        }

        fn downloads(&self) -> usize {
            std::fs::read_dir(self.0.join("downloads")).unwrap().count()
        }
    }

    impl Drop for Bed {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_that_is_cut_goes_on_and_is_whole() {
        let bed = Bed::new("cut");
        let (url, asked) = serve(&[
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nabc",
            "HTTP/1.1 206 Partial\r\nContent-Range: bytes 3-5/6\r\nContent-Length: 3\r\n\r\ndef",
        ]);
        assert_eq!(bed.fetch(&url, Digest::of(b"abcdef")).unwrap(), b"abcdef");
        assert!(asked.join().unwrap()[1].contains("range: bytes=3-"));
        assert_eq!(bed.downloads(), 0);
    }

    #[test]
    fn another_file_than_the_one_that_is_pinned_is_refused_and_not_kept() {
        let bed = Bed::new("other");
        let (url, asked) = serve(&["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nxyz"]);
        let error = bed.fetch(&url, Digest::of(b"abc")).unwrap_err().to_string();
        assert!(error.contains(&Digest::of(b"abc").to_string()), "{error}");
        asked.join().unwrap();
        assert_eq!(bed.downloads(), 0);
        let (url, asked) = serve(&["HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n"]);
        let error = bed.fetch(&url, Digest::of(b"abc")).unwrap_err().to_string();
        assert!(error.contains("404") && error.contains(&url), "{error}");
        asked.join().unwrap();
    }

    #[test]
    fn nothing_comes_from_elsewhere_without_tls() {
        let bed = Bed::new("plain");
        let error = bed.fetch("http://example.org/a.whl", Digest::of(b"abc")).unwrap_err().to_string();
        assert!(error.contains("without TLS"), "{error}");
    }
}
