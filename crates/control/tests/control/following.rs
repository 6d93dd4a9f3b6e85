//! Following what another process does.

use crate::bed::Bed;
use cofferdam_api::JobRequest;
use cofferdam_control::{Followed, Settings};
use cofferdam_policy::Action;

#[tokio::test(flavor = "multi_thread")]
async fn output_and_changes_of_another_process_are_followed() {
    let bed = Bed::new().await;
    let other = bed.other().await;
    let (control, _) = bed.control(Settings::default()).await;
    let permit = bed.permit(&other, Action::JobGet).await.unwrap();
    let mut events = other.follow_events(&permit, Some(0), true).await.unwrap();
    let lines: String = (0..20).map(|i| format!("line {i}\n")).collect();
    let id = bed
        .submit(&control, JobRequest { code: Some(lines.clone()), ..JobRequest::default() })
        .await
        .unwrap();
    let mut follower = other.follow_job(&permit, &id, 0, true).await.unwrap();
    let (mut text, mut pieces) = (String::new(), 0);
    let end = loop {
        match follower.next().await.unwrap() {
            Followed::Output(output) => {
                pieces += 1;
                output.iter().for_each(|event| text += std::str::from_utf8(&event.bytes).unwrap());
            }
            Followed::Ended(job) => break job,
            Followed::Stopped | Followed::Now => panic!("nobody stops"),
        }
    };
    assert_eq!((text, end.state.as_str()), (lines, "errored"));
    assert!(pieces > 1, "it was followed while it ran");
    // Who waits hears of it, too, however late.
    let waited = other.wait_job(&permit, &id, std::time::Duration::from_secs(20)).await.unwrap();
    assert!(waited.state.is_final());
    let mut kinds = Vec::new();
    while kinds.len() < 3 {
        let entries = events.next().await.unwrap().unwrap();
        kinds.extend(entries.iter().map(|entry| entry.kind.clone()));
    }
    assert_eq!(kinds, ["job.accepted", "job.running", "job.finished"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_another_processes_job_hears_of_its_end() {
    let bed = Bed::new().await;
    let other = bed.other().await;
    let (control, _) = bed.control(Settings::default()).await;
    let permit = bed.permit(&other, Action::JobGet).await.unwrap();
    let request = JobRequest { code: Some("a\nb\nc\nd".into()), ..JobRequest::default() };
    let id = bed.submit(&control, request).await.unwrap();
    let began = std::time::Instant::now();
    let waited = other.wait_job(&permit, &id, std::time::Duration::from_secs(60)).await.unwrap();
    assert!(waited.state.is_final() && began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}
