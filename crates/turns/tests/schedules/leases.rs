//! Claims, renewals, ends and take-overs of one job, by one process and by two.

use crate::ORDERS;
use crate::book::{Book, LEASE, State};
use cofferdam_turns::{Found, Handle, LeaseTimes, Renewed, Running, Verdict, renewed, verdict};
use shuttle::future::{block_on, spawn, yield_now};
use std::time::Duration;

const JOB: &str = "job-1";

/// What a lease comes to in wall time, which only an unanswered store is measured by.
const LEASE_TIME: Duration = Duration::from_secs(3);

fn times() -> LeaseTimes {
    LeaseTimes { lease_ms: LEASE, margin_ms: 1, out_after_ms: 2, there_for: Duration::ZERO }
}

/// One renewal of all that a process has, as control does it.
async fn renew(running: &Running, book: &Book) {
    let jobs = running.claimed(Duration::ZERO);
    let mut refused = Vec::new();
    for job in &jobs {
        if !book.renew(job.1).await {
            refused.push(job.clone());
        }
    }
    renewed(running, &jobs, &Renewed::But(refused), LEASE_TIME, false);
}

async fn claim(running: &Running, book: &Book, owner: &'static str) -> Option<(Handle, i64)> {
    let handle = running.add(JOB);
    match book.claim(owner).await {
        Some(fence) => {
            handle.claim(fence);
            Some((handle, fence))
        }
        None => {
            running.remove(JOB, &handle);
            None
        }
    }
}

async fn claim_when_queued(running: &Running, book: &Book, owner: &'static str) -> (Handle, i64) {
    loop {
        if let Some(claimed) = claim(running, book, owner).await {
            return claimed;
        }
        yield_now().await;
    }
}

/// A job without room waits in the queue. The request that made it lets go of it while the queue's own turn may have
/// begun it: that run is known, and renewed.
#[test]
fn a_job_that_is_begun_from_the_queue_is_known() {
    let rush = || {
        let (running, book) = (Running::default(), Book::new());
        let maker = {
            let (running, book) = (running.clone(), book.clone());
            let handle = running.add(JOB);
            spawn(async move {
                // It is kept by now, and its maker hears of it a moment later.
                let _ = book.abandoned().await;
                running.remove(JOB, &handle);
            })
        };
        let starter = {
            let (running, book) = (running.clone(), book.clone());
            spawn(async move { claim_when_queued(&running, &book, "a").await })
        };
        block_on(async {
            maker.await.expect("it ends");
            let (_, fence) = starter.await.expect("it ends");
            assert!(running.claimed_by(JOB, fence).is_some(), "nobody renews it");
        });
    };
    shuttle::check_random(rush, ORDERS);
}

/// A job that is tried again may be begun anew before the attempt that failed has let go of it.
#[test]
fn an_attempt_that_ends_leaves_the_next_one_alone() {
    let rush = || {
        let (running, book) = (Running::default(), Book::new());
        let first = {
            let (running, book) = (running.clone(), book.clone());
            spawn(async move {
                let (handle, fence) = claim(&running, &book, "a").await.expect("it waits");
                assert!(book.end(fence, State::Queued).await);
                running.remove(JOB, &handle);
            })
        };
        let second = {
            let (running, book) = (running.clone(), book.clone());
            spawn(async move {
                while book.row().fence == 0 {
                    yield_now().await;
                }
                claim_when_queued(&running, &book, "a").await
            })
        };
        let renewer = {
            let (running, book) = (running.clone(), book.clone());
            spawn(async move {
                for _ in 0..3 {
                    renew(&running, &book).await;
                }
            })
        };
        block_on(async {
            first.await.expect("it ends");
            let (handle, fence) = second.await.expect("it ends");
            renewer.await.expect("it ends");
            assert_eq!(fence, 2);
            assert!(running.claimed_by(JOB, 2).is_some(), "nobody renews it");
            assert!(!is_taken_away(&handle).await, "it was refused for what the one before it is");
            // What is due is never taken from under a run that is known here.
            let found = Found { id: JOB, owner: "a", worker: "a", over_ms: Some(1_000) };
            assert_eq!(verdict(&running, "a", found, times()), Verdict::Ours);
        });
    };
    shuttle::check_random(rush, ORDERS);
}

async fn is_taken_away(handle: &Handle) -> bool {
    let mut looks = std::pin::pin!(handle.taken_away());
    std::future::poll_fn(|context| std::task::Poll::Ready(looks.as_mut().poll(context).is_ready())).await
}

/// Two processes on one store. The first is slow to renew; time passes; the second looks for what nobody renews, and
/// begins it anew. Exactly one of all the attempts ends the job, and it is the last one.
#[test]
fn a_lease_that_ran_out_is_stolen_once() {
    let rush = || {
        let (book, mine, theirs) = (Book::new(), Running::default(), Running::default());
        let first = {
            let (running, book) = (mine.clone(), book.clone());
            spawn(async move {
                let (handle, fence) = claim(&running, &book, "a").await.expect("it waits");
                for _ in 0..4 {
                    yield_now().await;
                }
                let was_taken = is_taken_away(&handle).await;
                let has_ended = book.end(fence, State::Done).await;
                running.remove(JOB, &handle);
                assert!(!(was_taken && has_ended), "what was taken away was still ended here");
                has_ended
            })
        };
        let renewer = {
            let (running, book) = (mine.clone(), book.clone());
            spawn(async move {
                for _ in 0..3 {
                    renew(&running, &book).await;
                }
            })
        };
        let time = {
            let book = book.clone();
            spawn(async move {
                for _ in 0..12 {
                    book.pass_time();
                    yield_now().await;
                }
            })
        };
        let second = {
            let (running, book) = (theirs.clone(), book.clone());
            spawn(async move {
                let mut has_ended = false;
                for _ in 0..6 {
                    let Some((row, over_ms)) = book.abandoned().await else { continue };
                    let found =
                        Found { id: JOB, owner: row.owner, worker: row.owner, over_ms: Some(over_ms) };
                    if verdict(&running, "b", found, times()) != Verdict::GiveUp {
                        continue;
                    }
                    assert!(over_ms > LEASE, "its owner might still run it");
                    if !book.give_up(&row).await {
                        continue;
                    }
                    let Some((handle, fence)) = claim(&running, &book, "b").await else { continue };
                    has_ended |= book.end(fence, State::Done).await;
                    running.remove(JOB, &handle);
                }
                has_ended
            })
        };
        block_on(async {
            let ended = [first.await, second.await].map(|ended| ended.expect("it ends"));
            renewer.await.expect("it ends");
            time.await.expect("it ends");
            let row = book.row();
            assert_eq!(row.state, State::Done, "{row:?}");
            assert_eq!(row.ended_by, [row.fence], "one attempt ended it, the last: {row:?}");
            assert_eq!(ended, [row.owner == "a", row.owner == "b"], "whoever did knows");
            for running in [&mine, &theirs] {
                assert!(running.is_empty(), "nothing is left behind");
            }
        });
    };
    shuttle::check_random(rush, ORDERS);
}
