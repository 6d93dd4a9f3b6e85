//! Attacks on the service: each against a `cofferdam serve` of its own, and again against its twin ([`twin`]), a server
//! of this suite's own that speaks as much of the interface and defends nothing. On the twin the attack has to work;
//! otherwise it proves nothing that it fails on the product.

mod artifacts;
pub(crate) mod client;
mod input;
mod keys;
mod limits;
mod races;
pub(crate) mod server;
pub(crate) mod sessions;
mod store;
mod tenants;
mod tokens;
pub(crate) mod twin;

use crate::catalogue::Service;
use crate::lab::Lab;
use crate::place::State;
use crate::row::{Row, Seen};
use crate::runs::WALLS_ONLY;
use server::Ground;
use sessions::states::StateAttack;
use std::sync::Arc;
use std::time::Instant;

/// Why an attack stopped early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It worked.
    Broke(String),
    /// It could not be tried.
    Error(String),
}

/// What was seen of an attack that did not work.
pub(crate) type Outcome = Result<String, Stop>;

type Attack = fn(&Ground) -> Outcome;

/// Every attack, by the name that the catalogue gives it.
pub(crate) const ATTACKS: &[(&str, Attack)] = &[
    ("priv-06-fields", limits::privileges),
    ("leak-09-errors", limits::internals),
    ("exhaust-13-requests", limits::requests),
    ("api-01-forged", tokens::forged),
    ("api-02-claims", tokens::claims),
    ("api-03-ended", tokens::ended),
    ("api-04-guesses", keys::guesses),
    ("api-05-tenant", tenants::named),
    ("api-06-fields", tenants::assigned),
    ("api-07-stream", keys::stream),
    ("api-08-foreign", tenants::foreign),
    ("api-09-injection", input::injection),
    ("api-10-names", input::names),
    ("api-12-sites", input::sites),
    ("api-13-quota", races::quota),
    ("api-14-idempotency", races::idempotency),
    ("art-01-changed", artifacts::changed),
    ("art-02-ended", artifacts::ended),
    ("art-03-uploads", artifacts::uploads),
    ("art-04-active", artifacts::active),
    ("art-05-alike", artifacts::alike),
    ("files-08-archives", sessions::archives::hostile),
    ("exhaust-12-bombs", sessions::archives::bombs),
    ("session-01-foreign", sessions::guests::foreign),
    ("session-02-frames", sessions::guests::frames),
    ("session-03-escapes", sessions::guests::escapes),
    ("session-04-attached", sessions::guests::attached),
    ("session-05-secrets", sessions::kept::secrets),
    ("session-06-altered", sessions::kept::altered),
    ("session-07-idle", sessions::time::idle),
    ("session-08-race", sessions::time::race),
    ("session-10-traces", sessions::kept::traces),
    ("store-01-kills", store::kills),
    ("store-02-output", store::output),
    ("store-03-read-only", store::read_only),
    ("store-04-callback", store::callback),
    ("store-05-migration", store::migration),
    ("store-06-asleep", store::asleep),
];

/// Makes an attack on the product, then on its twin.
pub(crate) async fn run(lab: &Lab, case: &str, service: &Service) -> Row {
    let began = Instant::now();
    let name = service.attack.as_str();
    let Some((_, attack)) = ATTACKS.iter().find(|(known, _)| *known == name) else {
        return Row::new(case, name, Seen::Error("no such attack".to_owned()), Seen::Without(String::new()));
    };
    let Some(cofferdam) = &lab.cofferdam else {
        return Row::not_applicable(case, name, "--cofferdam was not given");
    };
    if lab.without_service {
        return Row::not_applicable(case, name, "--without-service: it is the same in every mode");
    }
    let wall = attempt(Ground::product(cofferdam, lab.quick), *attack).await;
    let control = match &service.no_control {
        Some(reason) => Seen::Without(reason.clone()),
        None if lab.walls_only => Seen::Without(WALLS_ONLY.to_owned()),
        None => attempt(Ground::twin(lab.quick), *attack).await,
    };
    let mut row = Row::new(case, name, wall, control).took(began.elapsed());
    row.twin = service.no_control.is_none().then(|| "the twin".to_owned());
    row
}

/// Makes an attack in a session of each state.
pub(crate) async fn run_in_states(
    lab: &mut Lab,
    case: &str,
    service: &Service,
    states: &[State],
) -> Vec<Row> {
    let name = service.attack.as_str();
    let mut rows = Vec::new();
    for state in states.iter().copied() {
        let began = Instant::now();
        let seen = match sessions::states::ALL.iter().find(|(known, _)| *known == name) {
            None => Seen::Error("no such attack".to_owned()),
            Some((_, attack)) => in_state(lab, *attack, state).await,
        };
        let control = Seen::Without(service.no_control.clone().unwrap_or_default());
        rows.push(Row::new(case, name, seen, control).in_session(state).took(began.elapsed()));
    }
    rows
}

async fn in_state(lab: &mut Lab, attack: StateAttack, state: State) -> Seen {
    let ward = match lab.ward() {
        Ok(ward) => ward,
        Err(error) => return Seen::Error(error),
    };
    let admitting = Arc::clone(&ward);
    let patient = match tokio::task::spawn_blocking(move || admitting.admit(state)).await {
        Ok(Ok(patient)) => patient,
        Ok(Err(stop)) => return Seen::Error(format!("{stop:?}")),
        Err(error) => return Seen::Error(error.to_string()),
    };
    lab.slots.insert(patient.slot);
    on_a_thread(move || {
        let outcome = attack(&ward, &patient);
        ward.discharge(&patient)?;
        outcome
    })
    .await
}

/// On a thread of its own, so that the neighbour's heart is listened to meanwhile.
async fn attempt(ground: Ground, attack: Attack) -> Seen {
    on_a_thread(move || attack(&ground)).await
}

async fn on_a_thread(attack: impl FnOnce() -> Outcome + Send + 'static) -> Seen {
    match tokio::task::spawn_blocking(attack).await {
        Ok(Ok(evidence)) => Seen::Held(evidence),
        Ok(Err(Stop::Broke(text))) => Seen::Broke(text),
        Ok(Err(Stop::Error(text))) => Seen::Error(text),
        Err(error) => Seen::Error(error.to_string()),
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Error(error.to_string())
    }
}

impl From<serde_json::Error> for Stop {
    fn from(error: serde_json::Error) -> Self {
        Self::Error(error.to_string())
    }
}

pub(crate) fn cannot<T>(text: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Error(text.into()))
}

pub(crate) fn broke<T>(text: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Broke(text.into()))
}

/// The attack has worked if this is so.
pub(crate) fn broke_if(is_so: bool, text: impl FnOnce() -> String) -> Result<(), Stop> {
    if is_so { broke(text()) } else { Ok(()) }
}

/// Without this the attack would prove nothing.
pub(crate) fn needs(is_so: bool, text: impl FnOnce() -> String) -> Result<(), Stop> {
    if is_so { Ok(()) } else { cannot(text()) }
}
