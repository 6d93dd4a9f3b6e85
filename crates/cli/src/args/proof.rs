//! The words of what is checked, signed and sealed: `audit`, `receipt`, `signing-key`, `master-key`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

pub(crate) const AUDIT_EXAMPLES: &str = "\
Examples:
  cofferdam audit export --data ./data --head head.json > audit.jsonl
  cofferdam audit verify audit.jsonl --head head.json --keys keys.json";

const EXPORT_EXAMPLES: &str = "\
With --data it is read from the store, and a server that runs on the same folder is not disturbed.
Without it, it is got from the service at COFFERDAM_URL, for the tenant of the key in
COFFERDAM_API_KEY. It is JSON with or without --json.

Examples:
  cofferdam audit export --head head.json --out audit.jsonl
  cofferdam audit export --data ./data --tenant acme > audit.jsonl";

const VERIFY_EXAMPLES: &str = "\
Exit code: 0 everything is proven; 1 the chain was altered, or something is forged; 2 nothing is
wrong, but something is unproven: without --head entries may be missing at the end, without --keys
signatures are not checked; 125 a file cannot be read.

Examples:
  cofferdam audit verify audit.jsonl --head head.json --keys keys.json
  cofferdam audit verify audit.jsonl --json";

pub(crate) const RECEIPT_EXAMPLES: &str = "\
Examples:
  cofferdam receipt verify receipt.json --keys keys.json
  cofferdam receipt verify receipt.json --keys keys.json --code script.py --stdout output.txt";

const RECEIPT_VERIFY_EXAMPLES: &str = "\
Exit code: 0 everything that was asked for is proven; 1 it is forged, altered, or about something
else; 2 it says what was expected, but without --keys it may be anybody's; 125 a file cannot be
read.

Examples:
  cofferdam receipt verify receipt.json --keys keys.json
  cofferdam receipt verify receipt.json --keys keys.json --code script.py --stdout output.txt";

pub(crate) const SIGNING_KEY_EXAMPLES: &str = "\
Examples:
  cofferdam signing-key list --data ./data > keys.json
  cofferdam signing-key rotate --data ./data
  cofferdam signing-key rotate --data ./data --leaked";

const ROTATE_EXAMPLES: &str = "\
A server that runs on the folder signs with the new key from its next signature on; nothing has to
be restarted. What the old key has signed still verifies, unless it is given up with --leaked.

Examples:
  cofferdam signing-key rotate --data ./data
  cofferdam signing-key rotate --data ./data --leaked";

pub(crate) const MASTER_KEY_EXAMPLES: &str = "\
The server must not run. A death in the middle harms nothing: run it again, or start the server.
Where the key is in COFFERDAM_MASTER_KEY, the new one is taken from COFFERDAM_NEW_MASTER_KEY.

Examples:
  cofferdam master-key rotate --data ./data
  COFFERDAM_NEW_MASTER_KEY=$(openssl rand -hex 32) cofferdam master-key rotate --data ./data";

const LIST_EXAMPLES: &str = "\
Examples:
  cofferdam signing-key list --data ./data > keys.json";

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Write a tenant's whole chain as JSON lines
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(AuditExportArgs),
    /// Check a chain that was exported, without the service
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(AuditVerifyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AuditExportArgs {
    /// The data folder of a service on this machine [default: ask the service]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "key_file"])]
    pub(crate) data: Option<PathBuf>,

    /// A postgres:// address, where the service has one
    #[arg(long, value_name = "URL", requires = "data")]
    pub(crate) database: Option<String>,

    /// The tenant, by its name [default: default, or that of the key]
    #[arg(long, value_name = "NAME", requires = "data")]
    pub(crate) tenant: Option<String>,

    #[command(flatten)]
    pub(crate) remote: super::RemoteArgs,

    /// Where to write the chain [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Where to write the signed head of exactly this chain
    #[arg(long, value_name = "FILE")]
    pub(crate) head: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AuditVerifyArgs {
    /// The chain, as it was exported
    pub(crate) file: PathBuf,

    /// A signed head: shows whether entries are missing at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) head: Option<PathBuf>,

    /// The keys to trust, as GET /v1/signing-keys answers them
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,

    /// Prints the verdict as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReceiptArgs {
    #[command(subcommand)]
    pub(crate) command: ReceiptCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReceiptCommand {
    /// Check a receipt, without the service
    #[command(after_help = RECEIPT_VERIFY_EXAMPLES)]
    Verify(ReceiptVerifyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ReceiptVerifyArgs {
    /// The receipt, as GET /v1/jobs/ID/receipt answers it, or that of a step
    pub(crate) file: PathBuf,

    /// The keys to trust, as GET /v1/signing-keys answers them
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,

    /// The code, or the line for the shell, that must have been run
    #[arg(long, value_name = "FILE")]
    pub(crate) code: Option<PathBuf>,

    /// What must have come on stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) stdout: Option<PathBuf>,

    /// What must have come on stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) stderr: Option<PathBuf>,

    /// The job, or the session, that it must be about
    #[arg(long, value_name = "ID")]
    pub(crate) job: Option<String>,

    /// The step, by its number or id, of the session that --job names
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<String>,

    /// The tenant, by its id, whose job it must be
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,

    /// Prints the verdict and what the receipt says as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SigningKeyArgs {
    #[command(subcommand)]
    pub(crate) command: SigningKeyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SigningKeyCommand {
    /// Print the public keys, current and retired, as JSON
    #[command(after_help = LIST_EXAMPLES)]
    List(SigningKeyListArgs),
    /// Make a new key, and retire the one before
    #[command(after_help = ROTATE_EXAMPLES)]
    Rotate(SigningKeyRotateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SigningKeyListArgs {
    /// The data folder of the service
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SigningKeyRotateArgs {
    /// The data folder of the service
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,

    /// Others may have the old key: nothing that it has signed stands
    #[arg(long)]
    pub(crate) leaked: bool,

    /// Prints the two key ids as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MasterKeyCommand {
    /// Put everything that is sealed under a new key, and destroy the old one
    #[command(after_help = MASTER_KEY_EXAMPLES)]
    Rotate(MasterKeyRotateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct MasterKeyRotateArgs {
    /// The data folder of the service
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,

    /// Its database, if that is not a file there
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,

    /// Prints the fingerprints of both keys as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
