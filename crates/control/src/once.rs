//! Requests that name themselves and take more than one transaction: done once, however often they are sent.
//!
//! The name is taken before anything is done, and what was made is written beside it afterwards. One that failed gives
//! its name back. After a death in between nobody knows how far it came: then the name is refused, and nothing is done
//! twice.

use crate::{Control, ControlError, Result, now_ms};
use cofferdam_policy::Permit;
use cofferdam_store::{Idempotency, Kept};
use std::future::Future;

/// The name of a request, and a hash of what it asks for.
pub type Named = Option<(String, String)>;

impl Control {
    /// Does something once for a name, and says what it made, now or before: a word that the caller can find it by.
    pub(crate) async fn once<T: Send + 'static>(
        &self,
        permit: &Permit,
        route: &'static str,
        on: &str,
        named: Named,
        act: impl Future<Output = Result<T>> + Send + 'static,
        word: impl FnOnce(&T) -> String + Send + 'static,
    ) -> Result<Done<T>> {
        let Some((name, body_hash)) = named else { return act.await.map(Done::Now) };
        let (store, tenant) = (self.parts.store.clone(), permit.tenant().to_owned());
        // A name is for one thing: the same one for another is another request.
        let name = Idempotency { route, name: format!("{on}/{name}"), body_hash };
        // Whoever asked may go away meanwhile: then it is done all the same, and what it made is known.
        let done = tokio::spawn(async move {
            match store.take_name(tenant.clone(), name.clone(), now_ms()).await? {
                Kept::New => {}
                Kept::Other => return Err(ControlError::IdempotencyConflict),
                Kept::Same { resource } if resource.is_empty() => return Err(unfinished()),
                Kept::Same { resource } => return Ok(Done::Before(resource)),
            }
            let done = act.await;
            let made = done.as_ref().ok().map(word);
            store.finish_name(tenant, name, made).await?;
            done.map(Done::Now)
        });
        done.await.map_err(|error| ControlError::Unavailable(error.to_string()))?
    }
}

fn unfinished() -> ControlError {
    let text = "a request with that idempotency key is being done, or was cut off before its end; look at what there \
                is, and use another key";
    ControlError::Conflict { text: text.to_owned() }
}

/// What came of a request.
pub(crate) enum Done<T> {
    Now(T),
    /// It was done before, and made this.
    Before(String),
}
