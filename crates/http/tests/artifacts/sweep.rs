//! What is over goes, and so does what has lost its other half.

use crate::bed::{server, server_with, server_with_quota, until};
use cofferdam_control::{ArtifactSettings, Keep};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_go_when_their_time_is_over() {
    let retention = Keep::For(Duration::from_millis(1500));
    let settings =
        ArtifactSettings { retention, sweep: Duration::from_millis(50), ..ArtifactSettings::default() };
    let bed = server_with(settings).await;
    let id = bed.client.upload("a", "text/plain", b"one").await;
    assert_eq!(bed.client.get(&format!("/v1/artifacts/{id}/content")).await.status, 200);
    until("it is over", || async {
        bed.client.get(&format!("/v1/artifacts/{id}")).await.status == 404 && bed.files().is_empty()
    })
    .await;
    let audit = bed.client.get("/v1/audit").await.json().to_string();
    assert!(audit.contains("artifact.expired"), "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_never_ends_goes_with_its_bytes() {
    let settings = ArtifactSettings {
        upload_time: Duration::from_millis(1500),
        sweep: Duration::from_millis(50),
        ..ArtifactSettings::default()
    };
    let bed = server_with_quota(settings, 3).await;
    let (id, url) = bed.client.announce("a", "text/plain", b"one").await;
    assert_eq!(bed.client.send("PUT", &url, "", b"one").await.status, 200);
    assert_eq!(bed.files().len(), 1);
    until("it is over", || async {
        bed.client.get(&format!("/v1/artifacts/{id}")).await.status == 404 && bed.files().is_empty()
    })
    .await;
    // Its place in the quota is free again.
    bed.client.announce("b", "text/plain", b"two").await;
}

/// Bytes that no record names go when they are old enough; younger ones may be about to get their record.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_without_a_record_go_when_they_are_old() {
    let bed = server().await;
    let id = bed.client.upload("a", "text/plain", b"one").await;
    let kept = bed.files();
    let attempt = kept[0].parent().unwrap();
    let tenant = attempt.parent().unwrap().parent().unwrap();
    let orphans = [
        tenant.join("art-gone/0011223344556677"),
        attempt.parent().unwrap().join("0011223344556677"),
        tenant.parent().unwrap().join("ten-gone/art-gone/0011223344556677"),
    ];
    let old = std::time::SystemTime::now() - Duration::from_secs(7200);
    for orphan in &orphans {
        std::fs::create_dir_all(orphan).unwrap();
        std::fs::write(orphan.join("00000000"), b"old").unwrap();
        std::fs::write(orphan.join("00000001#1"), b"half").unwrap();
    }
    bed.control.sweep_all().await.unwrap();
    assert!(orphans.iter().all(|orphan| orphan.exists()), "they are young");
    for path in
        orphans.iter().flat_map(|orphan| [orphan.join("00000000"), orphan.join("00000001#1"), orphan.clone()])
    {
        std::fs::File::open(path).unwrap().set_modified(old).unwrap();
    }
    // As old as they are, and named by a record.
    for path in [kept[0].clone(), attempt.to_owned()] {
        std::fs::File::open(path).unwrap().set_modified(old).unwrap();
    }
    bed.control.sweep_all().await.unwrap();
    assert!(orphans.iter().all(|orphan| !orphan.exists()));
    assert_eq!(bed.client.get(&format!("/v1/artifacts/{id}/content")).await.body, b"one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_without_bytes_goes_and_says_so() {
    let bed = server().await;
    let lost = bed.client.upload("a", "text/plain", b"one").await;
    let lost_file = bed.files().remove(0);
    let kept = bed.client.upload("b", "text/plain", b"two").await;
    std::fs::remove_file(lost_file).unwrap();
    assert_eq!(bed.client.get(&format!("/v1/artifacts/{lost}/content")).await.status, 500);
    bed.control.sweep_all().await.unwrap();
    assert_eq!(bed.client.get(&format!("/v1/artifacts/{lost}")).await.status, 404);
    assert_eq!(bed.client.get(&format!("/v1/artifacts/{kept}/content")).await.body, b"two");
    let audit = bed.client.get("/v1/audit").await.json().to_string();
    assert!(audit.contains("artifact.lost"), "{audit}");
}

/// A place that was never marked as ours, such as an empty bucket by mistake, costs nobody their records.
#[tokio::test(flavor = "multi_thread")]
async fn the_wrong_place_costs_nothing() {
    let bed = server().await;
    let id = bed.client.upload("a", "text/plain", b"one").await;
    bed.control.sweep_all().await.unwrap();
    let (place, away) = (bed.folder.join("artifacts"), bed.folder.join("away"));
    std::fs::rename(&place, &away).unwrap();
    std::fs::create_dir(&place).unwrap();
    let error = bed.control.sweep_all().await.unwrap_err().to_string();
    assert!(error.contains("not the place"), "{error}");
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::rename(&away, &place).unwrap();
    assert_eq!(bed.client.get(&format!("/v1/artifacts/{id}/content")).await.body, b"one");
}
