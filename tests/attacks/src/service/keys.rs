//! Keys: guessed, and outlived.

use super::server::Ground;
use super::{Outcome, broke, broke_if, cannot, needs};
use crate::plants::random_hex;
use std::time::{Duration, Instant};

/// Many wrong keys, some of them almost right.
pub(crate) fn guesses(ground: &Ground) -> Outcome {
    let target = ground.start(&["--log-level", "debug"])?;
    let (nobody, operator) = (target.nobody(), target.operator());
    let real = &target.key;
    let mut wrong = vec![
        real[..real.len() - 1].to_owned(),
        format!("{real}0"),
        real.to_uppercase(),
        real.replace("cof_", ""),
        format!("{real}\t"),
        format!("cof_{}", "0".repeat(64)),
        "' OR '1'='1".to_owned(),
        "%".to_owned(),
    ];
    wrong.retain(|key| key.trim() != real);
    for _ in 0..300 {
        wrong.push(format!("cof_{}", random_hex(32)?));
    }
    let mut slowed = 0;
    for key in &wrong {
        let answer = nobody.with_key(key).get("/v1/jobs")?;
        match answer.status {
            401 => {}
            429 if answer.header("retry-after").is_some() => slowed += 1,
            status => return broke(format!("a wrong key: {status}")),
        }
    }
    broke_if(slowed == 0, || format!("{} wrong keys, and nobody is slowed down", wrong.len()))?;
    broke_if(operator.get("/v1/jobs")?.status != 200, || "a right key is held up by wrong ones".to_owned())?;
    let kept = format!("{}{}", target.log(), operator.get("/v1/audit?limit=500")?.text());
    needs(target.log().len() > 1000, || "nothing was logged, so nothing is shown".to_owned())?;
    let found = wrong
        .iter()
        .chain([real])
        .find(|key| key.len() > 30 && kept.contains(key.trim_start_matches("cof_")));
    broke_if(found.is_some(), || "a key is in the log or in the audit".to_owned())?;
    Ok(format!("{} wrong keys refused, {slowed} of them slowed down, none is kept", wrong.len()))
}

/// Streams that were opened with a key that is taken back.
pub(crate) fn stream(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let operator = target.operator();
    let job = operator.job(&serde_json::json!({"command": "while :; do echo x; sleep .3; done"}))?;
    let patience = Duration::from_secs(12);
    let mut longest = Duration::ZERO;
    for path in ["/v1/events".to_owned(), format!("/v1/jobs/{job}/output")] {
        let (id, secret) = operator.key(&["jobs:read"])?;
        let mut events = target.nobody().with_key(&secret).events(&path)?;
        match events.next() {
            Some(Ok((name, _))) if name == "init" => {}
            other => return cannot(format!("{path} does not begin: {other:?}")),
        }
        operator.delete(&format!("/v1/keys/{id}"))?;
        let began = Instant::now();
        let mut last = None;
        for event in events {
            broke_if(began.elapsed() > patience, || format!("{path} goes on after its key"))?;
            last = Some(event?);
        }
        longest = longest.max(began.elapsed());
        let code = last.as_ref().map(|(_, data)| data["code"].clone());
        broke_if(code != Some("unauthenticated".into()), || format!("{path} ends without a word: {last:?}"))?;
    }
    operator.post(&format!("/v1/jobs/{job}/cancel"), &serde_json::json!({}))?;
    Ok(format!("ended after {} ms at most", longest.as_millis()))
}
