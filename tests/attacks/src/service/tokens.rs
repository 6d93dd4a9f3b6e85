//! Tokens that nobody issued, or not for this.

use super::client::Client;
use super::server::Ground;
use super::{Outcome, Stop, broke_if, needs};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What the issuer signs with, and the attacker knows for `claims` alone: there the signature is right.
const SECRET: &[u8] = b"a secret that the issuer has and no other";

/// Public keys; nobody has their other halves.
const MODULUS: [u8; 256] = [0xc5; 256];
const POINT: [u8; 32] = [0x29; 32];

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The issuer's keys.
pub(crate) fn key_set() -> Value {
    json!({"keys": [
        {"kty": "oct", "kid": "k1", "alg": "HS256", "k": text(SECRET)},
        {"kty": "RSA", "kid": "rsa", "alg": "RS256", "n": text(&MODULUS), "e": "AQAB"},
        {"kty": "OKP", "kid": "ed", "alg": "EdDSA", "crv": "Ed25519", "x": text(&POINT)},
    ]})
}

pub(crate) fn config(keys: &Path) -> String {
    format!(
        "[jwt]\nissuer = \"https://issuer\"\naudience = \"cofferdam\"\njwks_file = {keys:?}\nleeway = \"1s\"\n\
         [webhooks]\nfirst_pause = \"200ms\"\nlongest_pause = \"400ms\"\n"
    )
}

fn sign(head: &str, claims: &str, key: &[u8]) -> Result<String, Stop> {
    let signed = format!("{}.{}", text(head.as_bytes()), text(claims.as_bytes()));
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|error| Stop::Error(error.to_string()))?;
    mac.update(signed.as_bytes());
    Ok(format!("{signed}.{}", text(&mac.finalize().into_bytes())))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn good() -> Value {
    json!({"iss": "https://issuer", "aud": "cofferdam", "exp": now() + 600, "sub": "eve", "tenant": "default",
        "scope": "jobs:read jobs:write"})
}

const HEAD: &str = r#"{"alg":"HS256","kid":"k1"}"#;

/// That what is forged below is otherwise right.
fn check_good(nobody: &Client) -> Result<(), Stop> {
    let answer = nobody.with_token(&sign(HEAD, &good().to_string(), SECRET)?).get("/v1/jobs")?;
    needs(answer.status == 200, || format!("a good token: {} {}", answer.status, answer.text()))
}

fn refused(nobody: &Client, what: &str, token: &str) -> Result<(), Stop> {
    let answer = nobody.with_token(token).get("/v1/jobs")?;
    // Whoever is wrong often enough is told to slow down, and is not recognised any more for that.
    broke_if(![401, 429].contains(&answer.status), || format!("{what}: {}", answer.status))
}

/// A public key as programs write it to files.
fn pem(prefix: &[u8], key: &[u8], suffix: &[u8]) -> String {
    let body = STANDARD.encode([prefix, key, suffix].concat());
    let lines: Vec<&str> =
        body.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
}

const RSA_PREFIX: [u8; 33] = [
    0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01,
    0x05, 0x00, 0x03, 0x82, 0x01, 0x0f, 0x00, 0x30, 0x82, 0x01, 0x0a, 0x02, 0x82, 0x01, 0x01, 0x00,
];
const RSA_SUFFIX: [u8; 5] = [0x02, 0x03, 0x01, 0x00, 0x01];
const ED_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// No signature, a public key as the secret, a key that the token brings along.
pub(crate) fn forged(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let nobody = target.nobody();
    check_good(&nobody)?;
    let claims = good().to_string();
    let mut tried = 0;
    for alg in ["none", "None", "NONE", "nOnE", "", "HS512", "HS1", "RS256", "EdDSA"] {
        for kid in [Some("k1"), Some("rsa"), Some("ed"), None] {
            let head = json!({"alg": alg, "kid": kid}).to_string();
            let body = format!("{}.{}", text(head.as_bytes()), text(claims.as_bytes()));
            for token in [format!("{body}."), body.clone(), format!("{body}.AA"), sign(&head, &claims, b"")?]
            {
                refused(&nobody, &format!("alg {alg:?}, kid {kid:?}"), &token)?;
                tried += 1;
            }
        }
    }
    let own = b"a key that only the attacker knows about";
    let (rsa, ed) = (pem(&RSA_PREFIX, &MODULUS, &RSA_SUFFIX), pem(&ED_PREFIX, &POINT, &[]));
    let public = [
        MODULUS.to_vec(),
        text(&MODULUS).into_bytes(),
        rsa.clone().into_bytes(),
        rsa.trim_end().as_bytes().to_vec(),
        POINT.to_vec(),
        text(&POINT).into_bytes(),
        ed.clone().into_bytes(),
        ed.trim_end().as_bytes().to_vec(),
    ];
    for kid in ["rsa", "ed"] {
        let head = json!({"alg": "HS256", "kid": kid}).to_string();
        for key in &public {
            refused(&nobody, &format!("signed with the public key {kid}"), &sign(&head, &claims, key)?)?;
            tried += 1;
        }
    }
    let jwk = json!({"kty": "oct", "kid": "eve", "alg": "HS256", "k": text(own)});
    let here = format!("http://{}/keys", nobody.address);
    for extra in [
        json!({"jwk": jwk}),
        json!({"jku": here}),
        json!({"x5u": here}),
        json!({"x5c": [STANDARD.encode(own)]}),
        json!({"kid": "../../../../dev/null"}),
        json!({"kid": "k1' OR '1'='1"}),
        json!({"kid": "k1\u{0}"}),
        json!({"kid": ["k1"]}),
        json!({"kid": null}),
        json!({"crit": ["exp"]}),
        json!({"b64": false}),
        json!({"typ": "at+jwe"}),
    ] {
        let mut head = json!({"alg": "HS256", "kid": "k1"});
        for (name, value) in extra.as_object().into_iter().flatten() {
            head[name] = value.clone();
        }
        for key in [&own[..], b""] {
            refused(&nobody, &extra.to_string(), &sign(&head.to_string(), &claims, key)?)?;
            tried += 1;
        }
    }
    check_good(&nobody)?;
    Ok(format!("{tried} forged tokens refused"))
}

/// Signed rightly, and saying what no issuer says.
pub(crate) fn claims(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let nobody = target.nobody();
    check_good(&nobody)?;
    let mut texts = Vec::new();
    let later = now() + 600;
    for name in ["exp", "nbf", "iat", "aud", "iss", "tenant", "scope", "sub", "agent"] {
        let wrong = [
            json!(null),
            json!(true),
            json!({}),
            json!([[]]),
            json!([1]),
            json!(-1),
            json!(1.5),
            json!(1e99),
            json!(i64::MIN),
            json!(u64::MAX),
            json!(""),
            json!("never"),
            json!(later.to_string()),
        ];
        // A text is what some of them are.
        let is_text = !["exp", "nbf", "iat"].contains(&name);
        for value in wrong.into_iter().filter(|value| !is_text || !value.is_string()) {
            let mut claims = good();
            claims[name] = value;
            texts.push(claims.to_string());
        }
        if ["exp", "aud", "iss", "tenant"].contains(&name) {
            let mut claims = good();
            claims.as_object_mut().map(|claims| claims.remove(name));
            texts.push(claims.to_string());
        }
        // Said twice: whoever reads the first and whoever reads the last do not agree.
        let said = json!({name: good().get(name).cloned().unwrap_or_else(|| json!(0))}).to_string();
        let said = said.trim_matches(['{', '}']);
        let mut rest = good();
        rest.as_object_mut().map(|claims| claims.remove(name));
        let rest = rest.to_string();
        texts.push(format!("{},{said},{said}}}", &rest[..rest.len() - 1]));
    }
    texts.extend([r#"{"exp":1e99}"#, "[]", "null", "\"\"", ""].map(str::to_owned));
    for raw in ["1e99", "1e400", "999999999999999999999999", "0x7fffffff"] {
        let claims = good().to_string().replace(&good()["exp"].to_string(), raw);
        texts.push(claims);
    }
    // What is the same as a good one after all is none of these.
    let unchanged = good().to_string();
    texts.retain(|text| *text != unchanged);
    for claims in &texts {
        refused(&nobody, claims, &sign(HEAD, claims, SECRET)?)?;
    }
    check_good(&nobody)?;
    Ok(format!("{} tokens with wrong claims refused", texts.len()))
}

/// Tokens and keys whose time is over, or that were for someone else.
pub(crate) fn ended(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let (nobody, operator) = (target.nobody(), target.operator());
    check_good(&nobody)?;
    for (name, value) in [
        ("exp", json!(now() - 3600)),
        ("exp", json!(0)),
        ("nbf", json!(now() + 3600)),
        ("iat", json!(now() + 3600)),
        ("aud", json!("another")),
        ("aud", json!(["another", "cofferdam2"])),
        ("aud", json!("cofferdam ")),
        ("iss", json!("https://issuer/")),
        ("iss", json!("http://issuer")),
        ("tenant", json!("nobody's")),
    ] {
        let mut claims = good();
        claims[name] = value;
        refused(&nobody, &format!("{name} {}", claims[name]), &sign(HEAD, &claims.to_string(), SECRET)?)?;
    }
    let (id, secret) = operator.key(&["jobs:read"])?;
    let key = nobody.with_key(&secret);
    needs(key.get("/v1/jobs")?.status == 200, || "a key does not work".to_owned())?;
    operator.delete(&format!("/v1/keys/{id}"))?;
    broke_if(key.get("/v1/jobs")?.status != 401, || "a key that was taken back".to_owned())?;
    let short =
        operator.post("/v1/keys", &json!({"name": "s", "scopes": ["jobs:read"], "ttl_seconds": 1}))?;
    let short = nobody.with_key(&short.word("secret")?);
    let began = Instant::now();
    while short.get("/v1/jobs")?.status != 401 {
        broke_if(began.elapsed() > Duration::from_secs(10), || "a key after its time".to_owned())?;
        std::thread::sleep(Duration::from_millis(100));
    }
    let (tenant, of_tenant) = operator.tenant("short-lived", json!({}))?;
    let mut claims = good();
    claims["tenant"] = json!(tenant);
    let token = sign(HEAD, &claims.to_string(), SECRET)?;
    needs(of_tenant.get("/v1/jobs")?.status == 200, || "a tenant's key does not work".to_owned())?;
    needs(nobody.with_token(&token).get("/v1/jobs")?.status == 200, || "a tenant's token".to_owned())?;
    operator.delete(&format!("/v1/tenants/{tenant}"))?;
    broke_if(of_tenant.get("/v1/jobs")?.status != 401, || "a key of a tenant that is gone".to_owned())?;
    refused(&nobody, "a token of a tenant that is gone", &token)?;
    Ok("time, audience, issuer, revocation and tenant are each looked at".to_owned())
}
