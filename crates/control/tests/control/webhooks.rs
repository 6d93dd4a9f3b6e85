//! Messages that are refused over and over, and a control plane that comes back.

use crate::bed::{Bed, wait_until};
use cofferdam_api::{JobRequest, WebhookRequest};
use cofferdam_control::{Settings, WebhookSettings};
use cofferdam_webhook::Network;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers with these statuses, one after the other and the last for ever, and keeps what came.
async fn receiver(statuses: &'static [u16]) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let got = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&got);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 64 << 10];
            let n = stream.read(&mut buffer).await.unwrap_or(0);
            let at = {
                let mut kept = kept.lock().unwrap();
                kept.push(String::from_utf8_lossy(&buffer[..n]).into_owned());
                kept.len() - 1
            };
            let status = statuses[at.min(statuses.len() - 1)];
            let _ = stream
                .write_all(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n").as_bytes())
                .await;
        }
    });
    (address, got)
}

fn settings(attempts: u32) -> Settings {
    let webhooks = WebhookSettings {
        allowed: vec![Network::parse("127.0.0.1").unwrap()],
        plain_http: true,
        attempts,
        first_pause: Duration::from_millis(20),
        ..WebhookSettings::default()
    };
    Settings { webhooks, ..Settings::default() }
}

fn request(address: SocketAddr) -> JobRequest {
    let url = format!("http://{address}/hook");
    let webhook = WebhookRequest { url, secret: Some("0123456789abcdef".into()), events: None };
    JobRequest { code: Some("x".into()), webhook: Some(webhook), ..JobRequest::default() }
}

fn header(message: &str, name: &str) -> String {
    let line = message.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")).map(str::to_owned));
    line.unwrap_or_else(|| panic!("no {name} in {message}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_tried_again_as_it_was_until_it_is_taken() {
    let bed = Bed::new().await;
    let (control, _) = bed.control(settings(15)).await;
    let (address, got) = receiver(&[500, 302, 404, 204]).await;
    let id = bed.submit(&control, request(address)).await.unwrap();
    wait_until("the delivery", async || {
        let found = bed.store.deliveries_of(&bed.tenant, &id).await.unwrap();
        found.first().is_some_and(|delivery| delivery.state == "delivered")
    })
    .await;
    let got = got.lock().unwrap().clone();
    assert_eq!(got.len(), 4, "{got:?}");
    let bodies: Vec<_> = got.iter().map(|message| message.split_once("\r\n\r\n").unwrap().1).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
    let body: serde_json::Value = serde_json::from_str(bodies[0]).unwrap();
    assert_eq!((body["job_id"].as_str(), body["state"].as_str()), (Some(id.as_str()), Some("errored")));
    assert_eq!(
        (body["error"].as_str(), body["attempt"].as_i64()),
        (Some("it was never meant to run"), Some(1))
    );
    for message in &got {
        assert_eq!(header(message, "x-cofferdam-event-id"), body["event_id"].as_str().unwrap());
        let seconds: i64 = header(message, "x-cofferdam-timestamp").parse().unwrap();
        let expected = cofferdam_webhook::sign(b"0123456789abcdef", seconds, bodies[0].as_bytes());
        assert_eq!(header(message, "x-cofferdam-signature"), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_nobody_takes_is_given_up_and_noted() {
    let bed = Bed::new().await;
    let (control, _) = bed.control(settings(3)).await;
    let (address, got) = receiver(&[503]).await;
    let id = bed.submit(&control, request(address)).await.unwrap();
    wait_until("the end of patience", async || {
        let found = bed.store.deliveries_of(&bed.tenant, &id).await.unwrap();
        found.first().is_some_and(|delivery| delivery.state == "given_up")
    })
    .await;
    assert_eq!(got.lock().unwrap().len(), 3);
    let audit = bed.store.audit(&bed.tenant, 0, 100).await.unwrap();
    let noted: Vec<_> = audit.iter().filter(|entry| entry.kind == "webhook.given_up").collect();
    assert_eq!((noted.len(), noted[0].resource.as_str()), (1, id.as_str()));
    assert!(noted[0].details.contains("503") && !noted[0].details.contains("127.0.0.1"), "{noted:?}");
    let text = control.metrics_text().await;
    assert!(text.contains("cofferdam_webhooks_total{result=\"failed\"} 2\n"), "{text}");
}

/// Nothing of it is in memory: another control plane on the same store takes it up.
#[tokio::test(flavor = "multi_thread")]
async fn what_one_process_could_not_tell_another_tells() {
    let bed = Bed::new().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    drop(silent);
    let slow = Settings {
        webhooks: WebhookSettings { first_pause: Duration::from_secs(2), ..settings(15).webhooks },
        ..Settings::default()
    };
    let (control, _) = bed.control(slow.clone()).await;
    let id = bed.submit(&control, request(address)).await.unwrap();
    wait_until("the first attempt", async || {
        let found = bed.store.deliveries_of(&bed.tenant, &id).await.unwrap();
        found.first().is_some_and(|delivery| delivery.last_error.is_some())
    })
    .await;
    let (again, _) = bed.control(slow).await;
    let listener = TcpListener::bind(address).await.unwrap();
    let (mut stream, _) =
        tokio::time::timeout(Duration::from_secs(20), listener.accept()).await.unwrap().unwrap();
    // An answer to what was not asked yet is none.
    let mut asked = Vec::new();
    while !asked.ends_with(b"}") {
        assert_ne!(stream.read_buf(&mut asked).await.unwrap(), 0, "{}", String::from_utf8_lossy(&asked));
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    wait_until("the delivery", async || {
        bed.store.deliveries_of(&bed.tenant, &id).await.unwrap()[0].state == "delivered"
    })
    .await;
    drop(again);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_made_and_shown_once_and_bad_webhooks_are_refused() {
    let bed = Bed::new().await;
    let (control, _) = bed.control(settings(1)).await;
    let permit = bed.permit(&control, cofferdam_policy::Action::JobCreate).await.unwrap();
    let hook = |url: &str, secret: Option<&str>| JobRequest {
        code: Some("x".into()),
        webhook: Some(WebhookRequest { url: url.into(), secret: secret.map(str::to_owned), events: None }),
        ..JobRequest::default()
    };
    let made = control.create_job(&permit, hook("https://example.invalid/", None), None).await.unwrap();
    let secret = made.webhook.unwrap().secret.unwrap();
    assert_eq!(secret.len(), 64);
    let given = hook("https://example.invalid/", Some("0123456789abcdef"));
    let given = control.create_job(&permit, given, None).await.unwrap();
    assert_eq!(given.webhook.unwrap().secret, None);
    for (bad, field) in [
        (hook("ftp://example.invalid/", None), "webhook.url"),
        (hook("https://me@example.invalid/", None), "webhook.url"),
        (hook("https://example.invalid/", Some("short")), "webhook.secret"),
    ] {
        match control.create_job(&permit, bad, None).await {
            Err(cofferdam_control::ControlError::Invalid(error)) => assert_eq!(error.field, field),
            other => panic!("{other:?}"),
        }
    }
}
