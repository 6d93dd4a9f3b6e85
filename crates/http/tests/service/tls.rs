//! HTTPS, by curl as another implementation, and certificates that change.

use crate::bed::Bed;
use cofferdam_control::Settings;
use cofferdam_http::{HttpSettings, Tls};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// A certificate for this machine that signs itself, under a name to know it by.
fn write_certificate(folder: &Path, name: &str) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.subject_alt_names.push(rcgen::SanType::IpAddress([127, 0, 0, 1].into()));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(folder.join("cert.pem"), certificate.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
}

fn open(folder: &Path) -> Result<Tls, cofferdam_http::TlsError> {
    Tls::open(&folder.join("cert.pem"), &folder.join("key.pem"))
}

/// What curl says to `-w`, with our certificate as the only one that it trusts.
async fn curl(folder: &Path, address: SocketAddr, options: &[&str]) -> String {
    let mut command = Command::new("curl");
    command.arg("-s").arg("--cacert").arg(folder.join("cert.pem")).args(options);
    command.args([
        "-o",
        "/dev/null",
        "-w",
        "%{http_version} %{http_code}",
        &format!("https://{address}/healthz"),
    ]);
    let output = tokio::task::spawn_blocking(move || command.stdin(Stdio::null()).output()).await.unwrap();
    String::from_utf8(output.expect("curl starts").stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_are_served_over_tls() {
    let bed = Bed::new(Settings::default()).await;
    write_certificate(bed.folder(), "one");
    let address = bed.serve(HttpSettings::default(), Some(open(bed.folder()).unwrap())).await;
    assert_eq!(curl(bed.folder(), address, &["--http1.1"]).await, "1.1 200");
    assert_eq!(curl(bed.folder(), address, &["--http2"]).await, "2 200");
    assert_eq!(curl(bed.folder(), address, &["--tls-max", "1.2"]).await, "2 200");
    // Old versions are refused, and so is plain HTTP.
    assert_eq!(curl(bed.folder(), address, &["--tls-max", "1.1"]).await, "0 000");
    let mut command = Command::new("curl");
    command.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", &format!("http://{address}/healthz")]);
    let plain = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert_ne!(String::from_utf8_lossy(&plain.stdout), "200");
}

/// New connections get the new certificate; those that are there go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_does_not_cut_old_connections() {
    let bed = Bed::new(Settings::default()).await;
    write_certificate(bed.folder(), "one");
    let tls = open(bed.folder()).unwrap();
    let address = bed.serve(HttpSettings::default(), Some(tls.clone())).await;
    let config = format!("url = \"https://{address}/healthz\"\n");
    // One curl holds a connection and asks twice: its second request is written when the certificate is new.
    let first = bed.folder().join("first.pem");
    std::fs::copy(bed.folder().join("cert.pem"), &first).unwrap();
    let mut holder = Command::new("curl");
    holder.arg("-sv").arg("--cacert").arg(&first).args([
        "--rate",
        "30/m",
        "-o",
        "/dev/null",
        "-o",
        "/dev/null",
    ]);
    holder.args([format!("https://{address}/healthz"), format!("https://{address}/readyz")]);
    let holder = holder.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // It asks for the second two seconds after the first.
    tokio::time::sleep(Duration::from_millis(800)).await;
    write_certificate(bed.folder(), "two");
    tls.reload().unwrap();
    assert_eq!(curl(bed.folder(), address, &[]).await, "2 200", "the new one is served: {config}");
    let output = tokio::task::spawn_blocking(move || holder.wait_with_output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("SSL connection using").count(), 1, "one connection for both: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_files_is_seen_and_a_bad_one_changes_nothing() {
    let bed = Bed::new(Settings::default()).await;
    write_certificate(bed.folder(), "one");
    let tls = open(bed.folder()).unwrap();
    let address = bed.serve(HttpSettings::default(), Some(tls.clone())).await;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(tls.watch(move |result| drop(tell.send(result))));
    let good = bed.folder().join("good.pem");
    std::fs::copy(bed.folder().join("cert.pem"), &good).unwrap();
    std::fs::write(bed.folder().join("cert.pem"), "rubbish").unwrap();
    let wrong = tokio::time::timeout(Duration::from_secs(30), told.recv()).await.unwrap().unwrap();
    assert!(wrong.is_err_and(|error| error.0.contains("cert.pem")));
    std::fs::rename(&good, bed.folder().join("cert.pem")).unwrap();
    assert_eq!(curl(bed.folder(), address, &[]).await, "2 200", "the old one is still served");
    write_certificate(bed.folder(), "two");
    loop {
        // The two files are not written at once: between them they do not belong together.
        let told = tokio::time::timeout(Duration::from_secs(30), told.recv()).await.unwrap().unwrap();
        if told.is_ok() {
            break;
        }
    }
    assert_eq!(curl(bed.folder(), address, &[]).await, "2 200", "the new one is served");
}

#[tokio::test]
async fn a_handshake_that_does_not_come_is_cut() {
    let bed = Bed::new(Settings::default()).await;
    write_certificate(bed.folder(), "one");
    let settings = HttpSettings { handshake_timeout: Duration::from_millis(300), ..HttpSettings::default() };
    let address = bed.serve(settings, Some(open(bed.folder()).unwrap())).await;
    let began = Instant::now();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut [0; 16])).await;
    assert!(matches!(read, Ok(Ok(0) | Err(_))), "{read:?}");
    assert!(began.elapsed() >= Duration::from_millis(250));
}

#[test]
fn files_that_do_not_belong_together_are_named() {
    let folder = std::env::temp_dir().join(format!("cofferdam-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    write_certificate(&folder, "one");
    std::fs::copy(folder.join("cert.pem"), folder.join("one.pem")).unwrap();
    write_certificate(&folder, "two");
    std::fs::rename(folder.join("one.pem"), folder.join("cert.pem")).unwrap();
    let error = open(&folder).err().map(|error| error.0).unwrap_or_default();
    assert!(error.contains("key.pem"), "{error}");
    std::fs::write(folder.join("cert.pem"), "").unwrap();
    let error = open(&folder).err().map(|error| error.0).unwrap_or_default();
    assert!(error.contains("cert.pem") && error.contains("no certificate"), "{error}");
    let error = Tls::open(Path::new("/nowhere/c.pem"), Path::new("/nowhere/k.pem")).err().map(|e| e.0);
    assert!(error.is_some_and(|error| error.contains("/nowhere/c.pem")));
    std::fs::remove_dir_all(&folder).unwrap();
}
