use crate::bed::Bed;
use cofferdam_api::QuotasRequest;
use cofferdam_control::ControlError;
use std::sync::Arc;
use std::time::Duration;

const MIB: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_at_once_get_exactly_what_the_tenant_may_have() {
    let bed = Arc::new(Bed::new(50, 1 << 30).await);
    let quotas = QuotasRequest { max_running: Some(3), max_queued: Some(5), ..Default::default() };
    let who = bed.tenant("narrow", quotas).await;
    let tasks: Vec<_> = (0..200)
        .map(|_| {
            let (bed, who) = (Arc::clone(&bed), who.clone());
            tokio::spawn(async move { bed.submit(&who, MIB).await })
        })
        .collect();
    let (mut taken, mut refused) = (0, 0);
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => taken += 1,
            Err(ControlError::OverQuota { quota: "max_queued", most: 5, retry_after }) => {
                assert!(retry_after > Duration::ZERO);
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((taken, refused), (8, 192));
    bed.begun(3).await;
    assert_eq!(bed.control.store().queued_of(&who.tenant, 100).await.unwrap().len(), 5);
    // A place that becomes free is taken, and no more than that.
    bed.end(1);
    bed.begun(4).await;
    let (first, second) = (bed.submit(&who, MIB).await, bed.submit(&who, MIB).await);
    assert!(first.is_ok() && second.is_err(), "{first:?} {second:?}");
}

/// With nothing that may wait, what cannot start at once is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_without_a_queue_is_refused_at_once() {
    let bed = Bed::new(50, 1 << 30).await;
    let quotas = QuotasRequest { max_running: Some(1), max_queued: Some(0), ..Default::default() };
    let who = bed.tenant("one", quotas).await;
    assert!(bed.submit(&who, MIB).await.is_ok());
    let refused = bed.submit(&who, MIB).await;
    assert!(matches!(refused, Err(ControlError::OverQuota { quota: "max_queued", .. })), "{refused:?}");
}
