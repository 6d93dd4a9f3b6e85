//! Texts that can be kept. PostgreSQL has none with a NUL in it, and SQLite's own tools and functions cut such a text
//! short; so both refuse it, before it gets into a transaction with others.

use crate::{AuditEvent, Result, StoreError};

/// Refuses a NUL in any of the texts, each given with what it is.
pub(crate) fn check<'a, T>(texts: impl IntoIterator<Item = (&'static str, T)>) -> Result<()>
where
    T: Into<Option<&'a str>>,
{
    for (what, text) in texts {
        if text.into().is_some_and(|text| text.contains('\0')) {
            return Err(StoreError::Unstorable { what });
        }
    }
    Ok(())
}

pub(crate) fn check_events(events: &[AuditEvent]) -> Result<()> {
    for AuditEvent { at_ms: _, kind, actor, resource, details: _ } in events {
        // JSON writes a NUL as an escape, so the details never have one.
        check([("an event's kind", *kind), ("an event's actor", actor), ("an event's resource", resource)])?;
    }
    Ok(())
}
