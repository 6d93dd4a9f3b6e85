//! The command line, as typed. Nothing is understood here but which word belongs where; what the values mean
//! is decided in one place per command.

mod image;
mod keeping;
mod project;
mod proof;
mod remote;
mod run;
mod session;
mod worker;

pub(crate) use image::*;
pub(crate) use project::JobProjectArgs;
pub(crate) use proof::*;

use clap::{Args, Parser, Subcommand};
use run::{RUN_EXAMPLES, RUN_USAGE};
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) use keeping::{
    RemoteOnlyArgs, SecretArgs, SecretCommand, SessionForkArgs, SessionPauseArgs, SessionSnapshotArgs,
    ShredCheckArgs, SnapshotArgs, SnapshotCommand,
};
pub(crate) use remote::{
    JobArgs, JobArtifactsArgs, JobCommand, JobListArgs, JobLogsArgs, JobRunArgs, KeyCommand, KeyCreateArgs,
    KeyListArgs, KeyRevokeArgs, QuotaArgs, RemoteArgs, TenantArgs, TenantCommand, TenantCreateArgs,
    TenantListArgs, TenantSetArgs,
};
pub(crate) use run::RunArgs;
pub(crate) use session::{
    SessionArgs, SessionCommand, SessionCopyArgs, SessionCreateArgs, SessionExecArgs, SessionExtendArgs,
    SessionListArgs, SessionLogsArgs, SessionReceiptArgs, SessionShellArgs,
};
pub(crate) use worker::{WorkerArgs, WorkerBackendArgs};

const EXAMPLES: &str = "\
Examples:
  cofferdam run -c 'print(\"hello\")'
  cofferdam run --timeout 10s --memory 512m script.py one two
  cofferdam run --json -- /bin/ls -l /
  cofferdam doctor";

const SERVE_EXAMPLES: &str = "\
Everything in one process: the API, the queue and the sandboxes, on SQLite in the data folder.
The first start writes an admin key to DIR/admin.key. SIGTERM lets what runs end, for up to 30
seconds.

Examples:
  cofferdam serve --data ./data
  cofferdam serve --data /var/lib/cofferdam --listen 127.0.0.1:8080
  cofferdam serve --config /etc/cofferdam.toml --set limits.timeout_max=10m
  curl -H \"X-API-Key: $(cat data/admin.key)\" -d '{\"language\":\"python\",\"code\":\"print(1)\"}' \\
       'http://127.0.0.1:8080/v1/jobs?wait_ms=30000'";

const BACKUP_EXAMPLES: &str = "\
The server may run meanwhile. The copy is of one moment, in one file, and is looked through before
it gets its name. It has the database and the small files of the folder, such as keys: keep it as
safe as those. Artifacts are not in it.

Examples:
  cofferdam backup --data ./data --to backup.db";

const RESTORE_EXAMPLES: &str = "\
No server may run on the folder. What ran when the backup was made is lost, and what waited is
errored, since it may have run after it.

Examples:
  cofferdam restore --from backup.db --data ./new
  cofferdam restore --from backup.db --data ./data --replace
  cofferdam restore --database postgres://localhost/cofferdam   (after pg_restore)";

const STORE_EXAMPLES: &str = "\
Examples:
  cofferdam store compact --data ./data";
const CONFIG_EXAMPLES: &str = "\
Exit code: 0 if everything can be read and holds together, 1 otherwise.

Examples:
  cofferdam config check cofferdam.toml
  COFFERDAM_LIMITS_MEMORY_MAX=4g cofferdam config show cofferdam.toml
  cofferdam config show --json";

const CONTROL_EXAMPLES: &str = "\
The API and the queue. Jobs run on workers, which register with the service token. Several control
planes may share a PostgreSQL: each takes jobs and gives them out, and any of them may go away.

Examples:
  cofferdam control --data ./data
  cofferdam control --data ./a --database postgres://coffer@db/coffer --listen 127.0.0.1:8080
  cofferdam worker --control http://127.0.0.1:8080 --service-token-file data/service.token";

const DOCTOR_EXAMPLES: &str = "\
Exit code: 0 if sandboxes can be made, 1 if something that they need is missing.

Examples:
  cofferdam doctor
  cofferdam doctor --json";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  cofferdam completions bash > /etc/bash_completion.d/cofferdam
  source <(cofferdam completions zsh)";

/// Runs code that nobody trusts, in a sandbox that it cannot leave.
#[derive(Debug, Parser)]
#[command(name = "cofferdam", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// `run` by itself. Describing all the commands takes longer than its own part of the work.
#[derive(Debug, Parser)]
struct Run {
    #[command(flatten)]
    args: RunArgs,
}

/// Reads a command line, the program's name being its first word.
pub(crate) fn parse(mut line: Vec<OsString>) -> Result<Command, clap::Error> {
    if line.get(1).is_some_and(|word| word == "run") {
        let word = line.remove(1);
        if let Ok(run) = Run::try_parse_from(&line) {
            return Ok(Command::Run(Box::new(run.args)));
        }
        // What is wrong, or help, is said by the one that knows the whole program.
        line.insert(1, word);
    }
    Cli::try_parse_from(line).map(|cli| cli.command)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run code, a file or a command in a fresh sandbox
    #[command(after_help = RUN_EXAMPLES, override_usage = RUN_USAGE)]
    Run(Box<RunArgs>),
    /// Run the service: an API for jobs, durable, on this machine
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// Copy a server's data into one file, while it runs
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(BackupArgs),
    /// Make a data folder from a backup
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreArgs),
    /// Look after the file of a store
    #[command(after_help = STORE_EXAMPLES)]
    Store(StoreArgs),
    /// Check the settings of the service, or show those in effect
    #[command(after_help = CONFIG_EXAMPLES)]
    Config(ConfigArgs),
    /// Run and look at jobs of a service
    #[command(after_help = remote::JOB_EXAMPLES, disable_help_subcommand = true)]
    Job {
        #[command(subcommand)]
        command: JobCommand,
    },
    /// Make and use sandboxes of a service that stay
    #[command(after_help = session::SESSION_EXAMPLES, disable_help_subcommand = true)]
    Session {
        #[command(subcommand)]
        command: SessionCommand,
    },
    /// Files of sessions under names
    #[command(after_help = keeping::SNAPSHOTS_EXAMPLES, disable_help_subcommand = true)]
    Snapshot {
        #[command(subcommand)]
        command: SnapshotCommand,
    },
    /// Values that jobs and sessions are given as files
    #[command(after_help = keeping::SECRET_EXAMPLES, disable_help_subcommand = true)]
    Secret {
        #[command(subcommand)]
        command: SecretCommand,
    },
    /// Make, list and take back keys of a service
    #[command(after_help = remote::KEY_EXAMPLES, disable_help_subcommand = true)]
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Make, list and remove tenants of a service
    #[command(after_help = remote::TENANT_EXAMPLES, disable_help_subcommand = true)]
    Tenant {
        #[command(subcommand)]
        command: TenantCommand,
    },
    /// Run the service's API and queue, for workers in other processes
    #[command(after_help = CONTROL_EXAMPLES)]
    Control(ControlArgs),
    /// Run a worker: sandboxes for a control plane
    #[command(after_help = worker::EXAMPLES)]
    Worker(WorkerArgs),
    /// Take out a tenant's audit, and check it offline
    #[command(after_help = AUDIT_EXAMPLES, disable_help_subcommand = true)]
    Audit(AuditArgs),
    /// Check the receipt of a job, offline
    #[command(after_help = RECEIPT_EXAMPLES, disable_help_subcommand = true)]
    Receipt(ReceiptArgs),
    /// List and rotate the keys that the service signs with
    #[command(after_help = SIGNING_KEY_EXAMPLES, disable_help_subcommand = true)]
    SigningKey(SigningKeyArgs),
    /// Change the key that everything kept is sealed under
    #[command(after_help = proof::MASTER_KEY_EXAMPLES, disable_help_subcommand = true)]
    MasterKey {
        #[command(subcommand)]
        command: MasterKeyCommand,
    },
    /// Import, list, check and remove images, and make those of profiles
    #[command(after_help = IMAGE_EXAMPLES, disable_help_subcommand = true)]
    Image {
        #[command(subcommand)]
        command: ImageCommand,
    },
    /// Show what this machine can enforce, and how to get what is missing
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Print the completions for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) service: ServiceArgs,

    #[command(flatten)]
    pub(crate) capacity: CapacityArgs,
}

/// What every process has that serves the API.
#[derive(Debug, Args)]
pub(crate) struct ServiceArgs {
    /// A file of settings; environment and flags go over it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Folder for the database and the first key; made if not there
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,

    /// Address to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,

    /// A postgres:// address, in the place of SQLite in the data folder
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,

    /// A folder or s3://BUCKET for artifacts [default: DIR/artifacts]
    #[arg(long, value_name = "PLACE")]
    pub(crate) artifacts: Option<String>,

    /// A file with the chain of certificates, in PEM: serves HTTPS
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<String>,

    /// A file with the certificate's key, in PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<String>,

    /// Allows an address that is not loopback without TLS
    #[arg(long)]
    pub(crate) plain_http_anywhere: bool,

    /// For development: takes requests without a key, on loopback
    #[arg(long)]
    pub(crate) dev_no_auth: bool,

    /// How long a claim on a job holds without a renewal [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub(crate) lease: Option<String>,

    #[command(flatten)]
    pub(crate) observe: ObserveArgs,

    /// Inner address that webhooks may reach; may be repeated
    #[arg(long, value_name = "NETWORK")]
    pub(crate) webhook_allow: Vec<String>,

    /// Takes webhooks whose URL begins with http://, too
    #[arg(long)]
    pub(crate) webhook_http: bool,

    /// A setting, such as limits.memory_max=4g; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
}

/// How much a worker takes on.
#[derive(Debug, Args)]
pub(crate) struct CapacityArgs {
    /// Jobs that may run at once [default: four for each processor]
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<String>,

    /// CPUs of running jobs together [default: one for each slot]
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<String>,

    /// Memory of running jobs together [default: 3/4 of the machine's]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ObserveArgs {
    /// Address on loopback that serves /metrics without a key
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics_listen: Option<String>,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// What every process has that stays.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// auto, human or json; auto is human on a terminal [default: auto]
    #[arg(long, value_name = "FORM")]
    pub(crate) log_format: Option<String>,

    /// off, error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,

    /// Collector of traces by OTLP, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a file and the environment, and name everything that is wrong
    #[command(after_help = CONFIG_EXAMPLES)]
    Check {
        /// The file [default: that of COFFERDAM_CONFIG, if it is set]
        file: Option<PathBuf>,
    },
    /// Show the settings in effect, and where each was said; secrets are masked
    #[command(after_help = CONFIG_EXAMPLES)]
    Show {
        /// The file [default: that of COFFERDAM_CONFIG, if it is set]
        file: Option<PathBuf>,

        /// Prints them as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The data folder of the server
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,

    /// The file to write; it must not be there yet
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,

    /// Refused: PostgreSQL is backed up with pg_dump, and the answer says how
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// A file that `cofferdam backup` wrote
    #[arg(long, value_name = "FILE", required_unless_present = "database", requires = "data")]
    pub(crate) from: Option<PathBuf>,

    /// The data folder to make
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// A PostgreSQL database after pg_restore: settles what ran and waited
    #[arg(long, value_name = "URL", conflicts_with_all = ["from", "data", "replace"])]
    pub(crate) database: Option<String>,

    /// Also where a store is; that one is set aside, not deleted
    #[arg(long)]
    pub(crate) replace: bool,

    /// Keeps what waited waiting: only where nothing has run since the backup
    #[arg(long)]
    pub(crate) keep_queued: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Write the file anew, without holes; the server must not run
    #[command(after_help = STORE_EXAMPLES)]
    Compact(CompactArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// The data folder of the server
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
}

/// TLS for a listener, which everything but loopback needs.
#[derive(Debug, Args)]
pub(crate) struct TlsArgs {
    /// Certificates to serve with, in PEM form
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of the first of them, in PEM form
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    #[command(flatten)]
    pub(crate) service: ServiceArgs,

    /// Tokens that workers are known by [default: DIR/service.token]
    #[arg(long, value_name = "FILE")]
    pub(crate) service_token_file: Option<PathBuf>,

    /// Certificates of those who sign the workers', in PEM form
    #[arg(long, value_name = "FILE")]
    pub(crate) worker_ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Prints the checks as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// bash, zsh or fish
    pub(crate) shell: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn line(words: &[&str]) -> Vec<OsString> {
        ["cofferdam"].iter().chain(words).map(OsString::from).collect()
    }

    #[test]
    fn run_by_itself_is_read_as_among_the_others() {
        let right: [&[&str]; 5] = [
            &["run", "--", "ls", "-l"],
            &["run", "-c", "print(1)", "--json", "--env", "A=b", "--env", "C=d", "x"],
            &["run", "--memory", "1g", "--rootfs", "/a", "script.py", "--flag"],
            &["run", "run"],
            &["run", "--version"],
        ];
        for words in right {
            let (alone, among) =
                (parse(line(words)).unwrap(), Cli::try_parse_from(line(words)).unwrap().command);
            assert_eq!(format!("{alone:?}"), format!("{among:?}"));
        }
        let other: [&[&str]; 3] = [&["run", "--help"], &["run", "-c"], &["run", "--json=3"]];
        for words in other {
            let said = |error: clap::Error| (error.exit_code(), error.to_string());
            let among = Cli::try_parse_from(line(words)).unwrap_err();
            assert_eq!(said(parse(line(words)).unwrap_err()), said(among), "{words:?}");
        }
    }

    fn run(words: &[&str]) -> RunArgs {
        let words: Vec<_> = ["run"].iter().chain(words).copied().collect();
        match parse(line(&words)).unwrap() {
            Command::Run(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn everything_after_a_file_is_the_programs() {
        let args = run(&["--json", "script.py", "--json", "-c", "x"]);
        assert_eq!(args.words, ["script.py", "--json", "-c", "x"]);
        assert!(args.json && args.code.is_none() && args.command.is_empty());
        assert_eq!(run(&["script.py", "--", "-x"]).words, ["script.py", "--", "-x"]);
    }

    #[test]
    fn a_command_comes_after_two_dashes() {
        let args = run(&["--pids", "5", "--", "ls", "-l", "--json"]);
        assert_eq!((args.command.join(" ").as_str(), args.words.len()), ("ls -l --json", 0));
        assert!(!args.json);
    }

    #[test]
    fn options_after_code_are_ours_until_a_word_or_dashes() {
        let args = run(&["-c", "code", "--json", "word", "--tty"]);
        assert!(args.json && !args.tty);
        assert_eq!(args.words, ["word", "--tty"]);
        assert_eq!(run(&["-c", "code", "--", "--tty"]).command, ["--tty"]);
    }

    #[test]
    fn negative_values_reach_the_place_that_can_explain_them() {
        assert_eq!(run(&["--memory", "-1", "--", "true"]).memory.as_deref(), Some("-1"));
    }
}
