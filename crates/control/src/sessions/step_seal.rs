//! What a step is and writes, as it lies in the store: sealed under the key of its session, which is wrapped by the master
//! key and goes first when the session is deleted. A server without a place for artifacts has no master key, and keeps it
//! as it is.

use crate::{Control, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_artifacts::{ObjectKey, steps_about};
use cofferdam_store::{OutputEvent, SealStep, StepPart, StepRecord, StoreError};

/// How a sealed text begins. What is plain is JSON, or a sentence of ours.
const SEALED: &str = "sealed-1:";

/// In the place of a request that nobody can read any more.
const NOTHING: &str = "{}";

/// As many at a time as are sealed at the start.
const BATCH: i64 = 100;

/// The seal of one session's steps.
#[derive(Debug, Clone)]
pub(crate) struct StepSeal {
    session: String,
    key: ObjectKey,
}

impl StepSeal {
    pub(crate) fn new(session: &str, key: ObjectKey) -> Self {
        Self { session: session.to_owned(), key }
    }

    /// What a part is bound to, so that it cannot be put in another's place.
    fn about(&self, step: &str, part: StepPart) -> Vec<u8> {
        let part = match part {
            StepPart::Spec => "spec".to_owned(),
            StepPart::Result => "result".to_owned(),
            StepPart::Message => "message".to_owned(),
            StepPart::Output(seq) => format!("output {seq}"),
        };
        format!("cofferdam step 1\0{}\0{step}\0{part}", self.session).into_bytes()
    }

    fn open_text(&self, step: &str, part: StepPart, text: String) -> Result<String> {
        let Some(sealed) = text.strip_prefix(SEALED) else { return Ok(text) };
        let unreadable = || StoreError::Unreadable(format!("what is kept of {step}"));
        let sealed = STANDARD.decode(sealed).map_err(|_| unreadable())?;
        let opened = self.key.open(&sealed, &self.about(step, part))?;
        Ok(String::from_utf8(opened).map_err(|_| unreadable())?)
    }

    /// Pieces of output as they are kept.
    pub(crate) fn output(&self, step: &str, events: Vec<OutputEvent>) -> Result<Vec<OutputEvent>> {
        let seal = |event: OutputEvent| {
            let bytes = self.key.seal(&event.bytes, &self.about(step, StepPart::Output(event.seq)))?;
            Ok(OutputEvent { bytes, ..event })
        };
        events.into_iter().map(seal).collect()
    }

    fn open_output(&self, step: &str, events: Vec<OutputEvent>) -> Result<Vec<OutputEvent>> {
        let open = |event: OutputEvent| {
            let bytes = self.key.open(&event.bytes, &self.about(step, StepPart::Output(event.seq)))?;
            Ok(OutputEvent { bytes, ..event })
        };
        events.into_iter().map(open).collect()
    }
}

fn failed(error: cofferdam_artifacts::ArtifactError) -> StoreError {
    StoreError::Failed(error.to_string())
}

impl SealStep for StepSeal {
    fn text(&self, step: &str, part: StepPart, plain: &str) -> cofferdam_store::Result<String> {
        let sealed = self.key.seal(plain.as_bytes(), &self.about(step, part)).map_err(failed)?;
        Ok(format!("{SEALED}{}", STANDARD.encode(sealed)))
    }

    fn bytes(&self, step: &str, part: StepPart, plain: &[u8]) -> cofferdam_store::Result<Vec<u8>> {
        self.key.seal(plain, &self.about(step, part)).map_err(failed)
    }
}

impl Control {
    /// A key for the steps of a new session, plain and wrapped.
    pub(crate) fn new_session_key(&self, session: &str) -> Result<Option<(ObjectKey, String)>> {
        let Some(artifacts) = &self.parts.artifacts else { return Ok(None) };
        let key = ObjectKey::draw()?;
        let wrapped = artifacts.vault.master().wrap(&key, &steps_about(session))?;
        Ok(Some((key, wrapped)))
    }

    /// The seal of a session's steps; none where they are kept as they are, or the key is destroyed.
    pub(crate) async fn step_seal(&self, tenant: &str, session: &str) -> Result<Option<StepSeal>> {
        if let Some(key) = self.parts.rooms.key(session) {
            return Ok(Some(StepSeal::new(session, key)));
        }
        let Some(artifacts) = &self.parts.artifacts else { return Ok(None) };
        let Some(wrapped) = self.parts.store.session_key(tenant, session).await? else { return Ok(None) };
        let key = artifacts.vault.master().unwrap(&wrapped, &steps_about(session))?;
        Ok(Some(StepSeal::new(session, key)))
    }

    /// A step of a session, opened. Of one whose key is destroyed only that it was there is known.
    pub(crate) async fn read_step(
        &self,
        tenant: &str,
        session: &str,
        id: &str,
    ) -> Result<Option<StepRecord>> {
        let Some(step) = self.parts.store.step(tenant, session, id).await? else { return Ok(None) };
        let seal = self.step_seal(tenant, session).await?;
        open_step(seal.as_ref(), step).map(Some)
    }

    /// What a step wrote after a number, in order.
    pub async fn step_output(
        &self,
        tenant: &str,
        session: &str,
        id: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<OutputEvent>> {
        let events = self.parts.store.output(id, after, limit).await?;
        if events.is_empty() {
            return Ok(events);
        }
        if let Some(seal) = self.step_seal(tenant, session).await? {
            return seal.open_output(id, events);
        }
        // Without a key it is either plain, or nobody's any more.
        let step = self.parts.store.step(tenant, session, id).await?;
        let is_plain = step.is_some_and(|step| !step.spec.starts_with(SEALED));
        Ok(if is_plain { events } else { Vec::new() })
    }

    /// Seals what was kept before there were keys for it.
    pub(crate) async fn seal_old_sessions(&self) -> Result<()> {
        if self.parts.artifacts.is_none() {
            return Ok(());
        }
        let mut has_sealed = false;
        loop {
            let found = self.parts.store.sessions_without_key(BATCH).await?;
            if found.is_empty() {
                break;
            }
            for session in found {
                if let Some((key, wrapped)) = self.new_session_key(&session)? {
                    let seal = StepSeal::new(&session, key);
                    self.parts.store.seal_session(&session, &wrapped, &seal).await?;
                    has_sealed = true;
                }
            }
        }
        if has_sealed {
            // What it was leaves the database's own files, too.
            self.forget_keys().await?;
        }
        Ok(())
    }
}

pub(crate) fn open_step(seal: Option<&StepSeal>, step: StepRecord) -> Result<StepRecord> {
    let StepRecord { id, spec, result, message, .. } = step.clone();
    let Some(seal) = seal else {
        let is_plain = |text: &String| !text.starts_with(SEALED);
        let spec = if is_plain(&spec) { spec } else { NOTHING.to_owned() };
        return Ok(StepRecord {
            spec,
            result: result.filter(is_plain),
            message: message.filter(is_plain),
            ..step
        });
    };
    let text = |part, text: Option<String>| text.map(|text| seal.open_text(&id, part, text)).transpose();
    Ok(StepRecord {
        spec: seal.open_text(&id, StepPart::Spec, spec)?,
        result: text(StepPart::Result, result)?,
        message: text(StepPart::Message, message)?,
        ..step
    })
}
