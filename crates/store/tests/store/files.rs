//! Backups: of a store that is being written, whole, and of no use to whoever would run things twice.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, claim, end, event, new_job, queue, start, state};
use cofferdam_core::JobState;
use cofferdam_store::file::{KeptFile, back_up, compact, restore};
use cofferdam_store::{Location, NewJob, OutputEvent, OutputKind, Store, StoreError};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const NOW: i64 = 9_000;

fn path(bed: &Bed) -> PathBuf {
    let Location::Sqlite(path) = &bed.location else { unreachable!() };
    path.clone()
}

fn beside(bed: &Bed, name: &str) -> PathBuf {
    path(bed).with_file_name(name)
}

fn key() -> KeptFile {
    KeptFile { path: "signing/a.key".to_owned(), mode: 0o600, bytes: vec![0, 1, 255] }
}

/// Nothing but the file itself is left of making it.
fn assert_alone(path: &Path) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let folder = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let others: Vec<_> = folder
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|other| other.starts_with(name) && other != name)
        .collect();
    assert_eq!(others, [""; 0]);
}

/// Everything that was confirmed before the backup began is in it, and what came meanwhile is in it whole or not at
/// all.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_copied_while_it_is_written() {
    let bed = Bed::sqlite();
    let store = bed.open().await;
    for i in 0..200 {
        start(&store, &format!("before_{i}"), "w1").await;
        let piece = OutputEvent { seq: 1, kind: OutputKind::Stdout, at_ms: 1, bytes: vec![b'x'; 10_000] };
        store.append_output(format!("before_{i}"), 1, vec![piece]).await.unwrap();
        end(&store, &format!("before_{i}"), 1, JobState::Succeeded).await.unwrap();
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let (writing, over) = (store.clone(), Arc::clone(&is_over));
    let writer = tokio::spawn(async move {
        let mut count = 0;
        while !over.load(Ordering::Relaxed) {
            queue(&writing, &format!("meanwhile_{count}")).await;
            count += 1;
        }
        count
    });
    let copy = beside(&bed, "copy.db");
    let made = back_up(&path(&bed), &copy, &[key()]).await.unwrap();
    is_over.store(true, Ordering::Relaxed);
    assert!(writer.await.unwrap() > 0, "nothing was written meanwhile");
    assert!(made.checked.jobs >= 200 && made.checked.tenants == 1 && made.checked.entries >= 400, "{made:?}");
    assert_alone(&copy);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let again = back_up(&path(&bed), &copy, &[]).await;
    assert_refused!(again, StoreError::Failed(text) if text.contains("there already"));

    let target = beside(&bed, "restored.db");
    let restored = restore(&copy, &target, false, false, NOW).await.unwrap();
    assert_eq!(restored.files, [key()]);
    assert_eq!(restored.checked, made.checked);
    assert_alone(&target);
    let back = Store::open(&Location::Sqlite(target.clone())).await.unwrap();
    for i in 0..200 {
        assert_eq!(state(&back, &format!("before_{i}")).await, JobState::Succeeded);
        assert_eq!(back.output(&format!("before_{i}"), 0, 5).await.unwrap()[0].bytes.len(), 10_000);
    }
    back.verify_audit(TENANT).await.unwrap();
    assert!(back.space().await.unwrap().can_shrink);
}

/// On both engines: what ran is lost, what waited is not run, and what is over is as it was.
pub(crate) async fn a_restored_store_runs_nothing_twice(bed: Bed) {
    let store = bed.open().await;
    start(&store, "running", "w1").await;
    start(&store, "over", "w1").await;
    end(&store, "over", 1, JobState::Failed).await.unwrap();
    for i in 0..1200 {
        let job = NewJob { tenant: OTHER.to_owned(), ..new_job(&format!("queued_{i}")) };
        store.accept(job, None, None, Vec::new()).await.unwrap();
    }
    let kept = store.settle_restored(true, NOW).await.unwrap();
    assert_eq!((kept.lost, kept.errored, store.queued_of(OTHER, 2000).await.unwrap().len()), (1, 0, 1200));
    let settled = store.settle_restored(false, NOW).await.unwrap();
    assert_eq!((settled.lost, settled.errored), (0, 1200));
    assert_eq!(store.queued_of(OTHER, 10).await.unwrap(), []);
    assert_eq!(state(&store, "running").await, JobState::Lost);
    assert_eq!(state(&store, "over").await, JobState::Failed);
    let job = store.job(OTHER, "queued_7").await.unwrap().unwrap();
    assert_eq!((job.state, job.reason.as_deref(), job.starts), (JobState::Errored, Some("restored"), 0));
    let late = end(&store, "running", 1, JobState::Succeeded).await;
    assert_refused!(late, StoreError::WrongState { state: JobState::Lost, .. });
    let claimed = store.claim("queued_7".to_owned(), claim("w"), event("job.running", "queued_7")).await;
    assert_refused!(claimed, StoreError::WrongState { state: JobState::Errored, .. });
    for tenant in [TENANT, OTHER] {
        store.verify_audit(tenant).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_is_not_whole_is_refused() {
    let bed = Bed::sqlite();
    let store = bed.open().await;
    for i in 0..50 {
        queue(&store, &format!("job_{i}")).await;
    }
    bed.harm("UPDATE audit SET details = '{}' WHERE tenant_id = 'ten_one' AND seq = 9").await;
    let copy = beside(&bed, "copy.db");
    let refused = back_up(&path(&bed), &copy, &[]).await;
    assert_refused!(refused, StoreError::Unreadable(text) if text.contains("entry 9"));
    assert!(!copy.exists());
    store.close().await;

    let bed = Bed::sqlite();
    let store = bed.open().await;
    for i in 0..50 {
        queue(&store, &format!("job_{i}")).await;
    }
    let copy = beside(&bed, "copy.db");
    back_up(&path(&bed), &copy, &[]).await.unwrap();
    let mut bytes = std::fs::read(&copy).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4000].fill(0x5a);
    std::fs::write(beside(&bed, "harmed.db"), &bytes).unwrap();
    let target = beside(&bed, "target.db");
    assert!(restore(&beside(&bed, "harmed.db"), &target, false, false, NOW).await.is_err());
    assert!(!target.exists() && !beside(&bed, "target.db.restoring").exists());
    // A store is not a backup, and where a store is none is put.
    assert_refused!(restore(&path(&bed), &target, false, false, NOW).await, StoreError::Unreadable(_));
    let there = restore(&copy, &path(&bed), false, false, NOW).await;
    assert_refused!(there, StoreError::Failed(text) if text.contains("already"));
    // Nor is one replaced that is in use.
    let in_use = restore(&copy, &path(&bed), true, false, NOW).await;
    assert_refused!(in_use, StoreError::Failed(text) if text.contains("in use"));
    store.close().await;
    let restored = restore(&copy, &path(&bed), true, false, NOW).await.unwrap();
    assert_eq!(restored.settled.errored, 50);
    assert!(restored.before.unwrap().exists());
}

/// A file from before space could be given back, once it was written anew.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_file_can_be_made_to_shrink() {
    let bed = Bed::sqlite();
    std::fs::write(path(&bed), b"").unwrap();
    // Made without, as an older program did.
    bed.run("PRAGMA auto_vacuum = NONE; PRAGMA journal_mode = WAL; CREATE TABLE x (y TEXT); DROP TABLE x")
        .await;
    let store = bed.open().await;
    queue(&store, "job_a").await;
    assert!(!store.space().await.unwrap().can_shrink);
    assert_refused!(compact(&path(&bed)).await, StoreError::Failed(text) if text.contains("in use"));
    store.close().await;
    compact(&path(&bed)).await.unwrap();
    let store = bed.open().await;
    assert!(store.space().await.unwrap().can_shrink);
    assert_eq!(state(&store, "job_a").await, JobState::Queued);
}

/// PostgreSQL's own tools, as the documents tell.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_comes_back_from_pg_dump() {
    let (bed, target) = (Bed::postgres().await, Bed::postgres().await);
    let store = bed.open().await;
    start(&store, "running", "w1").await;
    queue(&store, "queued").await;
    start(&store, "over", "w1").await;
    let piece = OutputEvent { seq: 1, kind: OutputKind::Stdout, at_ms: 1, bytes: vec![0, 255, b'\\'] };
    store.append_output("over".to_owned(), 1, vec![piece.clone()]).await.unwrap();
    end(&store, "over", 1, JobState::Succeeded).await.unwrap();
    let checked = store.check().await.unwrap();
    let address = |bed: &Bed| match &bed.location {
        Location::Postgres(address) => address.clone(),
        Location::Sqlite(_) => unreachable!(),
    };
    let dump = std::env::temp_dir().join(format!("cofferdam-dump-{}", std::process::id()));
    let (from, to, file) = (address(&bed), address(&target), dump.to_str().unwrap().to_owned());
    let run = |name: &str, words: &[&str]| {
        let done = Command::new(crate::postgres::programs().join(name)).args(words).output().unwrap();
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    };
    run("pg_dump", &["--format=custom", "--file", &file, &from]);
    run("pg_restore", &["--no-owner", "--exit-on-error", "--dbname", &to, &file]);
    std::fs::remove_file(&dump).unwrap();

    let back = Store::open(&target.location).await.unwrap();
    assert_eq!(back.check().await.unwrap(), checked);
    let settled = back.settle_restored(false, NOW).await.unwrap();
    assert_eq!((settled.lost, settled.errored), (1, 1));
    assert_eq!(back.output("over", 0, 5).await.unwrap(), [piece]);
    back.verify_audit(TENANT).await.unwrap();
}
