use crate::bed::Bed;
use cofferdam_api::QuotasRequest;
use std::sync::Arc;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Submits many at once, as many clients would.
async fn submit_many(bed: &Arc<Bed>, who: &cofferdam_policy::Principal, count: usize) -> Vec<String> {
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let (bed, who) = (Arc::clone(bed), who.clone());
            tokio::spawn(async move { bed.submit(&who, MIB).await.unwrap() })
        })
        .collect();
    let mut ids = Vec::with_capacity(count);
    for task in tasks {
        ids.push(task.await.unwrap());
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_jobs_of_one_tenant_do_not_delay_another_tenants_one() {
    let bed = Arc::new(Bed::new(2, 1 << 30).await);
    let many = bed.tenant("many", QuotasRequest::default()).await;
    let one = bed.tenant("one", QuotasRequest::default()).await;
    submit_many(&bed, &many, 5000).await;
    bed.begun(2).await;
    let job = bed.submit(&one, MIB).await.unwrap();
    let ends = bed.ends_until_begun(&job).await;
    // The next that begins is either it, or one whose start was on its way when it came.
    assert!(ends <= 2, "{ends} jobs ended before it began");
}

/// While small ones keep coming, one that needs the whole machine begins; and while it waits, they go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_job_neither_starves_nor_blocks() {
    let bed = Arc::new(Bed::new(4, 100 * MIB).await);
    let small = bed.tenant("small", QuotasRequest::default()).await;
    let large = bed.tenant("large", QuotasRequest::default()).await;
    submit_many(&bed, &small, 200).await;
    bed.begun(4).await;
    let job = bed.submit(&large, 100 * MIB).await.unwrap();
    let mut ends = 0;
    let patience = tokio::time::Instant::now() + Duration::from_secs(60);
    while !bed.gate.began.lock().unwrap().contains(&job) {
        bed.end(1);
        ends += 1;
        // What ends may bring the large one, a small one, or (once room is held) nobody.
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(ends < 60 && tokio::time::Instant::now() < patience, "it starves");
    }
    let before = bed.gate.began.lock().unwrap().iter().position(|begun| *begun == job).unwrap();
    assert!(before > 4, "small ones went on meanwhile");
}

/// A tenant at its own limit waits for itself, and nobody else waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_at_its_quota_does_not_hold_up_others() {
    let bed = Arc::new(Bed::new(4, 1 << 30).await);
    let narrow = bed.tenant("narrow", QuotasRequest { max_running: Some(1), ..Default::default() }).await;
    let other = bed.tenant("other", QuotasRequest::default()).await;
    submit_many(&bed, &narrow, 20).await;
    bed.begun(1).await;
    let others = submit_many(&bed, &other, 3).await;
    let begun = bed.begun(4).await;
    let of_the_other = begun.iter().filter(|job| others.contains(job)).count();
    assert_eq!((begun.len(), of_the_other), (4, 3), "one of the one, three of the other");
    // Nothing more begins: the other has none, the narrow one may not.
    let mut counts = bed.gate.changed.subscribe();
    let more = tokio::time::timeout(Duration::from_millis(300), counts.wait_for(|count| *count > 4)).await;
    assert!(more.is_err(), "a tenant has more than it may");
    bed.end(1);
    bed.begun(5).await;
}

/// A job that waits and is cancelled does not stand in the way of its tenant's next.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_at_the_head_is_not_waited_for() {
    use cofferdam_policy::Action;
    let bed = Arc::new(Bed::new(4, 100 * MIB).await);
    let first = bed.tenant("first", QuotasRequest::default()).await;
    let second = bed.tenant("second", QuotasRequest::default()).await;
    let third = bed.tenant("third", QuotasRequest::default()).await;
    bed.submit(&first, 50 * MIB).await.unwrap();
    bed.begun(1).await;
    let large = bed.submit(&second, 80 * MIB).await.unwrap();
    // Its start shows that the queue was looked at, with the large one at the head of its own.
    bed.submit(&third, 10 * MIB).await.unwrap();
    bed.begun(2).await;
    let small = bed.submit(&second, 10 * MIB).await.unwrap();
    let permit = bed.control.permit(&second, Action::JobCancel, &second.tenant, None).await.unwrap();
    bed.control.cancel_job(&permit, &large).await.unwrap();
    let begun = tokio::time::timeout(Duration::from_secs(10), bed.begun(3)).await.expect("it begins");
    assert_eq!(begun[2], small);
}
