//! The words of the commands that speak with a service.

use super::RunArgs;
use super::project::{BUILD_EXAMPLES, JobProjectArgs, TEST_EXAMPLES};
use clap::{Args, Subcommand};
use std::path::PathBuf;

pub(super) const JOB_EXAMPLES: &str = "\
The service is the one at COFFERDAM_URL (http://127.0.0.1:8080 unless set), the key that of
COFFERDAM_API_KEY, or in the file of --key-file.

Examples:
  cofferdam job run -c 'print(\"hello\")'
  cofferdam job test ./project
  cofferdam job list --state running
  cofferdam job logs -f job-aaaaaaaaaaaaaaaa";

pub(super) const KEY_EXAMPLES: &str = "\
Examples:
  cofferdam key create ci --scope jobs:read --scope jobs:write
  cofferdam key list
  cofferdam key revoke key-aaaaaaaaaaaaaaaa";

const RUN_USAGE: &str = "\
cofferdam job run [OPTIONS] -c CODE [ARGS]...
       cofferdam job run [OPTIONS] FILE [ARGS]...
       cofferdam job run [OPTIONS] -- COMMAND [ARGS]...";

const RUN_EXAMPLES: &str = "\
Exit code: that of the command; 124 timed out, 125 it could not be run or the service failed,
128+n ended by signal n, 137 out of memory. Ctrl-C cancels the job.

Examples:
  cofferdam job run -c 'print(\"hello\")'
  cofferdam job run --timeout 10s --memory 512m script.py one two
  cofferdam job run --detach --file data.csv -- sort data.csv
  cofferdam job run --input model.bin -- python3 use.py model.bin
  echo hello | cofferdam job run -i -- tr a-z A-Z";

const LIST_EXAMPLES: &str = "\
Examples:
  cofferdam job list
  cofferdam job list --state failed --limit 100
  cofferdam job list --json | jq -r '.jobs[].id'";

const SHOW_EXAMPLES: &str = "\
Examples:
  cofferdam job show job-aaaaaaaaaaaaaaaa
  cofferdam job show --json job-aaaaaaaaaaaaaaaa | jq .result.outcome";

const CANCEL_EXAMPLES: &str = "\
Examples:
  cofferdam job cancel job-aaaaaaaaaaaaaaaa";

const LOGS_EXAMPLES: &str = "\
With --json each event is a line with its number; after an interruption, --after goes on behind
the last one that was seen.

Examples:
  cofferdam job logs job-aaaaaaaaaaaaaaaa
  cofferdam job logs -f job-aaaaaaaaaaaaaaaa
  cofferdam job logs -f --json --after 12 job-aaaaaaaaaaaaaaaa >> events";

const RECEIPT_EXAMPLES: &str = "\
It is JSON with or without --json; `cofferdam receipt verify` checks it without the service.

Examples:
  cofferdam job receipt job-aaaaaaaaaaaaaaaa > receipt.json";

const ARTIFACTS_EXAMPLES: &str = "\
With --out each is written below that folder under the name that the job gave it, after its hash was
checked; a file that is there already is replaced.

Examples:
  cofferdam job artifacts job-aaaaaaaaaaaaaaaa
  cofferdam job artifacts job-aaaaaaaaaaaaaaaa --out results";

pub(super) const TENANT_EXAMPLES: &str = "\
For an operator. A key for a tenant is made with `cofferdam key create --tenant ID`.

Examples:
  cofferdam tenant create acme --max-running 10
  cofferdam tenant list
  cofferdam tenant rm ten-aaaaaaaaaaaaaaaa";

const TENANT_CREATE_EXAMPLES: &str = "\
Examples:
  cofferdam tenant create acme
  cofferdam tenant create acme --max-running 10 --requests-per-second 50 --artifact-bytes 5g";

const TENANT_LIST_EXAMPLES: &str = "\
Examples:
  cofferdam tenant list
  cofferdam tenant list --json | jq -r '.tenants[].id'";

const TENANT_SHOW_EXAMPLES: &str = "\
Examples:
  cofferdam tenant show ten-aaaaaaaaaaaaaaaa";

const TENANT_SET_EXAMPLES: &str = "\
These quotas come in the place of all that were set for the tenant: what is left out is as for all
tenants again.

Examples:
  cofferdam tenant set ten-aaaaaaaaaaaaaaaa --max-running 20
  cofferdam tenant set ten-aaaaaaaaaaaaaaaa";

const TENANT_REMOVE_EXAMPLES: &str = "\
Its keys and tokens end with it. One that has jobs that have not ended is not removed.

Examples:
  cofferdam tenant rm ten-aaaaaaaaaaaaaaaa";

const DELETE_EXAMPLES: &str = "\
Examples:
  cofferdam job delete job-aaaaaaaaaaaaaaaa";

const CREATE_EXAMPLES: &str = "\
The secret is all that stdout gets, and is shown this once.

Examples:
  cofferdam key create ci --scope jobs:read --scope jobs:write > ci.key
  cofferdam key create reviewer --scope jobs:write --agent reviewer --json";

const KEY_LIST_EXAMPLES: &str = "\
Examples:
  cofferdam key list";

const REVOKE_EXAMPLES: &str = "\
Examples:
  cofferdam key revoke key-aaaaaaaaaaaaaaaa";

/// Which service, as whom, and how the answer is shown.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct RemoteArgs {
    /// Address of the service [default: COFFERDAM_URL, or port 8080 here]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// File with the key [default: the key in COFFERDAM_API_KEY]
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    /// Prints JSON, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Run code, a file or a command, and show its output
    #[command(after_help = RUN_EXAMPLES, override_usage = RUN_USAGE)]
    Run(Box<JobRunArgs>),
    /// Run the tests of a project, and show which failed
    #[command(after_help = TEST_EXAMPLES)]
    Test(Box<JobProjectArgs>),
    /// Build a project, and show what its compiler says
    #[command(after_help = BUILD_EXAMPLES)]
    Build(Box<JobProjectArgs>),
    /// List jobs, the newest first
    #[command(after_help = LIST_EXAMPLES, visible_alias = "ls")]
    List(JobListArgs),
    /// Show a job
    #[command(after_help = SHOW_EXAMPLES, visible_alias = "get")]
    Show(JobArgs),
    /// End a job that has not ended
    #[command(after_help = CANCEL_EXAMPLES)]
    Cancel(JobArgs),
    /// Show what a job wrote
    #[command(after_help = LOGS_EXAMPLES)]
    Logs(JobLogsArgs),
    /// Print the signed receipt of a job that has ended
    #[command(after_help = RECEIPT_EXAMPLES)]
    Receipt(JobArgs),
    /// List what a job left, or get it
    #[command(after_help = ARTIFACTS_EXAMPLES)]
    Artifacts(JobArtifactsArgs),
    /// Remove a job that has ended, and its output
    #[command(after_help = DELETE_EXAMPLES, visible_alias = "rm")]
    Delete(JobArgs),
}

#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// Id of the job
    #[arg(value_name = "JOB")]
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JobArtifactsArgs {
    /// Id of the job
    #[arg(value_name = "JOB")]
    pub(crate) id: String,

    /// Gets them into this folder, which is made where it is missing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JobLogsArgs {
    /// Id of the job
    #[arg(value_name = "JOB")]
    pub(crate) id: String,

    /// Stays until the job has ended
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Begins behind the event with this number
    #[arg(long, value_name = "SEQ")]
    pub(crate) after: Option<i64>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JobListArgs {
    /// Only those in this state
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<String>,

    /// Only those of this task
    #[arg(long, value_name = "ID")]
    pub(crate) task_id: Option<String>,

    /// How many, at most 500
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,

    /// Goes on where a page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// What `run` has and means the same on another machine, and what only a service has.
#[derive(Debug, Default, Args)]
pub(crate) struct JobRunArgs {
    /// Code to run; Python unless --lang says otherwise
    #[arg(short = 'c', long, value_name = "CODE", allow_hyphen_values = true)]
    pub(crate) code: Option<String>,

    /// A file to run and its arguments, or the arguments for the code
    #[arg(value_name = "FILE", num_args = 0.., allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,

    /// A command and its arguments, or further arguments
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,

    /// Language: python, node, bash, sh, ruby, perl, go, java, deno or php
    #[arg(short, long, value_name = "L")]
    pub(crate) lang: Option<String>,

    /// Ends the job after this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) timeout: Option<String>,

    /// Time between asking and killing, at most 30s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) grace: Option<String>,

    /// Memory limit
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) memory: Option<String>,

    /// Space for files
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) disk: Option<String>,

    /// CPUs that may be used
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) cpus: Option<String>,

    /// Processes and threads that may exist at once
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) pids: Option<String>,

    /// Network: none or restricted
    #[arg(long, value_name = "POLICY")]
    pub(crate) network: Option<String>,

    /// Sets an environment variable
    #[arg(short, long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub(crate) env: Vec<String>,

    /// Puts a file into the sandbox; its place is taken from /workspace
    #[arg(short, long, value_name = "FILE[:PLACE]")]
    pub(crate) file: Vec<String>,

    /// Uploads a file, which may be large, and then does as --file does
    #[arg(long, value_name = "FILE[:PLACE]")]
    pub(crate) input: Vec<String>,

    /// Passes standard input on, which is read to its end first
    #[arg(short = 'i', long)]
    pub(crate) stdin: bool,

    /// Your own id for what the job serves
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) task_id: Option<String>,

    /// The agent whose job it is
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// A secret of the service, as a file in /run/secrets; may be given more than once
    #[arg(long, value_name = "NAME[:PATH]")]
    pub(crate) secret: Vec<String>,

    /// A note of yours, kept with the job
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) metadata: Vec<String>,

    /// Prints the job's id and does not wait for it
    #[arg(short, long)]
    pub(crate) detach: bool,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

impl JobRunArgs {
    /// The same, with the files that are uploaded in the place of those that are sent along.
    pub(crate) fn as_run_with_inputs(&self) -> RunArgs {
        RunArgs { file: self.input.clone(), ..self.as_run() }
    }

    /// The part that `run` understands.
    pub(crate) fn as_run(&self) -> RunArgs {
        RunArgs {
            code: self.code.clone(),
            words: self.words.clone(),
            command: self.command.clone(),
            lang: self.lang.clone(),
            timeout: self.timeout.clone(),
            grace: self.grace.clone(),
            memory: self.memory.clone(),
            disk: self.disk.clone(),
            cpus: self.cpus.clone(),
            pids: self.pids.clone(),
            network: self.network.clone(),
            env: self.env.clone(),
            file: self.file.clone(),
            task_id: self.task_id.clone(),
            ..RunArgs::default()
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key
    #[command(after_help = CREATE_EXAMPLES)]
    Create(KeyCreateArgs),
    /// List keys
    #[command(after_help = KEY_LIST_EXAMPLES, visible_alias = "ls")]
    List(KeyListArgs),
    /// Take a key back
    #[command(after_help = REVOKE_EXAMPLES, visible_aliases = ["delete", "rm"])]
    Revoke(KeyRevokeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct KeyCreateArgs {
    /// What it is for
    pub(crate) name: String,

    /// What it may be used for, such as jobs:read; may be repeated
    #[arg(long, value_name = "SCOPE", required = true)]
    pub(crate) scope: Vec<String>,

    /// The agent that it speaks for
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Another tenant's id, for operators
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,

    /// How long it is good [default: until it is taken back]
    #[arg(long, value_name = "N")]
    pub(crate) ttl_seconds: Option<u64>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct KeyListArgs {
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct KeyRevokeArgs {
    /// Id of the key
    #[arg(value_name = "KEY")]
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// Make a tenant
    #[command(after_help = TENANT_CREATE_EXAMPLES)]
    Create(TenantCreateArgs),
    /// List tenants
    #[command(after_help = TENANT_LIST_EXAMPLES, visible_alias = "ls")]
    List(TenantListArgs),
    /// Show a tenant
    #[command(after_help = TENANT_SHOW_EXAMPLES, visible_alias = "get")]
    Show(TenantArgs),
    /// Say how much a tenant may have
    #[command(after_help = TENANT_SET_EXAMPLES)]
    Set(TenantSetArgs),
    /// Remove a tenant
    #[command(after_help = TENANT_REMOVE_EXAMPLES, visible_alias = "delete")]
    Rm(TenantArgs),
}

/// How much a tenant may have; what is left out is as for all tenants.
#[derive(Debug, Default, Args)]
pub(crate) struct QuotaArgs {
    /// Sandboxes at once; more jobs than that wait
    #[arg(long, value_name = "N")]
    pub(crate) max_running: Option<u64>,

    /// Jobs that wait; more than that are refused
    #[arg(long, value_name = "N")]
    pub(crate) max_queued: Option<u64>,

    /// Requests in a second
    #[arg(long, value_name = "N")]
    pub(crate) requests_per_second: Option<u64>,

    /// Requests at once, after a while of none
    #[arg(long, value_name = "N")]
    pub(crate) burst: Option<u64>,

    /// Space for artifacts
    #[arg(long, value_name = "SIZE")]
    pub(crate) artifact_bytes: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TenantCreateArgs {
    /// What it is called
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) quotas: QuotaArgs,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TenantListArgs {
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
pub(crate) struct TenantArgs {
    /// Id of the tenant
    #[arg(value_name = "TENANT")]
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TenantSetArgs {
    /// Id of the tenant
    #[arg(value_name = "TENANT")]
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) quotas: QuotaArgs,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}
