//! docs/config.md has every setting, with its default and its meaning, and nothing else.

use super::PREFIX;
use super::sections::{self, Config};
use std::fmt::Write as _;
use std::path::Path;

/// Between these two lines the page is made from the code.
const BEGIN: &str = "<!-- made from the code: begin -->\n";
const END: &str = "<!-- made from the code: end -->";

fn reference() -> String {
    let config = Config::default();
    let mut text = String::new();
    for section in sections::ALL {
        let _ = write!(
            text,
            "\n## [{}]\n\n{}\n\n| key | default | meaning |\n| --- | --- | --- |\n",
            section.name, section.about
        );
        for setting in section.settings {
            let default = (setting.get)(&config);
            let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
            let flag = setting.flag.map(|flag| format!(" Flag: `{flag}`.")).unwrap_or_default();
            let secret = if setting.is_secret { " Secret." } else { "" };
            let _ = writeln!(text, "| `{}` | {default} | {}.{flag}{secret} |", setting.key, setting.about);
        }
        let first = section.settings[0].key;
        let variable = format!("{PREFIX}{}_{}", section.name, first).to_uppercase();
        let _ = writeln!(text, "\nIn the environment: `{variable}` and so on.");
    }
    text.push('\n');
    text
}

#[test]
fn the_page_is_as_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (made, after) = rest.split_once(END).unwrap();
    if std::env::var_os("COFFERDAM_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", reference())).unwrap();
        return;
    }
    assert_eq!(made, reference(), "docs/config.md is not as the code; make it anew with COFFERDAM_BLESS=1");
}
