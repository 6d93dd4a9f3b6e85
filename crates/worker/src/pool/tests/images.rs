//! Sandboxes of images and of other backends: what they are made of is held, and not all can be limited anew.

use super::*;
use crate::testing::FakeBackend;
use std::sync::{Arc, Weak};

fn on(image: &str) -> SandboxSpec {
    SandboxSpec { image: Image::Named(image.to_owned()), ..spec() }
}

/// Takes one for a job on an image whose layers are `lease`.
async fn take(pool: &Pool, lease: &Arc<u8>) -> bool {
    let runtime = by_name("lang", "python").unwrap();
    let held: Held = Some(Arc::clone(lease) as _);
    pool.take_with_interpreter(on("app"), runtime, &[], held).await.unwrap().interpreter.is_some()
}

#[tokio::test(start_paused = true)]
async fn an_image_is_held_for_as_long_as_anything_of_it_is_wanted() {
    let backend = Arc::new(FakeBackend::new().with_program("python3", python));
    let pool = Pool::new(Arc::<FakeBackend>::clone(&backend), PoolSettings::default());
    let lease = Arc::new(0);
    let held: Weak<u8> = Arc::downgrade(&lease);
    assert!(!take(&pool, &lease).await, "nothing waits for the first one");
    drop(lease);
    settle(&pool).await;
    assert_eq!((pool.counts().waiting, held.strong_count()), (1, 1));
    assert!(take(&pool, &held.upgrade().unwrap()).await, "the second one is waited for");
    settle(&pool).await;
    let _ = tokio::time::timeout(PoolSettings::default().idle * 3, pool.tend()).await;
    assert_eq!((pool.counts().waiting, held.strong_count()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_image_without_the_interpreter_waits_without_it() {
    let backend = Arc::new(FakeBackend::new());
    let pool = Pool::new(Arc::<FakeBackend>::clone(&backend), PoolSettings::default());
    let lease = Arc::new(0);
    assert!(!take(&pool, &lease).await);
    settle(&pool).await;
    assert_eq!(pool.counts().waiting, 1);
    assert!(!take(&pool, &lease).await);
    assert_eq!((pool.counts().warm, pool.counts().cold), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_has_mounts_of_its_own_never_waits() {
    let (backend, pool) = pool(PoolSettings::default());
    let mounts = vec![cofferdam_backend::Mount {
        source: cofferdam_backend::MountSource::Workspace,
        target: cofferdam_core::GuestPath::parse("target", "/src").unwrap(),
        read_only: false,
    }];
    for _ in 0..2 {
        drop(pool.take(SandboxSpec { mounts: mounts.clone(), ..on("app") }).await.unwrap());
        settle(&pool).await;
    }
    assert_eq!((pool.counts().cold, pool.counts().waiting, backend.created()), (2, 0, 2));
}

#[tokio::test(start_paused = true)]
async fn where_limits_stay_a_sandbox_serves_those_with_the_same() {
    let backend = Arc::new(FakeBackend::new().that_keeps_limits());
    let pool = Pool::new(Arc::<FakeBackend>::clone(&backend), PoolSettings::default());
    pool.keep_ready(&on("app"), None, 1);
    settle(&pool).await;
    let other = Limits { pids: 5, ..Limits::default() };
    drop(pool.take(SandboxSpec { limits: other, ..on("app") }).await.unwrap());
    assert_eq!((pool.counts().warm, pool.counts().cold), (0, 1));
    // A time-out is the job's, not the sandbox's.
    let same = Limits { timeout: Duration::from_secs(1), ..Limits::default() };
    drop(pool.take(SandboxSpec { limits: same, ..on("app") }).await.unwrap());
    assert_eq!((pool.counts().warm, pool.counts().cold), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_drained_makes_nothing_any_more() {
    let (backend, pool) = pool(PoolSettings::default());
    pool.keep_ready(&on("app"), None, 2);
    settle(&pool).await;
    tokio::select! {
        _ = pool.tend() => {}
        drained = pool.drain() => drained.unwrap(),
    }
    drop(pool.take(on("app")).await.unwrap());
    settle(&pool).await;
    assert_eq!((pool.counts().waiting, backend.standing(), pool.counts().cold), (0, 0, 1));
}

/// One that is being made when the pool is drained is gone as well.
#[tokio::test(start_paused = true)]
async fn a_pool_is_drained_of_what_is_being_made() {
    let slow = async |_: Guest| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        ExitStatus::Exited(0)
    };
    let backend = Arc::new(FakeBackend::new().with_program("python3", slow));
    let pool = Pool::new(Arc::<FakeBackend>::clone(&backend), PoolSettings::default());
    pool.keep_ready(&on("app"), by_name("lang", "python").ok(), 1);
    tokio::select! {
        _ = pool.tend() => {}
        () = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!((backend.created(), pool.counts().waiting), (1, 0));
            pool.drain().await.unwrap();
            assert_eq!(backend.standing(), 0);
        } => {}
    }
}
