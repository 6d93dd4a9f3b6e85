//! What only one of the places can show.

use crate::bed::{Bed, bytes, master};
use crate::s3;
use cofferdam_artifacts::{ArtifactError, Location, Vault};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

/// A kill in the middle of a file leaves a part that is no object. It is listed and removed all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_file_is_found_in_a_folder() {
    let bed = Bed::folder().await;
    let folder = bed.folder.clone().unwrap();
    let attempt = folder.join("ten-a/art-a/0011223344556677");
    std::fs::create_dir_all(&attempt).unwrap();
    std::fs::write(attempt.join("00000000#1"), b"half").unwrap();
    assert_eq!(bed.objects().await, [], "to an object store there is nothing");
    let mut list = bed.vault.list();
    let found = list.recv().await.unwrap().unwrap();
    assert_eq!((found.tenant.as_str(), found.id.as_str()), ("ten-a", "art-a"));
    bed.vault.remove("ten-a", "art-a", None).await.unwrap();
    assert!(!folder.join("ten-a/art-a").exists());
}

/// A link is not what was put there, even to the same bytes, and a pipe would be waited for without end.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_file_is_not_opened() {
    let bed = Bed::folder().await;
    let kept = bed.write("ten-a", "art-a", bytes(10, 1)).await;
    assert!(bed.read_all(&kept).await.is_ok());
    let folder = bed.folder.clone().unwrap();
    let segment = folder.join(bed.objects().await.remove(0).0);
    let aside = folder.join("aside");
    std::fs::rename(&segment, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &segment).unwrap();
    let read = bed.read_all(&kept).await.map(|bytes| bytes.len());
    assert!(matches!(read, Err(ArtifactError::Damaged("a segment is no file"))), "{read:?}");
    std::fs::rename(&aside, &segment).unwrap();
    assert!(bed.read_all(&kept).await.is_ok(), "it was the link");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_its_owners_alone() {
    let bed = Bed::folder().await;
    let mode = std::fs::metadata(bed.folder.as_ref().unwrap()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

/// Also the positive control for every other case: the store of the tests looks at keys.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_refuses_wrong_credentials() {
    let mut bucket = tokio::task::spawn_blocking(s3::bucket).await.unwrap();
    bucket.secret_access_key = Some("another".to_owned());
    let vault = Vault::open(&Location::S3(bucket), master()).unwrap();
    assert!(matches!(vault.check().await, Err(ArtifactError::Away(_))));
    assert!(matches!(vault.mark().await, Err(ArtifactError::Away(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_is_said_to_be() {
    let mut bucket = tokio::task::spawn_blocking(s3::bucket).await.unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    bucket.endpoint = Some(format!("http://127.0.0.1:{port}"));
    let vault = Vault::open(&Location::S3(bucket), master()).unwrap();
    assert!(matches!(vault.check().await, Err(ArtifactError::Away(_))));
    let name = cofferdam_artifacts::Name::draw("ten-a", "art-a").unwrap();
    let (key, _) = vault.new_key(&name).unwrap();
    let mut writing = vault.write(name, key);
    writing.write(&bytes(10, 1)).await.unwrap();
    assert!(matches!(writing.finish().await, Err(ArtifactError::Away(_))));
}
