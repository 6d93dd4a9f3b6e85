//! How many rows are asked for. The two databases do not agree on what fewer than none are.

use crate::{Result, StoreError};

pub(crate) fn check(limit: i64) -> Result<()> {
    if limit < 0 { Err(StoreError::Limit { limit }) } else { Ok(()) }
}
