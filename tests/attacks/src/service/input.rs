//! What is put where a name, a place or an address belongs.

use super::server::Ground;
use super::{Outcome, broke_if, needs, tenants};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// SQL and patterns, in every parameter that the store looks for something by.
pub(crate) fn injection(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let [alice, eve] = tenants::two(&target.operator(), ["alice", "eve"])?;
    let theirs = alice.job(&json!({"command": ["true"], "task_id": "secret-task"}))?;
    let own = eve.job(&json!({"command": ["true"], "task_id": "own-task"}))?;
    needs(eve.get("/v1/jobs?task_id=own-task")?.text().contains(&own), || {
        "a list by task finds nothing".to_owned()
    })?;
    let texts = [
        "%",
        "_",
        "own%",
        "own_task",
        "%task",
        "own-task' OR '1'='1",
        "' OR tenant_id <> '",
        "x' UNION SELECT * FROM jobs --",
        "own-task'; DROP TABLE jobs; --",
        "\\",
        "*",
        "own-task\" OR \"1\"=\"1",
        "$1",
        "?1",
        "own-task' /*",
        "[o]wn-task",
    ];
    let mut tried = 0;
    for text in texts {
        let cursors = [format!("0 {text}"), format!("9999999999999 {text}"), format!("{text} {text}")];
        let mut paths = vec![
            format!("/v1/jobs?task_id={}", percent(text)),
            format!("/v1/jobs?state={}", percent(text)),
            format!("/v1/audit?actor={}", percent(text)),
            format!("/v1/audit?kind={}", percent(text)),
            format!("/v1/audit?resource={}", percent(text)),
            format!("/v1/jobs?limit={}", percent(text)),
            format!("/v1/jobs/{}", percent(text)),
            format!("/v1/artifacts?cursor={}", percent(text)),
        ];
        paths.extend(cursors.map(|cursor| format!("/v1/jobs?cursor={}", URL_SAFE_NO_PAD.encode(cursor))));
        for path in paths {
            let answer = eve.get(&path)?;
            let words = answer.text();
            broke_if(words.contains(&theirs) || words.contains("secret-task"), || {
                format!("{path} shows another's")
            })?;
            let is_pattern = path.contains("task_id") && words.contains(&own);
            broke_if(is_pattern, || format!("{path} is taken for a pattern"))?;
            broke_if(answer.status >= 500, || format!("{path}: {}", answer.status))?;
            tried += 1;
        }
    }
    broke_if(alice.jobs()? != [theirs], || "the other's jobs are not as before".to_owned())?;
    Ok(format!("{tried} requests found nothing that was not asked for"))
}

/// Whether a terminal would do something with it. Line ends are what lines have.
fn has_control(text: &str) -> bool {
    text.chars().any(|c| c.is_control() && c != '\n')
}

/// Line ends and escape sequences in everything that has a name.
pub(crate) fn names(ground: &Ground) -> Outcome {
    let target = ground.start(&["--log-level", "debug"])?;
    let operator = target.operator();
    let line = r#"{"seq":1,"kind":"key.created","actor":"system","resource":"forged-entry"}"#;
    let hostile = [
        format!("a\r\n{line}\r\n"),
        format!("a\n{line}\n"),
        "\u{1b}[2J\u{1b}]0;owned\u{7}".to_owned(),
        "\u{9b}31mred".to_owned(),
        "a\u{85}b".to_owned(),
        "\u{8}\u{8}\u{7f}".to_owned(),
    ];
    let mut kept = 0;
    for name in &hostile {
        for (path, body) in [
            ("/v1/keys", json!({"name": name, "scopes": ["jobs:read"]})),
            ("/v1/keys", json!({"name": "k", "scopes": [name]})),
            ("/v1/keys", json!({"name": "k", "scopes": ["jobs:read"], "agent": name})),
            ("/v1/tenants", json!({"name": name})),
            ("/v1/artifacts", json!({"name": name, "size_bytes": 1})),
            ("/v1/artifacts", json!({"name": "a", "size_bytes": 1, "content_type": name})),
            ("/v1/jobs", json!({"command": ["true"], "task_id": name})),
            ("/v1/jobs", json!({"command": ["true"], "agent": name})),
            ("/v1/jobs", json!({"command": ["true"], "metadata": {"note": name}})),
            ("/v1/jobs", json!({"command": [name]})),
            ("/v1/jobs", json!({"command": ["true"], "env": {name.as_str(): "x"}})),
            ("/v1/jobs", json!({"command": ["true"], "files": [{"path": name, "content": ""}]})),
        ] {
            kept += usize::from(operator.post(path, &body)?.is_good());
        }
        // In a line of the request itself.
        operator.get(&format!("/v1/jobs/{}", percent(name)))?;
        operator.get(&format!("/v1/jobs?task_id={}", percent(name)))?;
        let _ = operator.send(
            "GET",
            "/v1/jobs",
            &format!("X-Request-Id: {}\r\n", name.replace(['\r', '\n'], "")),
            b"",
        );
    }
    let export = operator.get("/v1/audit/export")?.text();
    let entries = export.lines().filter(|line| !line.is_empty());
    let bad = entries.clone().find(|line| serde_json::from_str::<serde_json::Value>(line).is_err());
    broke_if(bad.is_some(), || format!("a line of the audit is none: {bad:?}"))?;
    let forged = entries.clone().any(|entry| entry.starts_with(line));
    broke_if(forged, || "an entry of the audit was forged".to_owned())?;
    let log = target.log();
    needs(log.len() > 1000 && entries.count() > 3, || "nothing was kept to look at".to_owned())?;
    broke_if(log.contains("\n{\"seq\":1"), || "a line of the log was forged".to_owned())?;
    for (what, text) in [
        ("audit", export),
        ("log", log),
        ("list of keys", operator.get("/v1/keys")?.text()),
        ("list of tenants", operator.get("/v1/tenants")?.text()),
    ] {
        broke_if(has_control(&text), || format!("control characters in the {what}"))?;
    }
    Ok(format!("{kept} of them kept, each escaped; the rest refused"))
}

/// What a page of another site has a browser send.
pub(crate) fn sites(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let (operator, nobody) = (target.operator(), target.nobody());
    let job = json!({"command": ["true"]}).to_string();
    for origin in ["https://evil.example", "null", "http://localhost"] {
        let header = format!("Origin: {origin}\r\n");
        let ask = format!(
            "{header}Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: x-api-key\r\n"
        );
        for answer in
            [operator.send("GET", "/v1/jobs", &header, b"")?, nobody.send("OPTIONS", "/v1/jobs", &ask, b"")?]
        {
            let allowed = answer.head.to_ascii_lowercase().contains("access-control-allow");
            broke_if(allowed, || format!("{origin} may read the answers"))?;
        }
    }
    for cookie in ["key", "session", "X-API-Key", "api_key", "token"] {
        let header = format!("Cookie: {cookie}={}\r\n", target.key);
        broke_if(nobody.send("GET", "/v1/jobs", &header, b"")?.is_good(), || format!("a cookie {cookie}"))?;
        broke_if(nobody.get(&format!("/v1/jobs?{cookie}={}", target.key))?.is_good(), || {
            "a key in an address".to_owned()
        })?;
    }
    drop(target);
    // Where no key is needed, because its owner said so, a page must not be taken for a program of the machine.
    let open = ground.start(&["--dev-no-auth"])?;
    let nobody = open.nobody();
    needs(nobody.send("POST", "/v1/jobs", "", job.as_bytes())?.is_good(), || "it is not open".to_owned())?;
    for header in [
        "Origin: https://evil.example\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Host: evil.example\r\n",
        "Host: evil.example:80\r\n",
        "Host: localhost.evil.example\r\n",
    ] {
        for kind in
            ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json"]
        {
            let answer = nobody.send(
                "POST",
                "/v1/jobs",
                &format!("{header}Content-Type: {kind}\r\n"),
                job.as_bytes(),
            )?;
            broke_if(answer.is_good(), || format!("{} as {kind}: {}", header.trim(), answer.status))?;
        }
    }
    Ok("no other site may read, and none may ask".to_owned())
}
