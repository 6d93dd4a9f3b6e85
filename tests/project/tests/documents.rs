//! The documents say what is so: their links and paths exist, and they refer to nothing outside.

use cofferdam_project_tests::markdown::{links, prose, spans};
use cofferdam_project_tests::{root, shown, sources};
use std::path::Path;

#[test]
fn relative_links_lead_to_files() {
    let mut broken = Vec::new();
    let mut seen = 0;
    for path in sources::files(&root(), &[".md"]) {
        let text = sources::text(&path).expect("Markdown is text");
        let folder = path.parent().expect("a file lies in a folder");
        for (number, line) in prose(&text) {
            for link in links(line) {
                let target = link.split('#').next().unwrap_or_default();
                if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                seen += 1;
                if !folder.join(target).exists() {
                    broken.push(format!("{}:{number}: {link}", shown(&path)));
                }
            }
        }
    }
    assert!(seen > 0, "no link was found: the search is broken");
    assert!(broken.is_empty(), "links to nothing:\n{}", broken.join("\n"));
}

#[test]
fn nothing_refers_to_what_is_outside() {
    // In two parts, so that this file does not hold it.
    let outside = ["..", "shared"].join("/");
    let mut found = Vec::new();
    for path in sources::files(&root(), &[]) {
        let Some(text) = sources::text(&path) else { continue };
        for (i, _) in text.lines().enumerate().filter(|(_, line)| line.contains(&outside)) {
            found.push(format!("{}:{}", shown(&path), i + 1));
        }
    }
    assert!(found.is_empty(), "{outside} is mentioned in:\n{}", found.join("\n"));
}

/// Whether a span names a file or folder of the repository; paths inside a sandbox begin with a slash.
fn is_path(span: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let named = span.contains('/') || [".rs", ".md", ".toml", ".sh"].iter().any(|e| span.ends_with(e));
    named && span.chars().all(plain) && !span.starts_with('/')
}

/// A function in a walk-through: `name()` or `Type::name()`.
fn function(span: &str) -> Option<&str> {
    let name = span.strip_suffix("()")?;
    let name = name.rsplit("::").next().unwrap_or(name);
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then_some(name)
}

#[test]
fn the_paths_in_the_architecture_exist() {
    let text = sources::text(&root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is text");
    let mut paths = 0;
    let mut missing = Vec::new();
    for (number, line) in prose(&text) {
        for span in spans(line).into_iter().filter(|span| is_path(span)) {
            paths += 1;
            if !root().join(span).exists() {
                missing.push(format!("ARCHITECTURE.md:{number}: {span}"));
            }
        }
    }
    assert!(paths > 10, "only {paths} paths were found: the search is broken");
    assert!(missing.is_empty(), "there is no\n{}", missing.join("\n"));
}

/// A function belongs to the path that stands before it on its line.
#[test]
fn the_functions_in_the_architecture_are_where_it_says() {
    let text = sources::text(&root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is text");
    let mut functions = 0;
    let mut missing = Vec::new();
    for (number, line) in prose(&text) {
        let mut code = String::new();
        for span in spans(line) {
            if is_path(span) && span.ends_with(".rs") {
                code = sources::text(Path::new(&root().join(span))).unwrap_or_default();
            } else if let Some(name) = function(span) {
                functions += 1;
                let defined = [format!("fn {name}("), format!("fn {name}<")];
                if !defined.iter().any(|text| code.contains(text)) {
                    missing.push(format!("ARCHITECTURE.md:{number}: {span}"));
                }
            }
        }
    }
    assert!(functions > 10, "only {functions} functions were found: the search is broken");
    assert!(missing.is_empty(), "not in the file named before:\n{}", missing.join("\n"));
}

/// The names of the enum's variants, as they are in reports.
fn controls() -> Vec<String> {
    let code = sources::text(&root().join("crates/core/src/isolation.rs")).expect("Rust is text");
    let (_, rest) = code.split_once("pub enum Control {").expect("the enum is there");
    let (variants, _) = rest.split_once('}').expect("the enum ends");
    let names =
        variants.lines().map(|line| line.trim().trim_end_matches(',')).filter(|name| !name.is_empty());
    names.filter(|name| !name.starts_with('/')).map(snake_case).collect()
}

fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

#[test]
fn every_control_is_in_the_threat_model() {
    let text = sources::text(&root().join("SECURITY.md")).expect("SECURITY.md is text");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    let listed: Vec<&str> = rows.iter().filter_map(|row| spans(row).first().copied()).collect();
    let controls = controls();
    assert!(controls.len() > 40 && controls[0] == "user_namespace", "{controls:?}");
    assert_eq!(listed, controls, "the table of SECURITY.md has the controls in their order");
}
