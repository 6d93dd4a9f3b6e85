//! Idempotency keys and what is answered, however the writes come together.

use crate::disk::{Connection, Disk, Refused, Take, Taken, Wrong};
use crate::{ORDERS, clock};
use cofferdam_turns::Writer;
use shuttle::future::{JoinHandle, block_on, spawn, yield_now};

fn start(disk: &Disk) -> (Writer<Disk>, JoinHandle<()>) {
    let (writer, task) = Writer::new(disk.clone(), Connection::default());
    (writer, spawn(task))
}

/// The same key at once, twice with one body and once with another, and two that are refused for reasons of their own.
#[test]
fn one_key_makes_one_job_in_whatever_order() {
    let rush = || {
        let clock = clock();
        let _inside = clock.enter();
        let disk = Disk::default();
        let (writer, _task) = start(&disk);
        let ask = |body, id| {
            let writer = writer.clone();
            spawn(async move { writer.write(Take { key: "k", body, id }).await })
        };
        let asked = [(1, 10), (1, 11), (2, 12)].map(|(body, id)| (body, id, ask(body, id)));
        let refused = [(); 2].map(|()| {
            let writer = writer.clone();
            spawn(async move { writer.write(Refused).await })
        });
        block_on(async {
            let mut heard = Vec::new();
            for (body, id, answer) in asked {
                heard.push((body, id, answer.await.expect("it ends").expect("the disk is well")));
            }
            for answer in refused {
                assert_eq!(answer.await.expect("it ends"), Err(Wrong::Refused));
            }
            let jobs = disk.jobs();
            let (first_body, made) = jobs["k"];
            assert_eq!(jobs.len(), 1, "{jobs:?}");
            for (body, id, taken) in heard {
                let expected = match (id == made, body == first_body) {
                    (true, _) => Taken::New(id),
                    (false, true) => Taken::Before(made),
                    (false, false) => Taken::OtherBody,
                };
                assert_eq!(taken, expected);
            }
        });
    };
    shuttle::check_random(rush, ORDERS);
}

/// The process dies at any moment. Whoever asks again with the same key gets the job that it was told of before, and
/// there is never a second one.
#[test]
fn what_was_answered_outlives_a_kill() {
    let rush = || {
        let clock = clock();
        let _inside = clock.enter();
        let disk = Disk::default();
        let (writer, task) = start(&disk);
        let clients = ["a", "b"].map(|key| {
            let writer = writer.clone();
            let id = u32::from(key.as_bytes()[0]);
            (key, id, spawn(async move { writer.write(Take { key, body: 1, id }).await }))
        });
        let killer = spawn(async move {
            yield_now().await;
            task.abort();
            let _ = task.await;
        });
        block_on(async {
            killer.await.expect("it ends");
            drop(writer);
            let (again, _task) = start(&disk);
            for (key, id, client) in clients {
                let heard = client.await.expect("it ends");
                let kept = disk.jobs().get(key).copied();
                let second =
                    again.write(Take { key, body: 1, id: id + 100 }).await.expect("the disk is well");
                match heard {
                    Ok(Taken::New(_)) => {
                        assert_eq!(kept, Some((1, id)), "it was told, so it is kept");
                        assert_eq!(second, Taken::Before(id));
                    }
                    Err(Wrong::Gone) => {
                        let expected = kept.map_or(Taken::New(id + 100), |_| Taken::Before(id));
                        assert_eq!(second, expected, "nobody was told of it: either is right, and only one");
                    }
                    other => panic!("{other:?}"),
                }
            }
        });
    };
    shuttle::check_random(rush, ORDERS);
}

/// Some commits fail. Nobody is told of what is not kept, and nothing is kept of which nobody may know.
#[test]
fn a_commit_that_fails_is_believed_by_nobody() {
    let rush = || {
        let clock = clock();
        let _inside = clock.enter();
        let disk = Disk::failing();
        let (writer, _task) = start(&disk);
        let clients = ["a", "b", "c"].map(|key| {
            let writer = writer.clone();
            (key, spawn(async move { writer.write(Take { key, body: 1, id: 1 }).await }))
        });
        block_on(async {
            for (key, client) in clients {
                let heard = client.await.expect("it ends");
                let is_kept = disk.jobs().contains_key(key);
                assert_eq!(heard, if is_kept { Ok(Taken::New(1)) } else { Err(Wrong::Failed) }, "{key}");
            }
        });
    };
    shuttle::check_random(rush, ORDERS);
}
