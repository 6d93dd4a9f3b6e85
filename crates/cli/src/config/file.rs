//! A file's entries, each with its line.

use super::setting::Setting;
use toml::de::{DeTable, DeValue};

/// One `key = value` in a section.
pub(crate) struct Entry<'t> {
    section: Option<String>,
    key: String,
    value: DeValue<'t>,
    pub(crate) line: usize,
    /// The value as it stands in the file.
    pub(crate) shown: String,
    /// What it is, for a message.
    pub(crate) kind: &'static str,
}

impl Entry<'_> {
    pub(crate) fn name(&self) -> String {
        match &self.section {
            Some(section) => format!("{section}.{}", self.key),
            None => self.key.clone(),
        }
    }

    /// The value as text, if it has the setting's type.
    pub(crate) fn text(&self, setting: &Setting) -> Option<String> {
        (setting.toml)(&self.value)
    }
}

/// Values longer than this are cut in messages.
const SHOWN_CHARS: usize = 60;

/// All entries, or the line and the text of what cannot be read.
pub(crate) fn entries(text: &str) -> Result<Vec<Entry<'_>>, (usize, String)> {
    let document = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        (line, format!("it is not TOML: {}", error.message()))
    })?;
    let mut found = Vec::new();
    for (name, value) in document.into_inner() {
        let section = name.get_ref().to_string();
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => {
                for (key, value) in table {
                    let span = value.span();
                    let key = key.into_inner().into_owned();
                    found.push(entry(text, Some(section.clone()), key, value.into_inner(), span));
                }
            }
            // A value outside of every section has no setting, and is refused with its name.
            other => found.push(entry(text, None, section, other, span)),
        }
    }
    found.sort_by_key(|entry| entry.line);
    Ok(found)
}

fn entry<'t>(
    text: &str,
    section: Option<String>,
    key: String,
    value: DeValue<'t>,
    span: std::ops::Range<usize>,
) -> Entry<'t> {
    let written = text.get(span.clone()).unwrap_or_default().lines().next().unwrap_or_default();
    let mut shown: String = written.chars().take(SHOWN_CHARS).collect();
    if shown.len() < written.len() {
        shown.push('…');
    }
    let kind = match &value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with decimals",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    Entry { section, key, value, line: line_of(text, span.start), shown, kind }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}
