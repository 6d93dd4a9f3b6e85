use super::*;
use crate::testing::FakeBackend;
use crate::{JobSpec, Work, draw_job_id, draw_sandbox_id, sandbox_spec};
use cofferdam_core::Limits;

fn spec() -> SandboxSpec {
    let work = Work::Command { argv: vec!["true".to_owned()] };
    sandbox_spec(draw_sandbox_id().unwrap(), &JobSpec::new(draw_job_id().unwrap(), work))
}

fn pool(settings: PoolSettings) -> (Arc<FakeBackend>, Pool) {
    let backend = Arc::new(FakeBackend::new());
    (Arc::clone(&backend), Pool::new(backend, settings))
}

/// Tends the pool until nothing is left to do.
async fn settle(pool: &Pool) {
    let _ = tokio::time::timeout(Duration::from_millis(1), pool.tend()).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_ready_is_handed_out_once_and_replaced() {
    let (backend, pool) = pool(PoolSettings::default());
    pool.keep_ready(&spec(), 2);
    settle(&pool).await;
    assert_eq!((backend.created(), pool.counts().waiting), (2, 2));
    let first = pool.take(spec()).await.unwrap();
    let second = pool.take(spec()).await.unwrap();
    assert_eq!((backend.created(), pool.counts().warm, pool.counts().waiting), (2, 2, 0));
    settle(&pool).await;
    assert_eq!(pool.counts().waiting, 2);
    first.destroy().await.unwrap();
    second.destroy().await.unwrap();
    assert_eq!(backend.standing(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_served_cold_without_an_error() {
    let (backend, pool) = pool(PoolSettings::default());
    pool.keep_ready(&spec(), 3);
    settle(&pool).await;
    let mut taken = Vec::new();
    for _ in 0..30 {
        taken.push(pool.take(spec()).await.unwrap());
    }
    let counts = pool.counts();
    assert_eq!((counts.warm, counts.cold, backend.created()), (3, 27, 30));
    settle(&pool).await;
    assert_eq!(pool.counts().waiting, PoolSettings::default().per_kind);
}

#[tokio::test(start_paused = true)]
async fn another_kind_is_never_served_from_the_wrong_shelf() {
    let (backend, pool) = pool(PoolSettings::default());
    pool.keep_ready(&spec(), 1);
    settle(&pool).await;
    for other in [
        SandboxSpec { image: cofferdam_backend::Image::Folder("/elsewhere".into()), ..spec() },
        SandboxSpec { terminal: true, ..spec() },
        SandboxSpec { network: cofferdam_core::NetworkPolicy::Restricted, ..spec() },
        SandboxSpec { limits: Limits { disk: Limits::memory_disk(64 << 20), ..Limits::default() }, ..spec() },
    ] {
        drop(pool.take(other).await.unwrap());
    }
    assert_eq!((pool.counts().warm, pool.counts().cold), (0, 4));
    let smaller = Limits { memory_bytes: 2 << 30, pids: 5, ..Limits::default() };
    drop(pool.take(SandboxSpec { limits: smaller, ..spec() }).await.unwrap());
    assert_eq!((pool.counts().warm, backend.created()), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn the_bounds_hold() {
    let (_, by_count) = pool(PoolSettings { total: 3, ..PoolSettings::default() });
    by_count.keep_ready(&spec(), 100);
    settle(&by_count).await;
    assert_eq!(by_count.counts().waiting, 3);
    let (_, by_bytes) = pool(PoolSettings { bytes: 2 * IDLE_SANDBOX_BYTES, ..PoolSettings::default() });
    by_bytes.keep_ready(&spec(), 100);
    settle(&by_bytes).await;
    assert_eq!(by_bytes.counts().waiting, 2);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_asks_for_goes() {
    let (backend, pool) = pool(PoolSettings::default());
    pool.keep_ready(&spec(), 2);
    settle(&pool).await;
    let _ = tokio::time::timeout(PoolSettings::default().idle * 4, pool.tend()).await;
    assert_eq!((pool.counts().waiting, backend.standing()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn draining_leaves_nothing() {
    let (backend, pool) = pool(PoolSettings::default());
    pool.keep_ready(&spec(), 4);
    settle(&pool).await;
    pool.drain().await.unwrap();
    assert_eq!((pool.counts().waiting, backend.standing()), (0, 0));
}
