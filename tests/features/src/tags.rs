//! Every scenario says which requirement it shows, by a tag.

use cucumber::gherkin::{Feature, GherkinEnv};
use std::path::{Path, PathBuf};

/// The features below a folder.
pub fn features(folder: &Path) -> Vec<Feature> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        for path in entries.flatten().map(|entry| entry.path()) {
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(ending) if ending == "feature" => found.push(parse(&path)),
                _ => {}
            }
        }
    }
    found
}

fn parse(path: &PathBuf) -> Feature {
    Feature::parse_path(path, GherkinEnv::default()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The scenarios that have no tag of a requirement.
pub fn untagged(features: &[Feature]) -> Vec<String> {
    let mut found = Vec::new();
    for feature in features {
        for scenario in &feature.scenarios {
            if !scenario.tags.iter().any(|tag| tag.starts_with("req_")) {
                found.push(format!("{}: {}", feature.name, scenario.name));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_without_a_tag_is_found() {
        let text = "Feature: F\n  @req_x\n  Scenario: a\n    Given b\n  @slow\n  Scenario: c\n    Given d\n";
        let feature = Feature::parse(text, GherkinEnv::default()).unwrap();
        assert_eq!(untagged(&[feature]), ["F: c"]);
    }
}
