//! The words of `cofferdam session`.

use super::RemoteArgs;
use super::keeping::{
    FORK_EXAMPLES, PAUSE_EXAMPLES, RESUME_EXAMPLES, SHRED_EXAMPLES, SNAPSHOT_EXAMPLES, SessionForkArgs,
    SessionPauseArgs, SessionSnapshotArgs, ShredCheckArgs,
};
use clap::{Args, Subcommand};

pub(super) const SESSION_EXAMPLES: &str = "\
The service is the one at COFFERDAM_URL (http://127.0.0.1:8080 unless set), the key that of
COFFERDAM_API_KEY, or in the file of --key-file.

Examples:
  id=$(cofferdam session create --ttl-seconds 600)
  cofferdam session exec $id -c 'x = 41'
  cofferdam session exec $id -c 'x + 1'
  cofferdam session rm $id";

const CREATE_EXAMPLES: &str = "\
The session's id is all that stdout gets.

Examples:
  cofferdam session create --ttl-seconds 600 --idle-timeout-seconds 60
  cofferdam session create --memory 512m --env LEVEL=2 --json
  cofferdam session create --profile python-tools
  cofferdam session create --backend docker --image app:1";

const LIST_EXAMPLES: &str = "\
Examples:
  cofferdam session list --state ready
  cofferdam session list --json | jq -r '.sessions[].id'";

const SHOW_EXAMPLES: &str = "\
Examples:
  cofferdam session show ses-aaaaaaaaaaaaaaaa";

const EXEC_EXAMPLES: &str = "\
Code runs in an interpreter that stays, and so does what it sets. Exit code: that of the command;
124 timed out, 125 it could not be run, 128+n ended by signal n, 137 out of memory.

Examples:
  cofferdam session exec ses-aaaaaaaaaaaaaaaa -c 'import math; math.pi'
  cofferdam session exec ses-aaaaaaaaaaaaaaaa --lang bash -c 'cd /tmp; pwd'
  cofferdam session exec ses-aaaaaaaaaaaaaaaa -- ls -l";

const COPY_EXAMPLES: &str = "\
One side is of a session, written as its id, a colon and a path (one that is not absolute is of
/workspace); the other is of this machine. Folders go with everything in them. Into a folder that is
there, it is copied under its own name.

Examples:
  cofferdam session cp data.csv ses-aaaaaaaaaaaaaaaa:
  cofferdam session cp src ses-aaaaaaaaaaaaaaaa:/workspace/src
  cofferdam session cp ses-aaaaaaaaaaaaaaaa:out.png .";

const SHELL_EXAMPLES: &str = "\
A terminal in the session: resizing, Ctrl-C and job control work as in any other. What it shows
cannot reach the clipboard or the title of yours, nor have it answer. Exit code: that of the shell
or command. A connection that breaks is made again; whoever leaves by closing the window comes
back with --attach.

Examples:
  cofferdam session shell ses-aaaaaaaaaaaaaaaa
  cofferdam session shell ses-aaaaaaaaaaaaaaaa -- top
  cofferdam session shell --attach 1 ses-aaaaaaaaaaaaaaaa";

const LOGS_EXAMPLES: &str = "\
Without STEP, that of all steps, one after the other.

Examples:
  cofferdam session logs ses-aaaaaaaaaaaaaaaa
  cofferdam session logs -f ses-aaaaaaaaaaaaaaaa 3
  cofferdam session logs --json --after 12 ses-aaaaaaaaaaaaaaaa stp-aaaaaaaaaaaaaaaa";

const RECEIPT_EXAMPLES: &str = "\
Examples:
  cofferdam session receipt ses-aaaaaaaaaaaaaaaa 3 > receipt.json
  cofferdam receipt verify receipt.json --keys keys.json --job ses-aaaaaaaaaaaaaaaa --step 3";

const EXTEND_EXAMPLES: &str = "\
A deadline that is further off already stays.

Examples:
  cofferdam session extend --ttl-seconds 3600 ses-aaaaaaaaaaaaaaaa";

const DELETE_EXAMPLES: &str = "\
Examples:
  cofferdam session rm ses-aaaaaaaaaaaaaaaa";

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Make a session
    #[command(after_help = CREATE_EXAMPLES)]
    Create(SessionCreateArgs),
    /// List sessions, the newest first
    #[command(after_help = LIST_EXAMPLES, visible_alias = "ls")]
    List(SessionListArgs),
    /// Show a session
    #[command(after_help = SHOW_EXAMPLES, visible_alias = "get")]
    Show(SessionArgs),
    /// Run code or a command in a session, and show its output
    #[command(after_help = EXEC_EXAMPLES)]
    Exec(SessionExecArgs),
    /// Copy files and folders into a session, or out of it
    #[command(after_help = COPY_EXAMPLES, visible_alias = "cp")]
    Copy(SessionCopyArgs),
    /// Open a terminal in a session
    #[command(after_help = SHELL_EXAMPLES)]
    Shell(SessionShellArgs),
    /// Show what steps have written
    #[command(after_help = LOGS_EXAMPLES)]
    Logs(SessionLogsArgs),
    /// Print the signed receipt of a step that has ended
    #[command(after_help = RECEIPT_EXAMPLES)]
    Receipt(SessionReceiptArgs),
    /// Put a session's deadline off
    #[command(after_help = EXTEND_EXAMPLES)]
    Extend(SessionExtendArgs),
    /// Have a session stand still
    #[command(after_help = PAUSE_EXAMPLES)]
    Pause(SessionPauseArgs),
    /// Have a paused session go on
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(SessionArgs),
    /// Make children of a session, with its files
    #[command(after_help = FORK_EXAMPLES)]
    Fork(SessionForkArgs),
    /// Keep a session's files under a name, to make others from
    #[command(after_help = SNAPSHOT_EXAMPLES)]
    Snapshot(SessionSnapshotArgs),
    /// Look for what a deleted session has left on this machine
    #[command(after_help = SHRED_EXAMPLES)]
    ShredCheck(ShredCheckArgs),
    /// End a session, and everything in it
    #[command(after_help = DELETE_EXAMPLES, visible_alias = "rm")]
    Delete(SessionArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SessionCreateArgs {
    /// It ends so many seconds after it was made
    #[arg(long, value_name = "N")]
    pub(crate) ttl_seconds: Option<u64>,

    /// It also ends when nobody uses it for so many seconds
    #[arg(long, value_name = "N")]
    pub(crate) idle_timeout_seconds: Option<u64>,

    /// Memory of all that runs in it, such as 512m
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// What makes its sandbox: native, or oci, docker or podman where the service has them
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,

    /// Its root filesystem: host, or an image of the service's store, by name or digest
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,

    /// In the place of an image: a set of tools that one is registered for
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// A variable for every step; may be given more than once
    #[arg(long, short = 'e', value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,

    /// A note of your own; may be given more than once
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) metadata: Vec<String>,

    /// Your own id for what it serves
    #[arg(long, value_name = "ID")]
    pub(crate) task_id: Option<String>,

    /// What becomes of it at its deadline: delete or pause
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_expiry: Option<String>,

    /// What becomes of it when the service stops: end or archive
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_drain: Option<String>,

    /// A snapshot whose files it begins with
    #[arg(long, value_name = "NAME")]
    pub(crate) snapshot: Option<String>,

    /// A secret, as a file in /run/secrets; may be given more than once
    #[arg(long, value_name = "NAME[:PATH]")]
    pub(crate) secret: Vec<String>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionListArgs {
    /// Only those in this state
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<String>,

    /// Only those of this task
    #[arg(long, value_name = "ID")]
    pub(crate) task_id: Option<String>,

    /// Only those of this agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// How many, at most 500
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,

    /// Goes on where a page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// The session's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionCopyArgs {
    /// What is copied
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,

    /// Where to
    #[arg(value_name = "DESTINATION")]
    pub(crate) destination: String,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionExtendArgs {
    /// The session's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// In seconds, from now
    #[arg(long, value_name = "N")]
    pub(crate) ttl_seconds: u64,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionExecArgs {
    /// The session's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Code to run
    #[arg(long, short = 'c', value_name = "CODE")]
    pub(crate) code: Option<String>,

    /// What the code is written in
    #[arg(long, value_name = "LANGUAGE", default_value = "python")]
    pub(crate) lang: String,

    /// Whose interpreter, and in which queue
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Ends it after this time
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,

    /// A program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SessionShellArgs {
    /// The session's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Comes back to a process that runs, by its number, instead of starting one
    #[arg(long, value_name = "NUMBER", conflicts_with = "command")]
    pub(crate) attach: Option<u64>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,

    /// A program and its arguments; bash, or sh where there is none, unless given
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SessionReceiptArgs {
    /// The session's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Number or id of the step
    #[arg(value_name = "STEP")]
    pub(crate) step: String,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionLogsArgs {
    /// The session's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Number or id of one step
    #[arg(value_name = "STEP")]
    pub(crate) step: Option<String>,

    /// Stays until the step has ended; without STEP, until the session has
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Begins behind the event with this number
    #[arg(long, value_name = "SEQ", requires = "step")]
    pub(crate) after: Option<i64>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}
