//! `worker.list`, and what workers say of themselves.

use crate::fleet::{HEARTBEAT, signed};
use crate::{Capacity, Control, ControlError, Result};
use cofferdam_api::{WorkerCapacity, WorkerHeartbeat, WorkerHeartbeatAnswer, WorkerSession, WorkerView};
use cofferdam_core::InvalidValue;
use cofferdam_policy::Permit;
use cofferdam_store::{WorkerRecord, WorkerRoom};
use std::collections::BTreeSet;

const MAX_LABELS: usize = 32;
const MAX_TEXT_BYTES: usize = 512;
const MAX_SESSIONS: usize = 100_000;

/// They are kept with each word of a worker.
pub const MAX_WORKER_IMAGES: usize = 256;

/// Why a session is lost is a sentence, and a program's message in it.
const MAX_LOST_BYTES: usize = 2048;

impl Control {
    /// Every worker that this process knows. `_permit` is for looking, and is all that this does.
    pub fn list_workers(&self, _permit: &Permit) -> Vec<WorkerView> {
        let members = self.parts.fleet.list().into_iter();
        let view = members.map(|member| WorkerView {
            state: match member.url.is_none() && self.is_draining() {
                true => "draining",
                false => member.state(),
            }
            .to_owned(),
            last_heartbeat_ms_ago: member.url.as_ref().map(|_| member.silent_ms),
            capacity: on_the_wire(member.offer.capacity),
            used: on_the_wire(member.used),
            id: member.id,
            url: member.url,
            labels: member.offer.labels,
            backends: member.offer.backends,
            problem: member.problem,
        });
        view.collect()
    }

    /// Notes that a worker is there. Whoever calls this has seen that it is one, by its service token.
    pub async fn worker_heartbeat(&self, id: &str, beat: WorkerHeartbeat) -> Result<WorkerHeartbeatAnswer> {
        if !self.parts.fleet.takes_others() {
            return Err(ControlError::Unavailable("this server runs its jobs itself".to_owned()));
        }
        check(id, &beat)?;
        let WorkerHeartbeat { url, labels, backends, capacity, is_draining, problem, images, sessions } =
            beat;
        let problem = problem.map(|text| text.replace('\0', "\u{fffd}"));
        let has_problem = problem.is_some();
        let record = WorkerRecord {
            id: id.to_owned(),
            url,
            labels: serde_json::to_string(&labels).unwrap_or_default(),
            backends: backends.join(" "),
            images: images.map(|images| images.join(" ")),
            room: WorkerRoom {
                slots: signed(capacity.slots),
                cpus_millis: signed(capacity.cpus_millis),
                memory_bytes: signed(capacity.memory_bytes),
            },
            is_draining,
            problem,
            registered_at_ms: 0,
            silent_ms: 0,
        };
        // Whoever is there already, and as well as before, is no news.
        let known = self.parts.fleet.list().into_iter().find(|member| member.id == id && !member.is_out());
        let is_new = known.is_none();
        let is_news = known.is_none_or(|member| {
            member.problem.is_some() != has_problem || member.offer.images != record_images(&record)
        });
        self.parts.store.heartbeat(record).await?;
        if is_news || is_draining {
            self.attend_due().await?;
        }
        if is_new {
            let pinning = self.clone();
            tokio::spawn(async move { pinning.pin_registered().await });
        }
        self.end_lost_of(id, &sessions).await?;
        let not_yours = self.not_yours(id, sessions).await?;
        if is_draining {
            self.archive_soon(id);
        }
        Ok(WorkerHeartbeatAnswer { next_ms: HEARTBEAT.as_millis() as u64, not_yours })
    }
}

fn record_images(record: &WorkerRecord) -> Option<BTreeSet<String>> {
    record.images.as_ref().map(|images| images.split_whitespace().map(str::to_owned).collect())
}

fn check(id: &str, beat: &WorkerHeartbeat) -> Result<()> {
    let wrong = |field: &str, value: &str, fix: &str| {
        let value: String = value.chars().take(100).collect();
        Err(ControlError::Invalid(InvalidValue::new(field, value, fix)))
    };
    let is_plain =
        |text: &str| !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_graphic());
    if !is_plain(id) {
        return wrong("id", id, "it must be 1 to 64 visible ASCII characters");
    }
    if !(beat.url.starts_with("http://") || beat.url.starts_with("https://"))
        || beat.url.len() > MAX_TEXT_BYTES
    {
        return wrong("url", &beat.url, "it must begin with http:// or https://");
    }
    if let Some(name) = beat.backends.iter().find(|name| !is_plain(name)) {
        return wrong("backends", name, "a backend is a word");
    }
    let images: &[String] = beat.images.as_deref().unwrap_or_default();
    if images.len() > MAX_WORKER_IMAGES {
        return wrong("images", "", "there may be at most 256");
    }
    if let Some(image) = images.iter().find(|image| !is_digest(image)) {
        return wrong("images", image, "an image is sha256: and 64 digits");
    }
    if let Some(text) = beat.problem.as_ref().filter(|text| text.chars().count() > MAX_TEXT_BYTES) {
        return wrong("problem", text, "it may have at most 512 characters");
    }
    if beat.sessions.len() > MAX_SESSIONS {
        return wrong("sessions", "", "a worker has at most 100,000");
    }
    let is_long =
        |session: &&WorkerSession| session.lost.as_ref().is_some_and(|why| why.len() > MAX_LOST_BYTES);
    if let Some(session) = beat.sessions.iter().find(is_long) {
        return wrong("sessions", &session.id, "why it is lost may have at most 2048 bytes");
    }
    if beat.backends.len() > MAX_LABELS || beat.labels.len() > MAX_LABELS {
        return wrong("labels", "", "there may be at most 32 labels and backends");
    }
    let is_long = |(name, value): &(&String, &String)| name.len().max(value.len()) > MAX_TEXT_BYTES;
    match beat.labels.iter().find(is_long) {
        Some((name, _)) => wrong("labels", name, "a name and its value may have at most 512 bytes each"),
        None => Ok(()),
    }
}

fn is_digest(text: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_hex))
}

fn on_the_wire(capacity: Capacity) -> WorkerCapacity {
    let Capacity { slots, cpus_millis, memory_bytes } = capacity;
    WorkerCapacity { slots, cpus_millis, memory_bytes }
}
