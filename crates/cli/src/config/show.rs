//! The settings in effect, as a table and as JSON.

use super::sections;
use super::setting::{Section, Setting};
use super::{Loaded, Origin};
use serde_json::json;
use std::fmt::Write as _;

/// In the place of a secret that is set.
const MASK: &str = "********";

/// Fits a terminal, with the origin behind.
const KEY_WIDTH: usize = 22;
const VALUE_WIDTH: usize = 30;

/// A setting's value (not a secret's), and where it was said.
fn value<'l>(loaded: &'l Loaded, section: &Section, setting: &Setting) -> (String, &'l Origin) {
    let value = (setting.get)(&loaded.config);
    let value = if setting.is_secret && !value.is_empty() { MASK.to_owned() } else { value };
    (value, loaded.origin(&format!("{}.{}", section.name, setting.key)))
}

pub(crate) fn table(loaded: &Loaded) -> String {
    let mut text = String::new();
    for section in sections::ALL {
        let _ = writeln!(text, "[{}]", section.name);
        for setting in section.settings {
            let (value, origin) = value(loaded, section, setting);
            let value = if value.is_empty() { "-".to_owned() } else { value };
            let _ = writeln!(text, "  {:<KEY_WIDTH$} {value:<VALUE_WIDTH$} {origin}", setting.key);
        }
        text.push('\n');
    }
    text
}

pub(crate) fn json(loaded: &Loaded) -> serde_json::Value {
    let of_section = |section: &Section| {
        let settings = section.settings.iter().map(|setting| {
            let (value, origin) = value(loaded, section, setting);
            let value = if value.is_empty() { serde_json::Value::Null } else { value.into() };
            let Setting { about, flag, written, .. } = setting;
            let shown = json!({
                "value": value, "origin": origin.to_string(), "about": about, "flag": flag, "written": written,
            });
            (setting.key.to_owned(), shown)
        });
        let settings: serde_json::Map<_, _> = settings.collect();
        (section.name.to_owned(), json!({"about": section.about, "settings": settings}))
    };
    serde_json::Value::Object(sections::ALL.iter().map(of_section).collect())
}
