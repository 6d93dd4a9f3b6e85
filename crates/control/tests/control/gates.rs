//! Gates of the worker, which a test cannot have for real: a registry without workers, a backend that recovers.

use crate::bed::{Bed, wait_until};
use cofferdam_api::JobRequest;
use cofferdam_control::{ControlError, Gate, Health, Settings, cell};
use cofferdam_policy::Action;

#[tokio::test(flavor = "multi_thread")]
async fn without_a_worker_new_work_is_refused_until_there_is_one() {
    let bed = Bed::new().await;
    let (control, worker) = bed.control(Settings::default()).await;
    for (health, gate) in [
        (Health::NoWorker, Gate::NoWorker),
        (Health::BackendUnhealthy("no cgroups".into()), Gate::BackendUnhealthy),
    ] {
        *worker.health.lock().unwrap() = health;
        wait_until("the closing", async || !control.closed_gates().is_empty()).await;
        assert_eq!(control.closed_gates()[0].0, gate);
        let before = bed.store.count_queued().await.unwrap();
        for action in Action::ALL {
            let permitted = bed.permit(&control, action).await;
            match cell(gate, action) {
                None => assert!(permitted.is_ok(), "{action:?}: {permitted:?}"),
                Some(refusal) => {
                    let Err(ControlError::Gated { gate: by, retry_after_seconds, .. }) = permitted else {
                        panic!("{action:?}: {permitted:?}");
                    };
                    assert_eq!((by, retry_after_seconds), (gate, refusal.retry_after_seconds));
                }
            }
        }
        assert_eq!(bed.store.count_queued().await.unwrap(), before, "nothing was kept");
        *worker.health.lock().unwrap() = Health::Ready;
        wait_until("the opening", async || control.closed_gates().is_empty()).await;
        bed.submit(&control, JobRequest { code: Some("x".into()), ..JobRequest::default() }).await.unwrap();
    }
    let text = control.metrics_text().await;
    let refused = Action::ALL.into_iter().filter(|action| cell(Gate::NoWorker, *action).is_some()).count();
    assert!(text.contains(&format!("cofferdam_refusals_total{{gate=\"no_worker\"}} {refused}\n")), "{text}");
}
