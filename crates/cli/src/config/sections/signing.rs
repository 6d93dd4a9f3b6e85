//! `[signing]`: the keys that receipts and heads are signed with.

use crate::config::kinds::{Folder, Maybe};
use crate::config::setting::{Section, no_clash, setting};

pub(crate) const SECTION: Section = Section {
    name: "signing",
    about: "The keys that receipts and the heads of audits are signed with.",
    settings: &[setting!(
        "folder",
        Maybe<Folder>,
        control.signing.folder,
        "folder of the keys; `signing` in the data folder unless it is given"
    )],
    check: no_clash,
};
