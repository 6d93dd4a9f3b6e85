//! Profiles: named sets of tools, what an image has to pass to have one, and what to build one from.

use crate::Digest;
use cofferdam_core::InvalidValue;
use serde::Deserialize;

/// The recipes, in the order in which they build on each other.
const RECIPES: [&str; 7] = [
    include_str!("../../../deploy/images/base-tools.toml"),
    include_str!("../../../deploy/images/python-tools.toml"),
    include_str!("../../../deploy/images/node-tools.toml"),
    include_str!("../../../deploy/images/typescript-tools.toml"),
    include_str!("../../../deploy/images/go-tools.toml"),
    include_str!("../../../deploy/images/java-tools.toml"),
    include_str!("../../../deploy/images/secops-tools.toml"),
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
    /// What Debian lacks: wheels of PyPI, and packages of npm that need no others.
    #[serde(default)]
    pub downloads: Vec<Pinned>,
    /// The programs of the downloads that can be called by their names.
    #[serde(default)]
    pub commands: Vec<String>,
    /// What packages bring and no tool needs, such as private keys for tests: paths below the root.
    #[serde(default)]
    pub removed: Vec<String>,
    #[serde(rename = "check")]
    pub checks: Vec<Check>,
}

/// A file of another place that can be no other: `URL#sha256=DIGITS`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pinned {
    pub url: String,
    pub digest: Digest,
}

impl Pinned {
    /// The last part of the address.
    pub fn file_name(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or_default()
    }
}

impl TryFrom<String> for Pinned {
    type Error = InvalidValue;

    fn try_from(text: String) -> Result<Self, InvalidValue> {
        let fix = "write https://HOST/PATH/FILE#sha256=DIGITS, with a file that ends in .whl or .tgz";
        let wrong = || InvalidValue::new("downloads", text.as_str(), fix);
        let (url, digest) = text.split_once("#sha256=").ok_or_else(wrong)?;
        let digest = Digest::parse("downloads", &format!("sha256:{digest}"))?;
        let pinned = Self { url: url.to_owned(), digest };
        let is_file = pinned.file_name().ends_with(".whl") || pinned.file_name().ends_with(".tgz");
        if url.starts_with("https://") && is_file { Ok(pinned) } else { Err(wrong()) }
    }
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
                let Self { capabilities, packages, downloads, commands, removed, checks, .. } = lower.clone();
                profile.capabilities.splice(..0, capabilities);
                profile.packages.splice(..0, packages);
                profile.downloads.splice(..0, downloads);
                profile.commands.splice(..0, commands);
                profile.removed.splice(..0, removed);
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
            // What cannot be called by its name is of no use, and a name without a file is a mistake.
            assert_eq!(profile.downloads.is_empty(), profile.commands.is_empty(), "{}", profile.name);
            let has_lower = all.iter().any(|lower| Some(&lower.name) == profile.extends.as_ref());
            assert_eq!(has_lower, profile.name != BASE_PROFILE, "{}", profile.name);
        }
        assert!(
            Profile::by_name("--profile", "python-tools")
                .unwrap()
                .checks
                .iter()
                .any(|check| check.name == "venv")
        );
        assert!(Profile::by_name("--profile", "cobol-tools").is_err());
        let typescript = Profile::by_name("--profile", "typescript-tools").unwrap();
        let names: Vec<&str> = typescript.downloads.iter().map(Pinned::file_name).collect();
        assert_eq!(names, ["npm-10.9.9.tgz", "typescript-5.9.3.tgz"]);
        assert_eq!(typescript.commands, ["npm", "npx", "tsc", "tsserver"]);
    }

    #[test]
    fn a_download_is_pinned_and_comes_over_tls() {
        let digits = "0".repeat(64);
        let parse = |text: String| Pinned::try_from(text);
        let pinned = parse(format!("https://h/a/b.whl#sha256={digits}")).unwrap();
        assert_eq!((pinned.url.as_str(), pinned.file_name()), ("https://h/a/b.whl", "b.whl"));
        for wrong in [
            "https://h/a/b.whl".to_owned(),
            "https://h/a/b.whl#sha256=12".to_owned(),
            format!("http://h/a/b.whl#sha256={digits}"),
            format!("https://h/a/b.sh#sha256={digits}"),
        ] {
            assert!(parse(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
