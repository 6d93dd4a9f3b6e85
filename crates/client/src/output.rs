//! Following output across broken connections, without a gap or a repetition.

use crate::sse::{Parser, RawEvent};
use crate::{Client, ClientError, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{ErrorData, InitData, Job, OutputData, TruncatedData};
use reqwest::{Method, Response};
use serde::de::DeserializeOwned;
use std::collections::VecDeque;

/// What is seen of a job. Each event has the number by which it can be gone on from.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputEvent {
    Init {
        seq: i64,
        id: String,
    },
    Stdout {
        seq: i64,
        bytes: Vec<u8>,
    },
    Stderr {
        seq: i64,
        bytes: Vec<u8>,
    },
    /// From here on nothing of the stream was kept.
    Truncated {
        seq: i64,
        stream: String,
    },
    /// What came of it.
    Result {
        seq: i64,
        job: Box<Job>,
    },
    /// Nothing more will come.
    Complete {
        seq: i64,
    },
}

impl OutputEvent {
    pub fn seq(&self) -> i64 {
        match self {
            Self::Init { seq, .. }
            | Self::Stdout { seq, .. }
            | Self::Stderr { seq, .. }
            | Self::Truncated { seq, .. }
            | Self::Result { seq, .. }
            | Self::Complete { seq } => *seq,
        }
    }
}

/// Events that can be followed.
pub(crate) trait Followable: Sized {
    fn seq(&self) -> i64;

    /// Whether nothing comes after it.
    fn is_last(&self) -> bool;

    /// None for an event of a name that is not known: it is one of the future, and passed over.
    fn read(raw: &RawEvent) -> std::result::Result<Option<Self>, String>;
}

impl Followable for OutputEvent {
    fn seq(&self) -> i64 {
        self.seq()
    }

    fn is_last(&self) -> bool {
        matches!(self, Self::Complete { .. })
    }

    fn read(raw: &RawEvent) -> std::result::Result<Option<Self>, String> {
        event(raw)
    }
}

/// Someone who follows a job, or a step.
#[derive(Debug)]
pub struct Output<E = OutputEvent> {
    client: Client,
    path: Vec<String>,
    /// The last event that was given out.
    last: Option<i64>,
    connection: Option<(Response, Parser)>,
    waiting: VecDeque<E>,
    failures: u32,
    is_over: bool,
    waits: bool,
}

#[allow(private_bounds, reason = "what can be followed is decided here")]
impl<E: Followable> Output<E> {
    pub(crate) fn new(client: Client, path: &[&str], after: Option<i64>) -> Self {
        Self {
            client,
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            last: after,
            connection: None,
            waiting: VecDeque::new(),
            failures: 0,
            is_over: false,
            waits: true,
        }
    }

    /// Only what there is now: a job that goes on is not waited for.
    pub fn up_to_now(mut self) -> Self {
        self.waits = false;
        self
    }

    /// The next event, or none when everything was seen. A connection that breaks is made again, from where it was.
    /// Dropping this between two calls loses nothing but what was not asked for.
    pub async fn next(&mut self) -> Result<Option<E>> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                // A server that repeats itself is not repeated.
                if self.last.is_some_and(|last| event.seq() <= last) {
                    continue;
                }
                self.last = Some(event.seq());
                self.failures = 0;
                self.is_over = event.is_last();
                return Ok(Some(event));
            }
            if self.is_over {
                return Ok(None);
            }
            if self.connection.is_none() {
                // It has patience of its own.
                self.connection = Some((self.connect().await?, Parser::default()));
            }
            if let Err(error) = self.read_on().await {
                self.connection = None;
                self.bear(error).await?;
            }
        }
    }

    async fn connect(&self) -> Result<Response> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let mut call = self.client.call(Method::GET, &path).stream();
        if !self.waits {
            call = call.query("follow", "false");
        }
        if let Some(last) = self.last {
            call = call.header("last-event-id", &last.to_string())?;
        }
        call.open().await
    }

    async fn read_on(&mut self) -> Result<()> {
        let Some((response, parser)) = &mut self.connection else { return Ok(()) };
        let url = response.url().path().to_owned();
        let broken = |what: &str| ClientError::Strange { url: url.clone(), what: what.to_owned() };
        let chunk = match tokio::time::timeout(self.client.patience().silence, response.chunk()).await {
            Err(_) => return Err(broken("nothing came for too long")),
            Ok(Err(source)) => return Err(ClientError::Unreachable { url, source: source.without_url() }),
            Ok(Ok(None)) if !self.waits => {
                self.is_over = true;
                return Ok(());
            }
            Ok(Ok(None)) => return Err(broken("the stream ended before what was followed did")),
            Ok(Ok(Some(chunk))) => chunk,
        };
        for raw in parser.push(&chunk).map_err(|what| broken(&what))? {
            if raw.name == "error" {
                return Err(broken(&read::<ErrorData>(&raw.data).map_or(raw.data, |data| data.message)));
            }
            if let Some(event) = E::read(&raw).map_err(|what| broken(&what))? {
                self.waiting.push_back(event);
            }
        }
        Ok(())
    }

    /// Waits a while after a connection broke; one that breaks each time before anything came is not made for ever.
    async fn bear(&mut self, error: ClientError) -> Result<()> {
        self.failures += 1;
        let patience = self.client.patience();
        if self.failures >= patience.attempts {
            return Err(error);
        }
        tokio::time::sleep(patience.pause(self.failures, None)).await;
        Ok(())
    }
}

pub(crate) fn read<T: DeserializeOwned>(data: &str) -> std::result::Result<T, String> {
    serde_json::from_str(data).map_err(|error| error.to_string())
}

pub(crate) fn number(raw: &RawEvent) -> std::result::Result<i64, &'static str> {
    raw.id.as_deref().and_then(|id| id.parse().ok()).ok_or("an event without a number")
}

/// The exact bytes.
pub(crate) fn output(data: OutputData) -> std::result::Result<Vec<u8>, String> {
    match data.base64 {
        Some(text) => STANDARD.decode(text).map_err(|error| error.to_string()),
        None => Ok(data.text.into_bytes()),
    }
}

fn event(raw: &RawEvent) -> std::result::Result<Option<OutputEvent>, String> {
    let id = || number(raw);
    Ok(Some(match raw.name.as_str() {
        "init" => OutputEvent::Init { seq: id()?, id: read::<InitData>(&raw.data)?.id },
        "stdout" => OutputEvent::Stdout { seq: id()?, bytes: output(read(&raw.data)?)? },
        "stderr" => OutputEvent::Stderr { seq: id()?, bytes: output(read(&raw.data)?)? },
        "truncated" => {
            OutputEvent::Truncated { seq: id()?, stream: read::<TruncatedData>(&raw.data)?.stream }
        }
        "result" => OutputEvent::Result { seq: id()?, job: Box::new(read(&raw.data)?) },
        "complete" => OutputEvent::Complete { seq: id()? },
        _ => return Ok(None),
    }))
}
