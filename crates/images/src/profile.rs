//! Profiles: named sets of tools, what an image has to pass to have one, and what to build one from.

use cofferdam_core::InvalidValue;
use serde::Deserialize;

/// The recipes, in the order in which they build on each other.
const RECIPES: [&str; 2] = [
    include_str!("../../../deploy/images/base-tools.toml"),
    include_str!("../../../deploy/images/python-tools.toml"),
];

/// What every image has to have.
pub const BASE_PROFILE: &str = "base-tools";

/// A named set of tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub name: String,
    pub about: String,
    /// The profile that this one has everything of.
    pub extends: Option<String>,
    pub capabilities: Vec<String>,
    /// The release of Debian that it is built from.
    pub suite: String,
    pub packages: Vec<String>,
    #[serde(rename = "check")]
    pub checks: Vec<Check>,
}

/// Something that has to work in an image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub name: String,
    /// For the image's own shell.
    pub run: String,
}

impl Profile {
    /// All that there are, each with what it builds on.
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for recipe in RECIPES {
            let mut profile: Self = toml::from_str(recipe).expect("the recipes are a part of this program");
            if let Some(lower) = all.iter().find(|known| Some(&known.name) == profile.extends.as_ref()) {
                let Self { capabilities, packages, checks, .. } = lower.clone();
                profile.capabilities.splice(..0, capabilities);
                profile.packages.splice(..0, packages);
                profile.checks.splice(..0, checks);
            }
            all.push(profile);
        }
        all
    }

    pub fn by_name(field: &str, name: &str) -> Result<Self, InvalidValue> {
        let all = Self::all();
        let names: Vec<&str> = all.iter().map(|profile| profile.name.as_str()).collect();
        let fix = format!("it must be one of {}", names.join(", "));
        all.iter()
            .find(|profile| profile.name == name)
            .cloned()
            .ok_or_else(|| InvalidValue::new(field, name, fix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_is_sound_and_has_the_minimum() {
        let all = Profile::all();
        assert_eq!(all[0].name, BASE_PROFILE);
        for profile in &all {
            let has = |name: &str| profile.checks.iter().any(|check| check.name == name);
            for tool in [
                "sh", "cat", "cp", "mv", "rm", "mkdir", "chmod", "chown", "find", "tar", "gzip", "unzip",
                "ps", "date",
            ] {
                assert!(has(tool), "{}: {tool}", profile.name);
            }
            assert!(has("env or printenv") && has("certificates") && has("UTF-8 locale"));
            assert!(profile.packages.iter().any(|package| package == "ca-certificates"));
        }
        assert!(
            Profile::by_name("--profile", "python-tools")
                .unwrap()
                .checks
                .iter()
                .any(|check| check.name == "venv")
        );
        assert!(Profile::by_name("--profile", "cobol-tools").is_err());
    }
}
