//! The pool's claims under many orders of what runs at once. Built with `--cfg shuttle` only: see
//! scripts/schedules.sh.
#![cfg(shuttle)]

use cofferdam_backend::{Backend, Capabilities, Result, Sandbox, SandboxSpec, async_trait};
use cofferdam_worker::testing::FakeBackend;
use cofferdam_worker::{JobSpec, Pool, PoolSettings, Work, draw_job_id, draw_sandbox_id, sandbox_spec};
use shuttle::future::{block_on, spawn, yield_now};
use std::sync::Arc;
use tokio::runtime::Builder;

const ORDERS: usize = 2_000;

/// Lets others run while a sandbox is being made, and fails now and then.
#[derive(Debug)]
struct Slow {
    inner: FakeBackend,
    fails: bool,
}

#[async_trait]
impl Backend for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn health(&self) -> Result<()> {
        self.inner.health().await
    }

    async fn create(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>> {
        yield_now().await;
        if self.fails && self.inner.created() % 2 == 1 {
            return Err(cofferdam_backend::BackendError::Gone { cause: "it fails".to_owned() });
        }
        let made = self.inner.create(spec).await;
        yield_now().await;
        made
    }
}

fn spec() -> SandboxSpec {
    let work = Work::Command { argv: vec!["true".to_owned()] };
    sandbox_spec(draw_sandbox_id().expect("an id"), &JobSpec::new(draw_job_id().expect("an id"), work))
}

/// Several requests at once, beside the pool's own work.
fn rush(fails: bool) {
    // For its clock alone, which stands still.
    let clock = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _inside = clock.enter();
    let backend = Arc::new(Slow { inner: FakeBackend::new(), fails });
    let settings = PoolSettings { per_kind: 2, total: 3, ..PoolSettings::default() };
    let pool = Arc::new(Pool::new(Arc::<Slow>::clone(&backend), settings));
    pool.keep_ready(&spec(), None, 2);
    let tended = Arc::clone(&pool);
    let tender = spawn(async move { match tended.tend().await {} });
    let takers: Vec<_> = (0..3)
        .map(|_| {
            let pool = Arc::clone(&pool);
            spawn(async move {
                let taken = pool.take(spec()).await;
                assert!(pool.counts().waiting <= 2, "{:?}", pool.counts());
                taken
            })
        })
        .collect();
    block_on(async {
        let mut taken = Vec::new();
        for taker in takers {
            taken.push(taker.await.expect("it ends"));
        }
        tender.abort();
        let _ = tender.await;
        let counts = pool.counts();
        assert_eq!(counts.warm + counts.cold, 3, "{counts:?}");
        let held = taken.iter().filter(|one| one.is_ok()).count();
        assert!(fails || held == 3);
        // Whatever was made is with somebody, waits, or is gone.
        pool.drain().await.expect("the end of those that wait");
        assert_eq!(backend.inner.standing(), held);
    });
}

#[test]
fn every_request_is_served_once_in_whatever_order() {
    shuttle::check_random(|| rush(false), ORDERS);
}

#[test]
fn a_maker_that_fails_leaves_nobody_waiting() {
    shuttle::check_random(|| rush(true), ORDERS);
}
