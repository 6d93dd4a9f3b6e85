//! Tokens by another implementation (Node's), and the attacks that are known.

use super::*;
use crate::settings::{ClaimNames, Jwks};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

struct Signer {
    keys: Value,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    _child: Child,
}

/// One for all tests; it ends with this process, whose end closes its input.
fn signer() -> &'static Signer {
    static SIGNER: OnceLock<Signer> = OnceLock::new();
    SIGNER.get_or_init(|| {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/signer.js");
        let mut node = Command::new("node");
        let mut child =
            node.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node starts");
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let keys = serde_json::from_str(&line).unwrap();
        Signer { keys, pipes: Mutex::new((stdin, stdout)), _child: child }
    })
}

/// A token of any header and payload, as text.
fn sign_text(key: &str, header: &str, payload: &str) -> String {
    let mut pipes = signer().pipes.lock().unwrap();
    let (stdin, stdout) = &mut *pipes;
    writeln!(stdin, "{}", json!({"key": key, "header": header, "payload": payload})).unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    line.trim().to_owned()
}

fn alg(key: &str) -> &'static str {
    match key {
        "ec" => "ES256",
        "ed" => "EdDSA",
        "oct" => "HS256",
        _ => "RS256",
    }
}

fn good_claims() -> Value {
    json!({
        "iss": "https://issuer.example", "aud": "cofferdam", "exp": now() + 600, "iat": now(), "nbf": now(),
        "sub": "someone", "tenant": "acme", "agent": "planner", "scope": "jobs:read jobs:write",
    })
}

fn sign(key: &str, claims: &Value) -> String {
    let header = json!({"alg": alg(key), "kid": key, "typ": "JWT"});
    sign_text(key, &header.to_string(), &claims.to_string())
}

struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn file(keys: &[&str]) -> File {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("cofferdam-jwks-{}-{number}.json", std::process::id()));
    std::fs::write(&path, set(keys)).unwrap();
    File(path)
}

fn set(keys: &[&str]) -> String {
    let keys: Vec<&Value> = keys.iter().map(|&key| &signer().keys[key]).collect();
    json!({"keys": keys}).to_string()
}

fn settings(jwks: Jwks) -> JwtSettings {
    JwtSettings {
        issuer: "https://issuer.example".to_owned(),
        audience: "cofferdam".to_owned(),
        jwks,
        leeway: Duration::from_secs(30),
        names: ClaimNames::default(),
        allow_operator: false,
    }
}

async fn verifier(keys: &[&str]) -> (File, Verifier) {
    let file = file(keys);
    let verifier = Verifier::open(settings(Jwks::File(file.0.clone()))).await.unwrap();
    (file, verifier)
}

#[tokio::test]
async fn a_good_token_of_every_algorithm_is_believed() {
    let (_file, verifier) = verifier(&["rsa", "ec", "ed", "oct"]).await;
    for key in ["rsa", "ec", "ed", "oct"] {
        let bearer =
            verifier.verify(&sign(key, &good_claims())).await.unwrap_or_else(|e| panic!("{key}: {e}"));
        assert_eq!((bearer.tenant.as_str(), bearer.agent.as_deref()), ("acme", Some("planner")));
        assert_eq!(bearer.scopes, ["jobs:read", "jobs:write"]);
        assert_eq!(bearer.subject.as_deref(), Some("someone"));
    }
}

#[tokio::test]
async fn the_classic_attacks_on_the_header_fail() {
    let (_file, verifier) = verifier(&["rsa", "ec", "ed", "oct"]).await;
    let claims = good_claims().to_string();
    let jwk = signer().keys["rsa2"].to_string();
    for (key, header, expected) in [
        ("none", r#"{"alg":"none","kid":"rsa"}"#.to_owned(), TokenError::Malformed),
        ("rsa", r#"{"alg":"none","kid":"rsa"}"#.to_owned(), TokenError::Algorithm),
        ("rsa", r#"{"alg":"NONE","kid":"rsa"}"#.to_owned(), TokenError::Algorithm),
        ("pem-as-secret", r#"{"alg":"HS256","kid":"rsa"}"#.to_owned(), TokenError::Algorithm),
        ("modulus-as-secret", r#"{"alg":"HS256","kid":"rsa"}"#.to_owned(), TokenError::Algorithm),
        ("pem-as-secret", r#"{"alg":"RS256","kid":"rsa"}"#.to_owned(), TokenError::Signature),
        ("pem-as-secret", r#"{"alg":"HS256"}"#.to_owned(), TokenError::UnknownKey),
        ("rsa", r#"{"alg":"RS512","kid":"rsa"}"#.to_owned(), TokenError::Algorithm),
        ("rsa", r#"{"alg":"PS256","kid":"rsa"}"#.to_owned(), TokenError::Algorithm),
        ("rsa2", r#"{"alg":"RS256","kid":"rsa"}"#.to_owned(), TokenError::Signature),
        ("rsa2", r#"{"alg":"RS256","kid":"rsa2"}"#.to_owned(), TokenError::UnknownKey),
        ("rsa", r#"{"alg":"RS256","kid":"../../../../dev/null"}"#.to_owned(), TokenError::UnknownKey),
        ("rsa", r#"{"alg":"RS256","kid":"rsa' OR '1'='1"}"#.to_owned(), TokenError::UnknownKey),
        ("rsa", r#"{"alg":"RS256","kid":["rsa"]}"#.to_owned(), TokenError::Malformed),
        ("rsa", r#"{"alg":"RS256","kid":null}"#.to_owned(), TokenError::Malformed),
        ("rsa2", format!(r#"{{"alg":"RS256","kid":"rsa","jwk":{jwk}}}"#), TokenError::Header("jwk")),
        (
            "rsa",
            r#"{"alg":"RS256","kid":"rsa","jku":"http://127.0.0.1:1/"}"#.to_owned(),
            TokenError::Header("jku"),
        ),
        (
            "rsa",
            r#"{"alg":"RS256","kid":"rsa","x5u":"http://127.0.0.1:1/"}"#.to_owned(),
            TokenError::Header("x5u"),
        ),
        ("rsa", r#"{"alg":"RS256","kid":"rsa","x5c":[]}"#.to_owned(), TokenError::Header("x5c")),
        ("rsa", r#"{"alg":"RS256","kid":"rsa","crit":["exp"]}"#.to_owned(), TokenError::Header("crit")),
        ("rsa", r#"{"alg":"none","alg":"RS256","kid":"rsa"}"#.to_owned(), TokenError::Malformed),
        ("rsa", r#"{"alg":"RS256","kid":"ec","kid":"rsa"}"#.to_owned(), TokenError::Malformed),
        ("rsa", r#"{"kid":"rsa"}"#.to_owned(), TokenError::Malformed),
        ("rsa", r#"[]"#.to_owned(), TokenError::Malformed),
        ("rsa", "not JSON".to_owned(), TokenError::Malformed),
    ] {
        let token = sign_text(key, &header, &claims);
        assert_eq!(verifier.verify(&token).await, Err(expected), "{key} {header}");
    }
}

#[tokio::test]
async fn a_token_that_was_changed_is_not_believed() {
    let (_file, verifier) = verifier(&["rsa"]).await;
    let token = sign("rsa", &good_claims());
    let parts: Vec<&str> = token.split('.').collect();
    let mut other = good_claims();
    other["tenant"] = json!("somebody-else");
    let forged = URL_SAFE_NO_PAD.encode(other.to_string());
    let cut = &parts[2][..parts[2].len() - 4];
    for text in [
        format!("{}.{forged}.{}", parts[0], parts[2]),
        format!("{}.{}.{cut}", parts[0], parts[1]),
        format!("{}.{}.{}", parts[0], parts[1], "A".repeat(342)),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{token}.{}", parts[2]),
        format!("{token}="),
        format!(" {token}"),
        String::new(),
        "..".to_owned(),
        "a.b.c".to_owned(),
    ] {
        assert!(verifier.verify(&text).await.is_err(), "{text}");
    }
    let huge = format!("{}.{}.{}", parts[0], "A".repeat(1 << 20), parts[2]);
    assert_eq!(verifier.verify(&huge).await, Err(TokenError::TooLong));
}

#[tokio::test]
async fn claims_are_checked_strictly() {
    let (_file, verifier) = verifier(&["rsa"]).await;
    let claim = |name: &str| TokenError::Claim(name.to_owned());
    let with = |changes: Value| {
        let mut claims = good_claims();
        for (name, value) in changes.as_object().unwrap() {
            match value.is_null() {
                true => drop(claims.as_object_mut().unwrap().remove(name)),
                false => claims[name] = value.clone(),
            }
        }
        claims
    };
    for (changes, expected) in [
        (json!({"exp": now() - 31}), TokenError::Expired),
        (json!({"exp": 0}), TokenError::Expired),
        (json!({"exp": null}), claim("exp")),
        (json!({"exp": "2999-01-01"}), claim("exp")),
        (json!({"exp": (now() + 600).to_string()}), claim("exp")),
        (json!({"exp": 1e99}), claim("exp")),
        (json!({"exp": now() as f64 + 0.5}), claim("exp")),
        (json!({"exp": -1}), claim("exp")),
        (json!({"exp": u64::MAX}), claim("exp")),
        (json!({"exp": true}), claim("exp")),
        (json!({"exp": [now() + 600]}), TokenError::Malformed),
        (json!({"nbf": now() + 60}), TokenError::TooEarly),
        (json!({"nbf": "soon"}), claim("nbf")),
        (json!({"iat": now() + 60}), TokenError::TooEarly),
        (json!({"iat": {}}), claim("iat")),
        (json!({"iss": "https://issuer.example/"}), TokenError::Issuer),
        (json!({"iss": null}), TokenError::Issuer),
        (json!({"iss": ["https://issuer.example"]}), TokenError::Issuer),
        (json!({"aud": "cofferdam2"}), TokenError::Audience),
        (json!({"aud": null}), TokenError::Audience),
        (json!({"aud": []}), TokenError::Audience),
        (json!({"aud": ["cofferdam", 7]}), TokenError::Audience),
        (json!({"aud": {"cofferdam": true}}), TokenError::Audience),
        (json!({"tenant": null}), claim("tenant")),
        (json!({"tenant": ""}), claim("tenant")),
        (json!({"tenant": 7}), claim("tenant")),
        (json!({"tenant": "a\nb"}), claim("tenant")),
        (json!({"tenant": "x".repeat(129)}), claim("tenant")),
        (json!({"agent": ["planner"]}), claim("agent")),
        (json!({"scope": 1}), claim("scope")),
        (json!({"scope": ["jobs:read", 1]}), claim("scope")),
        (json!({"scope": "jobs:read\njobs:write"}), claim("scope")),
        (json!({"scope": "* operator"}), claim("scope")),
    ] {
        let token = sign("rsa", &with(changes.clone()));
        assert_eq!(verifier.verify(&token).await, Err(expected), "{changes}");
    }
    for changes in [
        json!({"exp": now() - 20}),
        json!({"nbf": now() + 20, "iat": now() + 20}),
        json!({"nbf": null, "iat": null, "agent": null, "sub": null}),
        json!({"aud": ["other", "cofferdam"]}),
        json!({"scope": ["jobs:read"]}),
    ] {
        let token = sign("rsa", &with(changes.clone()));
        assert!(verifier.verify(&token).await.is_ok(), "{changes}");
    }
    let none = verifier.verify(&sign("rsa", &with(json!({"scope": null})))).await.unwrap();
    assert_eq!(none.scopes, Vec::<String>::new(), "without the claim nothing is allowed");
}

#[tokio::test]
async fn a_claim_that_comes_twice_is_refused() {
    let (_file, verifier) = verifier(&["rsa"]).await;
    let header = r#"{"alg":"RS256","kid":"rsa"}"#;
    for (name, value) in
        [("tenant", "\"other\""), ("exp", "9000000000"), ("aud", "\"x\""), ("scope", "\"*\"")]
    {
        let claims = good_claims().to_string();
        let twice = format!("{{\"{name}\":{value},{}", &claims[1..]);
        assert_eq!(
            verifier.verify(&sign_text("rsa", header, &twice)).await,
            Err(TokenError::Malformed),
            "{name}"
        );
    }
}

#[tokio::test]
async fn names_of_claims_can_be_chosen() {
    let file = file(&["ed"]);
    let mut settings = settings(Jwks::File(file.0.clone()));
    settings.names = ClaimNames {
        tenant: "org".to_owned(),
        agent: "https://x/agent".to_owned(),
        scope: "permissions".to_owned(),
    };
    settings.allow_operator = true;
    let verifier = Verifier::open(settings).await.unwrap();
    let mut claims = good_claims();
    claims["org"] = json!("acme-2");
    claims["https://x/agent"] = json!("a2");
    claims["permissions"] = json!(["operator", "tenants:read"]);
    let bearer = verifier.verify(&sign("ed", &claims)).await.unwrap();
    assert_eq!((bearer.tenant.as_str(), bearer.agent.as_deref()), ("acme-2", Some("a2")));
    assert_eq!(bearer.scopes, ["operator", "tenants:read"]);
}

#[tokio::test]
async fn sets_that_are_wrong_are_refused() {
    for (text, expected) in [
        ("", "not a JSON object"),
        ("{}", "no list"),
        (r#"{"keys":[]}"#, "no key for"),
        (r#"{"keys":[{"kty":"oct","k":"c2hvcnQ"}]}"#, "its secret has 5 bytes"),
        (r#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#, "needs 2048"),
        (r#"{"keys":[{"kty":"EC","crv":"P-256","x":"AQAB","y":"AQAB"}]}"#, "32 bytes each"),
        (r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"!!"}]}"#, "not base64url"),
        (r#"{"keys":[{"kty":"EC","crv":"P-521","x":"AQAB","y":"AQAB"}]}"#, "no key for"),
    ] {
        let error = KeySet::parse(text.as_bytes(), Secrets::Allowed).err().unwrap_or_default();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let twice = set(&["rsa", "rsa"]);
    assert!(KeySet::parse(twice.as_bytes(), Secrets::Allowed).is_err_and(|e| e.contains("same kid")));
    let secret = set(&["oct"]);
    assert!(KeySet::parse(secret.as_bytes(), Secrets::Refused).is_err_and(|e| e.contains("use a file")));
    let wrong = Jwks::File("/nowhere/keys.json".into());
    assert!(
        matches!(Verifier::open(settings(wrong)).await, Err(TokenError::Keys(text)) if text.contains("/nowhere"))
    );
}

use crate::keys::Secrets;

/// A server of keys, whose answer can be changed, and which counts.
struct Issuer {
    url: String,
    body: Arc<Mutex<Option<String>>>,
    asked: Arc<AtomicUsize>,
}

impl Issuer {
    async fn start(keys: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
        let body = Arc::new(Mutex::new(Some(set(keys))));
        let asked = Arc::new(AtomicUsize::new(0));
        let (answer, count) = (Arc::clone(&body), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let body = answer.lock().unwrap().clone();
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 4096]).await;
                    // Without a body it hangs, as a server that is in trouble does.
                    let Some(body) = body else { return tokio::time::sleep(Duration::from_secs(60)).await };
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                        body.len()
                    );
                    let _ = stream.write_all((head + &body).as_bytes()).await;
                });
            }
        });
        Self { url, body, asked }
    }

    fn answer(&self, body: Option<String>) {
        *self.body.lock().unwrap() = body;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn jwks(&self, max_age: Duration) -> Jwks {
        Jwks::Url { url: self.url.clone(), ca_file: None, refresh: Duration::from_secs(600), max_age }
    }
}

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test]
async fn keys_of_an_address_are_kept_and_looked_for_again_when_one_is_new() {
    let issuer = Issuer::start(&["rsa"]).await;
    let verifier =
        Verifier::open(settings(issuer.jwks(DAY))).await.unwrap().with_pause(Duration::from_millis(300));
    for _ in 0..50 {
        assert!(verifier.verify(&sign("rsa", &good_claims())).await.is_ok());
    }
    assert_eq!(issuer.asked(), 1, "they are kept");
    issuer.answer(Some(set(&["rsa", "ec"])));
    assert!(verifier.verify(&sign("ec", &good_claims())).await.is_ok(), "a new key is found");
    assert_eq!(issuer.asked(), 2);
    // A flood of unknown keys does not become a flood of requests.
    for _ in 0..50 {
        assert_eq!(verifier.verify(&sign("ed", &good_claims())).await, Err(TokenError::UnknownKey));
    }
    assert!(issuer.asked() <= 3, "{}", issuer.asked());
    // A key that was taken back is not believed after the next look.
    issuer.answer(Some(set(&["ec"])));
    tokio::time::sleep(Duration::from_millis(350)).await;
    assert_eq!(verifier.verify(&sign("ed", &good_claims())).await, Err(TokenError::UnknownKey));
    assert_eq!(verifier.verify(&sign("rsa", &good_claims())).await, Err(TokenError::UnknownKey));
}

#[tokio::test]
async fn an_issuer_in_trouble_makes_nobody_with_a_known_key_wait_or_pass() {
    let issuer = Issuer::start(&["rsa"]).await;
    let verifier = Verifier::open(settings(issuer.jwks(DAY))).await.unwrap().with_pause(Duration::ZERO);
    issuer.answer(None);
    let began = std::time::Instant::now();
    let (unknown, known) =
        tokio::join!(async { verifier.verify(&sign("ec", &good_claims())).await }, async {
            (verifier.verify(&sign("rsa", &good_claims())).await, began.elapsed())
        },);
    assert_eq!(unknown, Err(TokenError::UnknownKey));
    assert!(known.0.is_ok() && known.1 < Duration::from_secs(2), "{known:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "the fetch ends by itself");
    // Rubbish in the place of keys changes nothing.
    issuer.answer(Some("<html>".to_owned()));
    assert_eq!(verifier.verify(&sign("ec", &good_claims())).await, Err(TokenError::UnknownKey));
    assert!(verifier.verify(&sign("rsa", &good_claims())).await.is_ok());
    // A set with a secret in it is refused whole.
    issuer.answer(Some(set(&["rsa", "oct"])));
    assert_eq!(verifier.verify(&sign("oct", &good_claims())).await, Err(TokenError::UnknownKey));
}

#[tokio::test]
async fn keys_that_are_too_old_are_not_believed() {
    let issuer = Issuer::start(&["rsa"]).await;
    let verifier = Verifier::open(settings(issuer.jwks(Duration::from_millis(1)))).await.unwrap();
    issuer.answer(Some("no".to_owned()));
    tokio::time::sleep(Duration::from_millis(5)).await;
    let refused = verifier.verify(&sign("rsa", &good_claims())).await;
    assert!(matches!(refused, Err(TokenError::Keys(_))), "{refused:?}");
}

#[tokio::test]
async fn an_address_that_does_not_answer_at_the_start_is_asked_later() {
    let issuer = Issuer::start(&["rsa"]).await;
    issuer.answer(Some("not yet".to_owned()));
    let verifier = Verifier::open(settings(issuer.jwks(DAY))).await.unwrap().with_pause(Duration::ZERO);
    assert!(matches!(verifier.verify(&sign("rsa", &good_claims())).await, Err(TokenError::Keys(_))));
    issuer.answer(Some(set(&["rsa"])));
    assert!(verifier.verify(&sign("rsa", &good_claims())).await.is_ok());
}

#[tokio::test]
async fn keys_are_fetched_over_tls_or_from_this_machine() {
    for url in ["http://issuer.example/jwks", "file:///etc/passwd", "ftp://x/", "nonsense"] {
        let jwks = Jwks::Url { url: url.to_owned(), ca_file: None, refresh: DAY, max_age: DAY };
        assert!(Verifier::open(settings(jwks)).await.is_err(), "{url}");
    }
}
