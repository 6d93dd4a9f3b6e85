//! Verbs on the steps of a session, and what is seen of one.

use crate::output::{Followable, Output, number, output, read};
use crate::sse::RawEvent;
use crate::{Client, Result};
use cofferdam_api::{
    DisplayData, OutputData, RichResult, SignedDocument, Step, StepList, StepRequest, TruncatedData,
};
use reqwest::Method;
use std::time::Duration;

/// The longest that one request waits for a step's end.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// How often a step is looked at that takes longer.
const LOOK: Duration = Duration::from_millis(500);

/// What is seen of a step. Each event has the number by which it can be gone on from.
#[derive(Debug, Clone, PartialEq)]
pub enum StepEvent {
    Init {
        seq: i64,
    },
    Stdout {
        seq: i64,
        bytes: Vec<u8>,
    },
    Stderr {
        seq: i64,
        bytes: Vec<u8>,
    },
    /// Something that code shows.
    Display {
        seq: i64,
        result: RichResult,
    },
    /// From here on nothing of the stream was kept.
    Truncated {
        seq: i64,
        stream: String,
    },
    /// What came of it.
    Result {
        seq: i64,
        step: Box<Step>,
    },
    /// Nothing more will come.
    Complete {
        seq: i64,
    },
}

impl StepEvent {
    pub fn seq(&self) -> i64 {
        match self {
            Self::Init { seq }
            | Self::Stdout { seq, .. }
            | Self::Stderr { seq, .. }
            | Self::Display { seq, .. }
            | Self::Truncated { seq, .. }
            | Self::Result { seq, .. }
            | Self::Complete { seq } => *seq,
        }
    }
}

impl Followable for StepEvent {
    fn seq(&self) -> i64 {
        self.seq()
    }

    fn is_last(&self) -> bool {
        matches!(self, Self::Complete { .. })
    }

    fn read(raw: &RawEvent) -> std::result::Result<Option<Self>, String> {
        let seq = number(raw);
        Ok(Some(match raw.name.as_str() {
            "init" => Self::Init { seq: seq? },
            "stdout" => Self::Stdout { seq: seq?, bytes: output(read::<OutputData>(&raw.data)?)? },
            "stderr" => Self::Stderr { seq: seq?, bytes: output(read::<OutputData>(&raw.data)?)? },
            "display" => Self::Display { seq: seq?, result: read::<DisplayData>(&raw.data)?.result },
            "truncated" => Self::Truncated { seq: seq?, stream: read::<TruncatedData>(&raw.data)?.stream },
            "result" => Self::Result { seq: seq?, step: Box::new(read(&raw.data)?) },
            "complete" => Self::Complete { seq: seq? },
            _ => return Ok(None),
        }))
    }
}

impl Client {
    pub async fn step_get(&self, session: &str, id: &str) -> Result<Step> {
        self.call(Method::GET, &["v1", "sessions", session, "steps", id]).json().await
    }

    pub async fn step_receipt(&self, session: &str, id: &str) -> Result<SignedDocument> {
        self.call(Method::GET, &["v1", "sessions", session, "steps", id, "receipt"]).json().await
    }

    pub async fn step_interrupt(&self, session: &str, id: &str) -> Result<Step> {
        let path = ["v1", "sessions", session, "steps", id, "interrupt"];
        self.call(Method::POST, &path).repeatable().json().await
    }

    /// Runs a step, once, however often the request has to be sent; and waits for its end for at most `wait`.
    pub async fn step_create(&self, session: &str, request: &StepRequest, wait: Duration) -> Result<Step> {
        let wait = wait.min(MAX_WAIT);
        let path = ["v1", "sessions", session, "steps"];
        let call = self.call(Method::POST, &path).body(request)?.once()?.wait(wait);
        call.query("wait_ms", &wait.as_millis().to_string()).json().await
    }

    /// Runs a step and waits for its end, for as long as it takes.
    pub async fn step_run(&self, session: &str, request: &StepRequest) -> Result<Step> {
        let mut step = self.step_create(session, request, MAX_WAIT).await?;
        while !step.status.state.is_final() {
            tokio::time::sleep(LOOK).await;
            step = self.step_get(session, &step.id).await?;
        }
        Ok(step)
    }

    /// A page of a session's steps, in order, without their results.
    pub async fn step_list(&self, session: &str, cursor: Option<&str>) -> Result<StepList> {
        let mut call = self.call(Method::GET, &["v1", "sessions", session, "steps"]).query("limit", "500");
        if let Some(cursor) = cursor {
            call = call.query("cursor", cursor);
        }
        call.json().await
    }

    /// Follows a step, from its beginning or after a number.
    pub fn step_output(&self, session: &str, id: &str, after: Option<i64>) -> Output<StepEvent> {
        Output::new(self.clone(), &["v1", "sessions", session, "steps", id, "output"], after)
    }
}
