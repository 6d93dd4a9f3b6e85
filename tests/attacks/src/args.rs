//! The command line.

use crate::catalogue::control;
use cofferdam_core::Control;
use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
usage: cofferdam-attacks [--quick] [--walls] [--only PATTERN] [--list] [--json OUT] [--markdown OUT]
                         [--probe PATH] [--cofferdam PATH] [--without-service]

  --quick           leave out or shorten what takes long, saying which
  --walls           only the walls: no positive control, no mutation; each row says so
  --only PATTERN    cases, probes and drivers whose name contains PATTERN; 'mutation' is one, too
  --list            print every case and what is done about it, and run nothing
  --json OUT        write every row as JSON
  --markdown OUT    write the table for the documentation
  --probe PATH      the probe (target/attacks/probe)
  --cofferdam PATH  the command, for the cases that kill it and for those that attack the service
  --without-service leave out those that attack the service
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
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--quick" => args.quick = true,
                "--walls" => args.walls = true,
                "--list" => args.list = true,
                "--without-service" => args.without_service = true,
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
        Ok(args)
    }

    /// Whether a name is asked for.
    pub(crate) fn wants(&self, names: &[&str]) -> bool {
        self.only.as_ref().is_none_or(|pattern| names.iter().any(|name| name.contains(pattern.as_str())))
    }
}

fn controls(text: &str) -> Result<Vec<Control>, String> {
    let named = |name: &str| control(name).ok_or_else(|| format!("no control is called {name}"));
    text.split(',').filter(|name| !name.is_empty()).map(named).collect()
}
