//! What a document proves, and what it does not: forged, altered, swapped and borrowed ones.

// A case has nothing better to do with an error than to fail.
#![allow(clippy::unwrap_used)]

mod chain;
mod documents;
mod keys;
mod made;
mod receipts;
