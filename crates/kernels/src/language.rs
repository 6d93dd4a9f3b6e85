//! The languages that have kernels.

use crate::programs::{BASH, NODE, PYTHON, Program};
use cofferdam_core::InvalidValue;
use std::fmt;
use std::str::FromStr;

/// What cells are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KernelLanguage {
    Python,
    JavaScript,
    TypeScript,
    Bash,
}

impl KernelLanguage {
    pub const ALL: [Self; 4] = [Self::Python, Self::JavaScript, Self::TypeScript, Self::Bash];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::TypeScript => "typescript",
            Self::Bash => "bash",
        }
    }

    fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["py", "python3"],
            Self::JavaScript => &["js", "node", "nodejs"],
            Self::TypeScript => &["ts"],
            Self::Bash => &["sh", "shell"],
        }
    }

    /// Whether one kernel can run cells of both.
    pub fn shares_kernel_with(self, other: Self) -> bool {
        self.program().name == other.program().name
    }

    pub(crate) fn program(self) -> &'static Program {
        match self {
            Self::Python => &PYTHON,
            Self::JavaScript | Self::TypeScript => &NODE,
            Self::Bash => &BASH,
        }
    }
}

impl fmt::Display for KernelLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for KernelLanguage {
    type Err = InvalidValue;

    fn from_str(name: &str) -> Result<Self, InvalidValue> {
        let wanted = name.to_ascii_lowercase();
        let is_it =
            |language: &Self| language.as_str() == wanted || language.aliases().contains(&wanted.as_str());
        Self::ALL.into_iter().find(is_it).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            InvalidValue::new("language", name, format!("cells can be in one of {names}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_found_by_the_names_that_people_use() {
        for (name, language) in [
            ("python", KernelLanguage::Python),
            ("py", KernelLanguage::Python),
            ("Node", KernelLanguage::JavaScript),
            ("ts", KernelLanguage::TypeScript),
            ("sh", KernelLanguage::Bash),
        ] {
            assert_eq!(name.parse::<KernelLanguage>().unwrap(), language, "{name}");
        }
    }

    #[test]
    fn others_are_refused_with_the_list() {
        let error = "cobol".parse::<KernelLanguage>().unwrap_err().to_string();
        assert!(error.contains("cobol") && error.contains("python, javascript, typescript, bash"), "{error}");
    }

    #[test]
    fn only_javascript_and_typescript_share() {
        assert!(KernelLanguage::JavaScript.shares_kernel_with(KernelLanguage::TypeScript));
        assert!(!KernelLanguage::Python.shares_kernel_with(KernelLanguage::Bash));
    }
}
