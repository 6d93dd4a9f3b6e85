//! Whatever is asked for in whatever order, a job only moves as `JobState` allows, and is over once.

use crate::bed::{Bed, TENANT, claim, end, event, given_up, new_job, unique};
use cofferdam_core::JobState;
use cofferdam_store::{JobRecord, Next, Store};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Each is a transaction on a real database, twelve of them a case.
const CASES: u32 = 40;

#[derive(Debug, Clone)]
enum Verb {
    Claim,
    Finish { fence: i64, state: JobState },
    Cancel,
    GiveUp { fence: i64, next: Next },
}

fn verbs() -> impl Strategy<Value = Verb> {
    prop_oneof![
        Just(Verb::Claim),
        (0..3i64, prop::sample::select(JobState::ALL.to_vec()))
            .prop_map(|(fence, state)| Verb::Finish { fence, state }),
        Just(Verb::Cancel),
        (0..3i64, prop::sample::select(vec![Next::Lost, Next::Again { wait_ms: 0 }, Next::Unstarted]))
            .prop_map(|(fence, next)| Verb::GiveUp { fence, next }),
    ]
}

async fn apply(store: &Store, id: &str, verb: Verb) {
    // A refusal is an answer like any other; what counts is what the job is afterwards.
    let _ = match verb {
        Verb::Claim => store.claim(id.to_owned(), claim("w1"), event("job.started", id)).await.map(drop),
        Verb::Finish { fence, state } => end(store, id, fence, state).await,
        Verb::Cancel => {
            let event = event("job.cancelled", id);
            store.cancel(TENANT.to_owned(), id.to_owned(), "key".to_owned(), event).await.map(drop)
        }
        Verb::GiveUp { fence, next } => {
            store.give_up(given_up(id, fence, next), Vec::new(), event("job.given_up", id)).await
        }
    };
}

async fn walk(store: &Store, is_claimed: bool, verbs: Vec<Verb>) -> Result<(), TestCaseError> {
    let id = format!("job_{}", unique());
    store.accept(new_job(&id), is_claimed.then(|| claim("w1")), None, Vec::new()).await.unwrap();
    let look = async || -> JobRecord { store.job(TENANT, &id).await.unwrap().unwrap() };
    let mut before = look().await;
    for verb in verbs {
        apply(store, &id, verb.clone()).await;
        let after = look().await;
        if before.state.is_final() {
            prop_assert_eq!(&after, &before, "{:?} changed a job that was over", verb);
        }
        let may = after.state == before.state || before.state.may_become(after.state);
        prop_assert!(may, "{:?}: {} became {}", verb, before.state, after.state);
        let is_asked = matches!(verb, Verb::GiveUp { next: Next::Again { .. } | Next::Unstarted, .. });
        prop_assert!(
            after.state != JobState::Queued || before.state == JobState::Queued || is_asked,
            "{:?}",
            verb
        );
        prop_assert!(after.fence >= before.fence && after.starts <= after.fence, "{:?}", after);
        before = after;
    }
    Ok(())
}

pub(crate) async fn states_only_move_as_allowed(bed: Bed) {
    let store = bed.open().await;
    let runtime = tokio::runtime::Handle::current();
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    tokio::task::block_in_place(|| {
        TestRunner::new(config)
            .run(&(any::<bool>(), vec(verbs(), 1..12)), |(is_claimed, verbs)| {
                runtime.block_on(walk(&store, is_claimed, verbs))
            })
            .unwrap();
    });
    store.verify_audit(TENANT).await.unwrap();
}
