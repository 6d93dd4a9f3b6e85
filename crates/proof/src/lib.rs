//! What the service says of itself in a form that others can check, without the service and without trusting it
//! with anything but its key: receipts of jobs, heads of an audit's chain, and checkpoints where a chain was cut.
//!
//! This crate is pure. It signs with keys that it is handed and checks bytes that it is handed; it draws no random
//! numbers, and knows no file and no clock. Whatever it reads may be forged: nothing is believed before its
//! signature was checked, and a document of one kind is never taken for one of another.

mod chain;
mod digest;
mod envelope;
mod export;
mod key;
mod key_list;
mod point;
mod receipt;
mod verdict;

pub use chain::{ChainCheck, ChainReport, Finding, Tail};
pub use digest::{Digest, Hasher, sha256};
pub use envelope::{Envelope, MAX_DOCUMENT_BYTES, pre_authentication};
pub use export::{ExportHeader, FORMAT, read_entry, write_line};
pub use key::{KeyId, PublicKey, SigningKey};
pub use key_list::{KeyList, ListedKey};
pub use point::{ChainPoint, Checkpoint, Head};
pub use receipt::{
    ArtifactOut, Blob, FileIn, Form, Image, Inputs, Outputs, PREDICATE_TYPE, PolicyUsed, Receipt,
    STATEMENT_TYPE, STEP_PREDICATE_TYPE, Statement, StepOf, StreamOut, Subject, Work,
};
pub use verdict::{Proof, ProofError};
