//! Rules that do not come to an end: whoever asks is denied, it is noted, and nothing is kept.

use crate::bed::Bed;
use cofferdam_api::JobRequest;
use cofferdam_control::{ControlError, Settings};

const ENDLESS: &str = r#"
package cofferdam
import rego.v1
decision := {"allow": true, "denials": []} if {
    some a in numbers.range(1, 4000)
    some b in numbers.range(1, 4000)
    some c in numbers.range(1, 4000)
    a + b + c == 0
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_takes_too_long_is_a_denial_that_is_noted() {
    let bed = Bed::new().await;
    let (control, _) = bed.control(Settings { rules: Some(ENDLESS.to_owned()), ..Settings::default() }).await;
    let denied = bed.submit(&control, JobRequest::default()).await;
    match denied {
        Err(ControlError::Denied(denial)) => assert_eq!(denial.rule, "policy_timeout"),
        other => panic!("{other:?}"),
    }
    let audit = bed.store.audit(&bed.tenant, 0, 100).await.unwrap();
    let noted: Vec<_> = audit.iter().filter(|entry| entry.kind == "denied").collect();
    let [entry] = &noted[..] else { panic!("{audit:?}") };
    let details: serde_json::Value = serde_json::from_str(&entry.details).unwrap();
    assert_eq!(details, serde_json::json!({"action": "job.create", "rule": "policy_timeout"}));
    assert_eq!(bed.store.count_queued().await.unwrap(), 0, "no job is kept");
    assert!(!audit.iter().any(|entry| entry.kind.starts_with("job.")), "{audit:?}");
}
