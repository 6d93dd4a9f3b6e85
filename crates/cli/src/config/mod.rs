//! What an operator decides, and where it is said: defaults, under a file, under the environment, under flags.
//!
//! Every setting is one row of a section (`sections/`), which knows how it is written, what it means and where it
//! goes. Reading, checking, showing and documenting all go over those rows, so a new setting is one row, and a new
//! topic is one file with its line in [`sections::ALL`].

mod file;
mod kinds;
mod mounts;
mod sections;
mod setting;
mod show;

#[cfg(test)]
mod docs_tests;
#[cfg(test)]
mod tests;

pub(crate) use sections::{BackendsConfig, Config, MOST_WAITING, ObserveConfig, ServeConfig};
pub(crate) use show::{json, table};

use setting::Setting;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Environment { name: String },
    Flag { name: String },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment { name } => write!(f, "environment {name}"),
            Self::Flag { name } => write!(f, "flag {name}"),
        }
    }
}

/// A flag that was given: its own name, the setting that it is for, and the value.
#[derive(Debug, Clone)]
pub(crate) struct Flag {
    pub(crate) name: String,
    pub(crate) setting: String,
    pub(crate) value: String,
}

/// All settings, as they are in effect.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    origins: BTreeMap<String, Origin>,
}

impl Loaded {
    pub(crate) fn origin(&self, name: &str) -> &Origin {
        self.origins.get(name).unwrap_or(&Origin::Default)
    }
}

/// Everything that is wrong, each in one line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigErrors(pub(crate) Vec<String>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigErrors {}

/// The environment, as far as it is ours.
const PREFIX: &str = "COFFERDAM_";

/// Names the file, where no flag does.
const FILE_VARIABLE: &str = "COFFERDAM_CONFIG";

pub(crate) fn default_file() -> Option<PathBuf> {
    std::env::var_os(FILE_VARIABLE).map(PathBuf::from)
}

/// The variables of this process that are text; no other can be a setting.
pub(crate) fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Reads all three, and checks what they say together.
pub(crate) fn load(
    path: Option<&Path>,
    environment: impl IntoIterator<Item = (String, String)>,
    flags: &[Flag],
) -> Result<Loaded, ConfigErrors> {
    let mut loaded = Loaded { config: Config::default(), origins: BTreeMap::new() };
    let mut errors = Vec::new();
    if let Some(path) = path {
        match std::fs::read_to_string(path) {
            Ok(text) => apply_file(&mut loaded, path, &text, &mut errors),
            Err(error) => errors.push(format!("{}: {error}", path.display())),
        }
    }
    for (name, value) in environment {
        apply_variable(&mut loaded, &name, &value, &mut errors);
    }
    for flag in flags {
        apply_flag(&mut loaded, flag, &mut errors);
    }
    // What does not hold together is only worth saying of values that are right by themselves.
    if errors.is_empty() {
        for section in sections::ALL {
            if let Err(clash) = (section.check)(&loaded.config) {
                let name = format!("{}.{}", section.name, clash.key);
                let origin = loaded.origin(&name);
                errors.push(format!("{origin}: {name}: {:?} is not valid: {}", clash.value, clash.fix));
            }
        }
    }
    if errors.is_empty() { Ok(loaded) } else { Err(ConfigErrors(errors)) }
}

fn apply_file(loaded: &mut Loaded, path: &Path, text: &str, errors: &mut Vec<String>) {
    let entries = match file::entries(text) {
        Ok(entries) => entries,
        Err((line, error)) => return errors.push(format!("{}:{line}: {error}", path.display())),
    };
    for entry in entries {
        let name = entry.name();
        let at = format!("{}:{}", path.display(), entry.line);
        let Some(setting) = find(&name) else {
            errors.push(format!("{at}: {name}: {} is for no setting: {}", entry.shown, nearest(&name)));
            continue;
        };
        let origin = Origin::File { path: path.to_owned(), line: entry.line };
        match entry.text(setting) {
            Some(text) => set(loaded, setting, &name, &text, &at, origin, errors),
            None => errors.push(format!(
                "{at}: {name}: {} is {}: write {}",
                shown(setting, &entry.shown),
                entry.kind,
                setting.written
            )),
        }
    }
}

fn apply_variable(loaded: &mut Loaded, variable: &str, value: &str, errors: &mut Vec<String>) {
    let Some(rest) = variable.strip_prefix(PREFIX) else { return };
    // Other parts of the program have variables of their own; only a known section is ours.
    let Some(section) = sections::ALL.iter().find(|section| {
        rest.strip_prefix(&section.name.to_uppercase()).is_some_and(|rest| rest.starts_with('_'))
    }) else {
        return;
    };
    let key = rest[section.name.len() + 1..].to_lowercase();
    let name = format!("{}.{key}", section.name);
    let Some(setting) = find(&name) else {
        return errors.push(format!("{variable}: {value:?} is for no setting: {}", nearest(&name)));
    };
    let origin = Origin::Environment { name: variable.to_owned() };
    set(loaded, setting, &name, value, variable, origin, errors);
}

fn apply_flag(loaded: &mut Loaded, flag: &Flag, errors: &mut Vec<String>) {
    let Flag { name: flag, setting: name, value } = flag;
    let Some(setting) = find(name) else {
        return errors.push(format!("{flag}: {name:?} is no setting: {}", nearest(name)));
    };
    set(loaded, setting, name, value, flag, Origin::Flag { name: flag.clone() }, errors);
}

fn set(
    loaded: &mut Loaded,
    setting: &Setting,
    name: &str,
    text: &str,
    at: &str,
    origin: Origin,
    errors: &mut Vec<String>,
) {
    match (setting.set)(&mut loaded.config, text) {
        Ok(()) => drop(loaded.origins.insert(name.to_owned(), origin)),
        Err(fix) => {
            let what = if at.contains(name) { at.to_owned() } else { format!("{at}: {name}") };
            errors.push(format!("{what}: {} is not valid: {fix}", shown(setting, &format!("{text:?}"))));
        }
    }
}

/// A value in a message; not that of a secret.
fn shown(setting: &Setting, text: &str) -> String {
    if setting.is_secret { "the value".to_owned() } else { text.to_owned() }
}

fn find(name: &str) -> Option<&'static Setting> {
    let (section, key) = name.split_once('.')?;
    let section = sections::ALL.iter().find(|known| known.name == section)?;
    section.settings.iter().find(|setting| setting.key == key)
}

/// What was probably meant, or what there is.
fn nearest(name: &str) -> String {
    let (section, key) = name.split_once('.').unwrap_or((name, ""));
    let Some(known) = sections::ALL.iter().find(|known| known.name == section) else {
        let names: Vec<_> = sections::ALL.iter().map(|section| format!("[{}]", section.name)).collect();
        return format!("the sections are {}", names.join(", "));
    };
    let keys = known.settings.iter().map(|setting| setting.key);
    match keys.clone().min_by_key(|known| distance(known, key)) {
        Some(best) if distance(best, key) <= 3 => format!("did you mean {section}.{best}?"),
        _ => format!("[{section}] has {}", keys.collect::<Vec<_>>().join(", ")),
    }
}

/// How many letters have to change to make one word the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}
