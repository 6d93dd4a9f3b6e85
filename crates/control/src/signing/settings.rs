//! Where the keys are.

use std::path::PathBuf;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SigningSettings {
    /// The folder of the keys; made, with a first key, where it is not there. Without one nothing is signed, and what
    /// would have to be signed is refused.
    pub folder: Option<PathBuf>,
}
