//! Many at once, for what there is once.

use super::client::{Answer, Client};
use super::server::Ground;
use super::{Outcome, Stop, broke_if, needs};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Barrier;

const AT_ONCE: usize = 200;

/// Sends the same request from many threads at the same moment.
fn all_at_once(client: &Client, headers: &str, body: &str) -> Result<Vec<Answer>, Stop> {
    let gate = Barrier::new(AT_ONCE);
    std::thread::scope(|scope| {
        let one = || {
            gate.wait();
            client.send("POST", "/v1/jobs", headers, body.as_bytes())
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(one)).collect();
        threads
            .into_iter()
            .map(|thread| Ok(thread.join().map_err(|_| Stop::Error("a thread died".to_owned()))??))
            .collect()
    })
}

/// One place is left.
pub(crate) fn quota(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let most = 5;
    let quotas =
        json!({"max_running": 0, "max_queued": most, "requests_per_second": 100_000, "burst": 100_000});
    let (_, client) = target.operator().tenant("busy", quotas)?;
    let body = json!({"command": ["true"]});
    for _ in 1..most {
        client.job(&body)?;
    }
    let answers = all_at_once(&client, "", &body.to_string())?;
    let taken = answers.iter().filter(|answer| answer.is_good()).count();
    let kept = client.jobs()?.len();
    broke_if(taken > 1 || kept > most, || format!("{taken} were taken, {kept} are kept, {most} may be"))?;
    needs(taken == 1, || format!("{taken} were taken"))?;
    let others = answers.iter().filter(|answer| !answer.is_good());
    let wrong = others.clone().find(|answer| answer.status != 429);
    broke_if(wrong.is_some(), || format!("{:?}", wrong.map(|answer| answer.status)))?;
    Ok(format!("1 of {AT_ONCE} taken, {} told to come again", others.count()))
}

/// One key of idempotency.
pub(crate) fn idempotency(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let body = json!({"command": ["true"], "metadata": {"n": "1"}}).to_string();
    let answers = all_at_once(&client, "Idempotency-Key: only-once\r\n", &body)?;
    let bad: BTreeSet<u16> =
        answers.iter().filter(|answer| !answer.is_good()).map(|answer| answer.status).collect();
    broke_if(!bad.is_empty(), || format!("some are refused: {bad:?}"))?;
    let said = |answer: &Answer| {
        let job = answer.json();
        (job["id"].to_string(), job["created_at"].to_string(), job["metadata"].to_string())
    };
    let different: BTreeSet<_> = answers.iter().map(said).collect();
    let kept = client.jobs()?.len();
    broke_if(different.len() != 1 || kept != 1, || format!("{} answers, {kept} jobs", different.len()))?;
    let other =
        client.send("POST", "/v1/jobs", "Idempotency-Key: only-once\r\n", br#"{"command":["false"]}"#)?;
    broke_if(other.status != 409, || format!("another body: {}", other.status))?;
    Ok(format!("{AT_ONCE} requests, one job, one answer"))
}
