//! Streams that last no longer than the key or token that opened them.

use crate::auth::given_secret;
use axum::http::HeaderMap;
use axum::response::sse::Event;
use cofferdam_api::{ErrorCode, ErrorData};
use cofferdam_control::Control;
use futures_util::stream::{Stream, StreamExt, unfold};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How often it is looked whether whoever follows is still known. A thousand followers cost two hundred lookups a
/// second.
pub(crate) const LOOK: Duration = Duration::from_secs(5);

/// The same events, until the key or token in these headers is not valid any more; then `error`, and the end.
pub(crate) fn while_valid(
    control: Control,
    headers: &HeaderMap,
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
    let secret = given_secret(headers);
    let state = Some((control, secret, Box::pin(events), Instant::now() + LOOK));
    unfold(state, |state| async move {
        let (control, secret, mut events, mut next_look) = state?;
        loop {
            tokio::select! {
                event = events.next() => {
                    return event.map(|event| (event, Some((control, secret, events, next_look))));
                }
                () = sleep_until(next_look), if secret.is_some() => {
                    if !is_known(&control, secret.as_deref()).await {
                        return Some((Ok(ended()), None));
                    }
                    next_look = Instant::now() + LOOK;
                }
            }
        }
    })
}

/// Who was known a moment ago, by the hashes of secrets: many streams of one key ask once.
static RECENT: LazyLock<Mutex<HashMap<String, Instant>>> = LazyLock::new(Mutex::default);
const FRESH: Duration = Duration::from_secs(1);
const MAX_RECENT: usize = 10_000;

/// While the store is away nobody knows; it is asked again.
pub(crate) async fn is_known(control: &Control, secret: Option<&str>) -> bool {
    let Some(secret) = secret else { return true };
    let name = cofferdam_control::hash(secret.as_bytes());
    let recent = || RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    if recent().get(&name).is_some_and(|at| at.elapsed() < FRESH) {
        return true;
    }
    let is_known = !matches!(control.authenticate(secret).await, Ok(Err(_)));
    let mut recent = recent();
    if recent.len() >= MAX_RECENT {
        recent.clear();
    }
    if is_known {
        recent.insert(name, Instant::now());
    }
    is_known
}

fn ended() -> Event {
    let message = "the key or token is not valid any more".to_owned();
    let data = ErrorData { code: ErrorCode::Unauthenticated, message };
    Event::default().event("error").data(serde_json::to_string(&data).unwrap_or_default())
}
