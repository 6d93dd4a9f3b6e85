//! The settings in effect, as a table and as JSON.

use super::sections;
use super::setting::{Section, Setting};
use super::{Loaded, Origin};
use serde_json::json;
use std::fmt::Write as _;

/// In the place of a secret that is set.
const MASK: &str = "********";

/// Fits a terminal, with the origin behind.
const NAME_WIDTH: usize = 30;
const VALUE_WIDTH: usize = 30;

fn rows(loaded: &Loaded) -> impl Iterator<Item = (String, String, &Origin)> {
    let all = sections::ALL.iter();
    let all =
        all.flat_map(|section: &Section| section.settings.iter().map(move |setting| (section, setting)));
    all.map(|(section, setting): (&Section, &Setting)| {
        let name = format!("{}.{}", section.name, setting.key);
        let value = (setting.get)(&loaded.config);
        let value = if setting.is_secret && !value.is_empty() { MASK.to_owned() } else { value };
        let origin = loaded.origin(&name);
        (name, value, origin)
    })
}

pub(crate) fn table(loaded: &Loaded) -> String {
    let mut text = String::new();
    for (name, value, origin) in rows(loaded) {
        let value = if value.is_empty() { "-".to_owned() } else { value };
        let _ = writeln!(text, "{name:<NAME_WIDTH$} {value:<VALUE_WIDTH$} {origin}");
    }
    text
}

pub(crate) fn json(loaded: &Loaded) -> serde_json::Value {
    let entries = rows(loaded).map(|(name, value, origin)| {
        let value = if value.is_empty() { serde_json::Value::Null } else { value.into() };
        (name, json!({"value": value, "origin": origin.to_string()}))
    });
    serde_json::Value::Object(entries.collect())
}
