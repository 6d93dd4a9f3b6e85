//! A fork stands its session still for as long as its files are read, and no longer, however that ends.

use crate::bed::Bed;
use crate::roles::{ask, make, text};
use axum::http::StatusCode;
use cofferdam_control::Settings;
use serde_json::{Value, json};

async fn fork(bed: &Bed, parent: &str, count: u64) -> (StatusCode, Value) {
    bed.sessions.noted();
    let path = format!("/v1/sessions/{parent}/fork");
    ask(bed, "POST", &path, Some(&bed.key), Some(json!({"count": count}))).await
}

#[tokio::test]
async fn a_session_is_held_while_it_is_copied_and_no_longer() {
    let bed = Bed::new(Settings::default()).await;
    let parent = text(&make(&bed, "/v1/sessions", json!({})).await, "id");
    let (status, forked) = fork(&bed, &parent, 2).await;
    assert_eq!(status, 201, "{forked}");
    // When both children have their sandboxes, and once for both of them, so that they have the same files.
    assert_eq!(bed.sessions.noted(), ["start", "start", "hold", "copy", "copy", "thaw"]);
}

#[tokio::test]
async fn a_copy_that_fails_lets_the_session_go_on_and_leaves_no_child() {
    let bed = Bed::new(Settings::default()).await;
    let parent = text(&make(&bed, "/v1/sessions", json!({})).await, "id");
    bed.sessions.fail_copies(Some("disk_full"));
    let (status, refused) = fork(&bed, &parent, 2).await;
    assert_eq!(status, 503, "{refused}");
    assert!(refused.to_string().contains("No space left on device"), "{refused}");
    let noted = bed.sessions.noted();
    assert_eq!(noted[..4], ["start", "start", "hold", "copy"], "{noted:?}");
    let times = |word: &str| noted.iter().filter(|noted| **noted == word).count();
    assert_eq!((times("hold"), times("thaw"), times("terminate")), (1, 1, 2), "{noted:?}");
    let (_, ready) = ask(&bed, "GET", "/v1/sessions?state=ready", Some(&bed.key), None).await;
    assert_eq!(ready["sessions"].as_array().map(Vec::len), Some(1), "{ready}");
}

#[tokio::test]
async fn where_nothing_is_handed_over_the_files_go_as_a_stream() {
    let bed = Bed::new(Settings::default()).await;
    let parent = text(&make(&bed, "/v1/sessions", json!({})).await, "id");
    bed.sessions.fail_copies(Some("unsupported"));
    let (status, forked) = fork(&bed, &parent, 1).await;
    assert_eq!(status, 201, "{forked}");
    assert_eq!(bed.sessions.noted(), ["start", "hold", "copy", "save", "restore", "thaw"]);
}

#[tokio::test]
async fn a_child_that_cannot_be_made_leaves_the_session_running() {
    let bed = Bed::new(Settings::default()).await;
    let parent = text(&make(&bed, "/v1/sessions", json!({})).await, "id");
    bed.sessions.fail_starts_after(Some(1));
    let (status, refused) = fork(&bed, &parent, 3).await;
    assert_eq!(status, 503, "{refused}");
    assert!(
        refused.to_string().contains("no more sandboxes"),
        "why, and not that there was a reason: {refused}"
    );
    let noted = bed.sessions.noted();
    assert!(!noted.contains(&"hold") && !noted.contains(&"copy"), "{noted:?}");
    bed.sessions.fail_starts_after(None);
    let (_, ready) = ask(&bed, "GET", "/v1/sessions?state=ready", Some(&bed.key), None).await;
    assert_eq!(ready["sessions"].as_array().map(Vec::len), Some(1), "{ready}");
}
