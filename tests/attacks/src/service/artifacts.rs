//! Artifacts: links that were changed or outlived, uploads that are not what they said, bytes that a browser would run.

use super::client::{Answer, Client};
use super::server::Ground;
use super::{Outcome, Stop, broke_if, needs, tenants};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::{Duration, Instant};

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Announces an artifact: its id, and where to send its bytes.
fn announce(client: &Client, name: &str, kind: &str, bytes: &[u8]) -> Result<(String, String), Stop> {
    let body =
        json!({"name": name, "size_bytes": bytes.len(), "sha256": sha256(bytes), "content_type": kind});
    let made = client.post("/v1/artifacts", &body)?;
    let url = made.json()["upload"]["url"].as_str().unwrap_or_default().to_owned();
    needs(!url.is_empty(), || format!("no address to upload to: {}", made.text()))?;
    Ok((made.word("id")?, url))
}

fn upload(client: &Client, name: &str, kind: &str, bytes: &[u8]) -> Result<String, Stop> {
    let (id, url) = announce(client, name, kind, bytes)?;
    let put = nobody(client).send("PUT", &url, "", bytes)?;
    needs(put.is_good(), || format!("an upload: {} {}", put.status, put.text()))?;
    let done = client.post(&format!("/v1/artifacts/{id}/finalize"), &json!({}))?;
    needs(done.is_good(), || format!("finalising: {} {}", done.status, done.text()))?;
    Ok(id)
}

fn nobody(client: &Client) -> Client {
    client.with_headers("")
}

fn link(client: &Client, id: &str, body: &Value) -> Result<String, Stop> {
    client.post(&format!("/v1/artifacts/{id}/url"), body)?.word("url")
}

/// A link with one thing in it changed, left out, doubled or moved.
pub(crate) fn changed(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let (mine, other) =
        (upload(&client, "a", "text/plain", b"one")?, upload(&client, "b", "text/plain", b"two")?);
    let good = link(&client, &mine, &json!({}))?;
    let (path, query) = good.split_once('?').unwrap_or((&good, ""));
    let fields: Vec<&str> = query.split('&').collect();
    needs(fields.len() >= 3, || format!("a link has other fields: {query}"))?;
    let mut tries = vec![
        (good.replace(&mine, &other)),
        good.to_uppercase().replace("/V1/ARTIFACTS", "/v1/artifacts"),
        path.to_owned(),
        format!("{path}?"),
        format!("{path}?{query}&x=1"),
        format!("{path}?{}", query.replace('&', ";")),
        format!("{path}?{query}%00"),
        format!("{path}?%20{query}"),
    ];
    for (i, field) in fields.iter().enumerate() {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let with = |new: Option<String>| {
            let mut all: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
            match new {
                Some(new) => all[i] = new,
                None => drop(all.remove(i)),
            }
            format!("{path}?{}", all.join("&"))
        };
        let mut flipped = value.to_owned().into_bytes();
        if let Some(last) = flipped.last_mut() {
            *last = if *last == b'1' { b'2' } else { b'1' };
        }
        let flipped = String::from_utf8_lossy(&flipped).into_owned();
        tries.extend([
            with(None),
            with(Some(format!("{name}="))),
            with(Some(format!("{name}={value}0"))),
            with(Some(format!("{name}=0{value}"))),
            with(Some(format!("{name}={flipped}"))),
            with(Some(format!("{name}=-1"))),
            with(Some(format!("{field}&{name}={flipped}"))),
            with(Some(format!("{name}={flipped}&{field}"))),
            with(Some(format!("{field}&{field}"))),
        ]);
        let mut moved = fields.clone();
        moved.rotate_left(i + 1);
        tries.push(format!("{path}?{}", moved.join("&")));
    }
    tries.retain(|changed| *changed != good);
    let nobody = nobody(&client);
    for changed in &tries {
        let answer = nobody.send("GET", changed, "", b"")?;
        broke_if(answer.is_good(), || format!("{changed}: {}", answer.status))?;
        broke_if(answer.text().contains("two"), || format!("{changed} shows the other"))?;
    }
    let answer = nobody.send("GET", &good, "", b"")?;
    needs(answer.bytes == b"one", || format!("the link itself: {}", answer.status))?;
    Ok(format!("{} changed links refused", tries.len()))
}

/// A link for another method, after its time, its maker and its artifact.
pub(crate) fn ended(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let nobody = nobody(&client);
    let id = upload(&client, "a", "text/plain", b"one")?;
    let good = link(&client, &id, &json!({}))?;
    let works =
        |url: &str, method: &str| -> Result<bool, Stop> { Ok(nobody.send(method, url, "", b"")?.is_good()) };
    needs(works(&good, "GET")?, || "a good link".to_owned())?;
    for method in ["HEAD", "PUT", "POST", "DELETE", "PATCH"] {
        broke_if(works(&good, method)?, || format!("a link for GET works for {method}"))?;
    }
    let head = link(&client, &id, &json!({"method": "HEAD"}))?;
    needs(works(&head, "HEAD")?, || "a link for HEAD".to_owned())?;
    broke_if(works(&head, "GET")?, || "a link for HEAD works for GET".to_owned())?;
    let short = link(&client, &id, &json!({"ttl_seconds": 1}))?;
    let began = Instant::now();
    while works(&short, "GET")? {
        broke_if(began.elapsed() > Duration::from_secs(10), || "a link after its time".to_owned())?;
        std::thread::sleep(Duration::from_millis(100));
    }
    let (key, secret) = client.key(&["artifacts:read"])?;
    let theirs = link(&client.with_key(&secret), &id, &json!({}))?;
    needs(works(&theirs, "GET")?, || "another's link".to_owned())?;
    client.delete(&format!("/v1/keys/{key}"))?;
    broke_if(works(&theirs, "GET")?, || "a link after its maker's key".to_owned())?;
    client.delete(&format!("/v1/artifacts/{id}"))?;
    broke_if(works(&good, "GET")?, || "a link after its artifact".to_owned())?;
    Ok("a link is for one method, one time, one maker and one artifact".to_owned())
}

/// Uploads that are not what was announced.
pub(crate) fn uploads(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let nobody = nobody(&client);
    let announced = b"what was announced";
    for (what, bytes) in [("longer", &b"what was announced and more"[..]), ("another", b"what was Announced")]
    {
        let (id, url) = announce(&client, "a", "text/plain", announced)?;
        let put = nobody.send("PUT", &url, "", bytes)?;
        let done = client.post(&format!("/v1/artifacts/{id}/finalize"), &json!({}))?;
        broke_if(put.is_good() && done.is_good(), || format!("{what} is taken"))?;
        let read = client.get(&format!("/v1/artifacts/{id}/content"))?;
        broke_if(read.is_good(), || format!("{what} can be read"))?;
    }
    let (id, url) = announce(&client, "a", "text/plain", announced)?;
    needs(nobody.send("PUT", &url, "", announced)?.is_good(), || "a good upload".to_owned())?;
    let lied = client.post(&format!("/v1/artifacts/{id}/finalize"), &json!({"sha256": sha256(b"other")}))?;
    broke_if(lied.is_good(), || "finalised with another hash".to_owned())?;
    let done = client.post(&format!("/v1/artifacts/{id}/finalize"), &json!({}))?;
    needs(done.is_good(), || format!("finalising: {} {}", done.status, done.text()))?;
    let again = nobody.send("PUT", &url, "", b"what was Announced")?;
    broke_if(again.is_good(), || "an upload after the end".to_owned())?;
    let read = client.get(&format!("/v1/artifacts/{id}/content"))?;
    broke_if(read.bytes != announced, || "its bytes were changed after the end".to_owned())?;
    let huge = client.post("/v1/artifacts", &json!({"name": "a", "size_bytes": u64::MAX}))?;
    broke_if(huge.is_good(), || "an artifact of 16 EiB".to_owned())?;
    Ok("nothing but what was announced, once".to_owned())
}

fn is_inert(answer: &Answer) -> bool {
    let is = |name, begins: &str| {
        answer.header(name).is_some_and(|value| value.to_ascii_lowercase().starts_with(begins))
    };
    is("content-disposition", "attachment")
        && is("x-content-type-options", "nosniff")
        && is("content-security-policy", "sandbox")
}

/// Pages and scripts, under names and kinds that make a browser run them.
pub(crate) fn active(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let page = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/><script>alert(1)</script>";
    let kinds = [
        "text/html",
        "TEXT/HTML; charset=utf-8",
        "image/svg+xml",
        "application/xhtml+xml",
        "text/xml",
        "text/javascript",
        "application/javascript",
        "application/xml",
        "text/html;x=\"",
        "multipart/x-mixed-replace",
        "text/plain",
    ];
    let mut tried = 0;
    for kind in kinds {
        for name in ["a.html", "a.svg", "\"; filename=\"a.html", "a\u{202e}lmth"] {
            let body =
                json!({"name": name, "size_bytes": page.len(), "sha256": sha256(page), "content_type": kind});
            if !client.post("/v1/artifacts", &body)?.is_good() {
                // A kind or a name that is none is refused where it is announced.
                tried += 1;
                continue;
            }
            let id = upload(&client, name, kind, page)?;
            let address = link(&client, &id, &json!({}))?;
            for answer in [
                client.get(&format!("/v1/artifacts/{id}/content"))?,
                nobody(&client).send("GET", &address, "", b"")?,
            ] {
                needs(answer.is_good(), || format!("{kind}: {}", answer.status))?;
                broke_if(!is_inert(&answer), || format!("{kind} is served to be run: {}", answer.head))?;
                let served = answer.header("content-type").unwrap_or_default().to_ascii_lowercase();
                let runs =
                    ["html", "svg", "xml", "script", "multipart"].iter().any(|word| served.contains(word));
                broke_if(runs, || format!("{kind} is served as {served}"))?;
                tried += 1;
            }
        }
    }
    Ok(format!("{tried} answers, each to be saved and none to be run"))
}

/// Tenants of which one's name begins with the other's.
pub(crate) fn alike(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let operator = target.operator();
    let [long, short] = tenants::two(&operator, ["t10", "t1"])?;
    let theirs = upload(&long, "a", "text/plain", b"of t10")?;
    let own = upload(&short, "a", "text/plain", b"of t10")?;
    broke_if(theirs == own, || "the same bytes are one artifact".to_owned())?;
    let listed = short.get("/v1/artifacts")?.text();
    broke_if(listed.contains(&theirs), || "the other's is in the list".to_owned())?;
    let none = "art-aaaaaaaaaaaaaaaa";
    for (method, suffix) in
        [("GET", ""), ("GET", "/content"), ("HEAD", "/content"), ("POST", "/url"), ("DELETE", "")]
    {
        let send = |id: &str| short.send(method, &format!("/v1/artifacts/{id}{suffix}"), "", b"");
        let (foreign, missing) = (send(&theirs)?.status, send(none)?.status);
        broke_if(foreign != 404 || missing != 404, || {
            format!("{method} {suffix}: {foreign}, and {missing} for nobody's")
        })?;
    }
    for id in [theirs.as_str(), &format!("../t10/{theirs}"), &format!("..%2f..%2f{theirs}")] {
        let files = json!([{"path": "a", "artifact": id}]);
        let job = short.post("/v1/jobs?wait_ms=30000", &json!({"command": ["cat", "a"], "files": files}))?;
        broke_if(job.is_good(), || format!("a job reads {id}"))?;
    }
    short.delete(&format!("/v1/artifacts/{own}"))?;
    let left = long.get(&format!("/v1/artifacts/{theirs}/content"))?;
    broke_if(left.bytes != b"of t10", || "the other's went with one's own".to_owned())?;
    Ok("nothing of t10 is t1's".to_owned())
}
