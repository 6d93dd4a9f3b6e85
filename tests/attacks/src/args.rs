//! The command line.

use crate::catalogue::control;
use crate::wall::Wall;
use cofferdam_core::Control;
use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
usage: cofferdam-attacks [--quick] [--walls] [--only PATTERNS] [--list] [--json OUT] [--markdown OUT]
                         [--probe PATH] [--cofferdam PATH] [--without-service]
                         [--backend native|oci|docker|podman [--runtime runc|runsc]]
       cofferdam-attacks --table OUT JSON...

  --quick           leave out or shorten what takes long, saying which
  --walls           only the walls: no positive control, no mutation; each row says so
  --only PATTERNS   cases, probes and drivers whose name contains one of them, which commas are between; 'mutation' is
                    one, too
  --list            print every case and what is done about it, and run nothing
  --json OUT        write every row as JSON
  --markdown OUT    write the table for the documentation
  --probe PATH      the probe (target/attacks/probe)
  --cofferdam PATH  the command, for the cases that kill it and for those that attack the service
  --without-service leave out those that attack the service
  --backend NAME    only the attacks that a job makes, on that backend: what differs from the native one has to be in
                    differs.toml, with its reason
  --runtime NAME    with --backend oci: runc (the default) or runsc
  --table OUT JSON  run nothing, and make one table of what runs with --backend and --json have written
  --twin FOLDER     be the twin: a server that defends nothing
  --try COMMAND     run a shell command in a sandbox and show what it says, for writing cases
  --without A,B     the controls that --try leaves out";

#[derive(Debug, Default)]
pub(crate) struct Args {
    pub(crate) quick: bool,
    pub(crate) walls: bool,
    pub(crate) list: bool,
    pub(crate) without_service: bool,
    pub(crate) twin: Option<PathBuf>,
    pub(crate) wall: Option<Wall>,
    /// What was set up for another backend than the native one, by the first start of this program.
    pub(crate) site: Option<PathBuf>,
    /// Where a table is written, and of what.
    pub(crate) table: Option<(PathBuf, Vec<PathBuf>)>,
    pub(crate) only: Option<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) markdown: Option<PathBuf>,
    pub(crate) probe: Option<PathBuf>,
    pub(crate) cofferdam: Option<PathBuf>,
    pub(crate) attempt: Option<String>,
    pub(crate) without: Vec<Control>,
}

impl Args {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self::default();
        let (mut backend, mut runtime) = (None, None);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--quick" => args.quick = true,
                "--walls" => args.walls = true,
                "--list" => args.list = true,
                "--without-service" => args.without_service = true,
                "--backend" => backend = Some(value()?),
                "--runtime" => runtime = Some(value()?),
                "--site" => args.site = Some(value()?.into()),
                "--table" => {
                    args.table = Some((value()?.into(), words.by_ref().map(PathBuf::from).collect()))
                }
                // What a careless server has on its command line.
                _ if word.starts_with("--token=") => {}
                "--twin" => args.twin = Some(value()?.into()),
                "--only" => args.only = Some(value()?),
                "--json" => args.json = Some(value()?.into()),
                "--markdown" => args.markdown = Some(value()?.into()),
                "--probe" => args.probe = Some(value()?.into()),
                "--cofferdam" => args.cofferdam = Some(value()?.into()),
                "--try" => args.attempt = Some(value()?),
                "--without" => args.without = controls(&value()?)?,
                _ => return Err(format!("{word} is not an option\n{USAGE}")),
            }
        }
        args.wall = match (backend, runtime) {
            (Some(backend), runtime) => Some(Wall::parse(&backend, runtime.as_deref())?),
            (None, Some(_)) => return Err("--runtime goes with --backend oci".to_owned()),
            (None, None) => None,
        };
        Ok(args)
    }

    pub(crate) fn probe(&self) -> PathBuf {
        self.probe.clone().unwrap_or_else(|| PathBuf::from("target/attacks/probe"))
    }

    /// Whether a name is asked for.
    pub(crate) fn wants(&self, names: &[&str]) -> bool {
        let is_named = |pattern: &str| names.iter().any(|name| name.contains(pattern));
        self.only.as_ref().is_none_or(|patterns| patterns.split(',').any(is_named))
    }
}

fn controls(text: &str) -> Result<Vec<Control>, String> {
    let named = |name: &str| control(name).ok_or_else(|| format!("no control is called {name}"));
    text.split(',').filter(|name| !name.is_empty()).map(named).collect()
}
