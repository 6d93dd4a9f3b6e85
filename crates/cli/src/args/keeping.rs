//! The words for what is kept of sessions, and of `cofferdam secret` and `cofferdam snapshot`.

use super::RemoteArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

pub(super) const PAUSE_EXAMPLES: &str = "\
freeze keeps everything and its place; archive keeps the files, encrypted, and frees the place.

Examples:
  cofferdam session pause ses-aaaaaaaaaaaaaaaa --mode archive";

pub(super) const RESUME_EXAMPLES: &str = "\
Examples:
  cofferdam session resume ses-aaaaaaaaaaaaaaaa";

pub(super) const FORK_EXAMPLES: &str = "\
The ids of the children are all that stdout gets, one a line.

Examples:
  cofferdam session fork ses-aaaaaaaaaaaaaaaa --count 2";

pub(super) const SNAPSHOT_EXAMPLES: &str = "\
Examples:
  cofferdam session snapshot ses-aaaaaaaaaaaaaaaa with-tools
  cofferdam session create --snapshot with-tools";

pub(super) const SHRED_EXAMPLES: &str = "\
Looks through the data folder, the database, its log, and the place of artifacts, on the machine of
the service. Exit code: 0 nothing is left, 1 something is.

Examples:
  cofferdam session shred-check ses-aaaaaaaaaaaaaaaa --data /var/lib/cofferdam";

pub(super) const SECRET_EXAMPLES: &str = "\
Examples:
  printf %s \"$TOKEN\" | cofferdam secret set registry-token
  cofferdam session create --secret registry-token
  cofferdam job run --secret registry-token:token -- sha256sum /run/secrets/token
  cofferdam secret rm registry-token";

pub(super) const SNAPSHOTS_EXAMPLES: &str = "\
Examples:
  cofferdam snapshot list
  cofferdam snapshot rm with-tools";

#[derive(Debug, Args)]
pub(crate) struct SessionPauseArgs {
    /// The session's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// freeze or archive
    #[arg(long, value_name = "MODE", default_value = "freeze")]
    pub(crate) mode: String,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionForkArgs {
    /// The session's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// How many children, at most 16
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) count: u64,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionSnapshotArgs {
    /// The session's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// The snapshot's name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShredCheckArgs {
    /// The id of a session that was deleted
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// The data folder of the service
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,

    /// Where its artifacts are, if not there
    #[arg(long, value_name = "PLACE")]
    pub(crate) artifacts: Option<String>,

    /// Its database, if that is not a file there
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,

    /// Prints what was looked at as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Keep a value, read from stdin, under a name
    #[command(after_help = SECRET_EXAMPLES)]
    Set(SecretArgs),
    /// List secrets, without their values
    #[command(after_help = SECRET_EXAMPLES, visible_alias = "ls")]
    List(RemoteOnlyArgs),
    /// Delete a secret
    #[command(after_help = SECRET_EXAMPLES, visible_alias = "rm")]
    Delete(SecretArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// List snapshots, the newest first
    #[command(after_help = SNAPSHOTS_EXAMPLES, visible_alias = "ls")]
    List(RemoteOnlyArgs),
    /// Delete a snapshot
    #[command(after_help = SNAPSHOTS_EXAMPLES, visible_alias = "rm")]
    Delete(SnapshotArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RemoteOnlyArgs {
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    /// The secret's name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// The snapshot's name or id
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}
