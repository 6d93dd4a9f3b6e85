//! What changes in a folder, over a WebSocket: the same as the server-sent events, coming back, tickets, and what is
//! refused.

use crate::socket::{Heard, Socket, open};
use crate::sockets::Bed;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};

fn shell(bed: &Bed, line: &str) {
    let body = json!({"command": ["sh", "-c", line]}).to_string();
    let done = bed.client.post(&format!("/v1/sessions/{}/steps?wait_ms=60000", bed.session), &body);
    assert_eq!(done.json()["status"]["state"], "succeeded", "{line}: {done:?}");
}

fn at(bed: &Bed) -> String {
    format!("/v1/sessions/{}/files/watch", bed.session)
}

/// Type, path and number of what is said until one of this type and path, without what was only written to.
fn until(socket: &mut Socket, last: &str) -> Vec<(String, u64)> {
    let mut seen = Vec::new();
    loop {
        let said = match socket.next() {
            Heard::Said(said) => said,
            other => panic!("{other:?} before {last}; seen: {seen:?}"),
        };
        let word = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        let what = format!("{} {}", word("type"), word("path"));
        if word("type") != "modified" {
            seen.push((what.clone(), said["seq"].as_u64().unwrap_or_else(|| panic!("no number: {said}"))));
        }
        if what == last {
            return seen;
        }
    }
}

fn names(seen: &[(String, u64)]) -> Vec<&str> {
    seen.iter().map(|(what, _)| what.as_str()).collect()
}

#[test]
fn changes_are_told_in_order_and_again_to_who_comes_back() {
    let bed = Bed::new();
    shell(&bed, "mkdir -p w/old");
    let mut socket = bed.open(&at(&bed), "?path=w");
    assert_eq!(names(&until(&mut socket, "ready /workspace/w")), ["ready /workspace/w"]);
    shell(&bed, "cd w; echo 1 > a; mv a b; mkdir new; rm b; echo 2 > old/c");
    let seen = until(&mut socket, "created old/c");
    assert_eq!(names(&seen), ["created a", "moved b", "created new", "removed b", "created old/c"]);
    assert!(seen.is_sorted_by(|one, next| one.1 < next.1), "{seen:?}");
    // Whoever is cut off misses nothing, and gets nothing twice.
    drop(socket);
    shell(&bed, "rmdir w/new");
    let mut again = bed.open(&at(&bed), &format!("?path=/workspace/w&from_seq={}", seen[1].1 + 1));
    let rest = until(&mut again, "removed new");
    assert_eq!(names(&rest), ["created new", "removed b", "created old/c", "removed new"]);
    assert_eq!(rest[..3], seen[2..], "with the same numbers");
    // What is said to it is answered, and it goes on.
    again.say("hello");
    again.type_in("hello");
    for _ in 0..2 {
        let said = again.wait_said("error");
        assert_eq!((&said["code"], &said["is_last"]), (&json!("invalid"), &json!(false)), "{said}");
    }
    shell(&bed, "rm -r w");
    let last = until(&mut again, "gone /workspace/w");
    assert_eq!(names(&last), ["removed old/c", "removed old", "gone /workspace/w"]);
    assert!(last[1].1 < last[2].1, "the end has a number of its own: {last:?}");
    assert_eq!(again.next(), Heard::Closed(1000));
    // Also to who was cut off just before it.
    let mut late = bed.open(&at(&bed), &format!("?path=w&from_seq={}", last[2].1));
    assert_eq!(until(&mut late, "gone /workspace/w"), last[2..]);
    assert_eq!(late.next(), Heard::Closed(1000));
    assert_eq!(bed.refused(&format!("{}/ws?path=w", at(&bed)), &bed.key()).0, 404, "and then it is over");
}

#[test]
fn both_forms_say_the_same() {
    let bed = Bed::new();
    let mut socket = bed.open(&at(&bed), "");
    let ready = socket.wait_said("ready");
    let resume = format!("Last-Event-ID: {}\r\n", ready["seq"]);
    shell(&bed, "echo 1 > a; mkdir d; mv a b; rm b; rmdir d");
    let mut said: Vec<Value> = Vec::new();
    while said.last().is_none_or(|event| (&event["type"], &event["path"]) != (&json!("removed"), &json!("d")))
    {
        match socket.next() {
            Heard::Said(event) => said.push(event),
            other => panic!("{other:?} after {said:?}"),
        }
    }
    let events = bed.client.open("GET", &format!("{}?follow=false", at(&bed)), &resume, "").expect("events");
    let mut plain = Vec::new();
    for line in BufReader::new(events).lines() {
        let line = line.expect("a line");
        if let Some(data) = line.strip_prefix("data: ") {
            let mut data: Value = serde_json::from_str(data).expect("JSON");
            data["type"] = data["change"].clone();
            plain.push(data);
        }
    }
    assert!(plain.len() >= 4, "{plain:?}");
    assert_eq!(plain, said);
}

#[test]
fn what_cannot_be_watched_is_an_answer_and_an_end_says_why() {
    let bed = Bed::new();
    let key = bed.key();
    let ws = format!("{}/ws", at(&bed));
    assert_eq!(bed.refused(&ws, "").0, 401);
    assert_eq!(bed.refused(&format!("{ws}?path=missing"), &key).0, 404);
    assert_eq!(bed.refused(&format!("{ws}?from_seq=x"), &key).0, 422);
    assert_eq!(bed.refused(&format!("{ws}?follow=false"), &key).0, 422);
    assert_eq!(bed.refused("/v1/sessions/ses-aaaaaaaaaaaaaaaa/files/watch/ws", &key).0, 404);
    let plain = bed.client.get(&ws);
    assert_eq!(plain.status, 400, "{plain:?}");
    assert!(plain.body.contains("Upgrade: websocket"), "{plain:?}");
    let (status, error) = bed.refused(&ws, &format!("{key}Origin: https://evil.example\r\n"));
    assert_eq!((status, &error["error"]["details"]["rule"]), (403, &json!("origin")), "{error}");
    let mut socket = bed.open(&at(&bed), "");
    socket.wait_said("ready");
    let gone = bed.client.send("DELETE", &format!("/v1/sessions/{}", bed.session), "", "");
    assert_eq!(gone.expect("an answer").status, 204);
    let said = socket.wait_said("error");
    assert_eq!((&said["code"], &said["is_last"]), (&json!("wrong_state"), &json!(true)), "{said}");
    assert_eq!(said["message"], "the session is ended: deleted", "{said}");
    assert_eq!(socket.next(), Heard::Closed(1011));
    assert_eq!(bed.refused(&ws, &key).0, 409);
}

#[test]
fn a_ticket_is_for_one_page_one_folder_and_one_time() {
    let bed = Bed::new();
    shell(&bed, "mkdir 'a b' other");
    let address = bed.server.address;
    let own = format!("Origin: http://{address}\r\n");
    let ticket = |body: &str| bed.ticket(&at(&bed), body);
    let url = ticket(r#"{"path":"a b"}"#);
    let mut socket = open(address, &url, &own).expect("its own page");
    assert_eq!(socket.wait_said("ready")["path"], "/workspace/a b");
    let denied = |url: &str, headers: &str, part: &str| {
        let (status, error) = bed.refused(url, headers);
        assert_eq!(status, 403, "{error}");
        let message = error["error"]["message"].as_str().expect("a message");
        assert!(message.contains(part), "{part}: {error}");
    };
    denied(&url, &own, "used before");
    denied(&ticket(r#"{"path":"a b"}"#).replace("a%20b", "other"), &own, "not made here, or not for this");
    denied(&ticket("{}"), "Origin: https://app.example\r\n", "app.example");
    let named = || ticket(r#"{"origin":"https://app.example"}"#);
    denied(&named(), &own, "may not open this");
    assert!(open(address, &named(), "Origin: https://app.example\r\n").is_ok());
    // One for a process opens no folder, and one for a folder no process.
    let started =
        bed.client.post(&format!("/v1/sessions/{}/processes", bed.session), r#"{"command":["cat"]}"#);
    let process = format!("/v1/sessions/{}/processes/{}", bed.session, started.json()["number"]);
    let of = |url: &str| url.split_once("ticket=").expect("a ticket").1.to_owned();
    let ws = format!("{}/ws", at(&bed));
    denied(&format!("{ws}?ticket={}", of(&bed.ticket(&process, "{}"))), &own, "not made here");
    denied(&format!("{process}/ws?ticket={}", of(&ticket("{}"))), &own, "not made here");
    // It ends with the key that made it.
    let reader = json!({"name": "reader", "scopes": ["sessions:read"]}).to_string();
    let reader = bed.client.post("/v1/keys", &reader).json();
    let as_reader = bed.client.with_key(reader["secret"].as_str().expect("a secret"));
    let made = as_reader.post(&format!("{}/tickets", at(&bed)), "{}");
    assert_eq!(made.status, 201, "{made:?}");
    let mut by_reader =
        open(address, made.json()["url"].as_str().expect("an address"), &own).expect("a page");
    by_reader.wait_said("ready");
    let id = reader["id"].as_str().expect("an id");
    assert_eq!(bed.client.send("DELETE", &format!("/v1/keys/{id}"), "", "").expect("gone").status, 204);
    let said = by_reader.wait_said("error");
    assert_eq!((&said["code"], &said["is_last"]), (&json!("unauthenticated"), &json!(true)), "{said}");
    assert_eq!(by_reader.next(), Heard::Closed(1008));
    let audit = bed.client.get("/v1/audit?limit=100").body;
    assert!(audit.contains("file.ticket_made") && audit.contains("by ticket"), "{audit}");
}
