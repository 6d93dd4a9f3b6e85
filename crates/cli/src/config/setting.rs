//! One setting, and one section of them.

use super::sections::Config;
use toml::de::DeValue;

/// A row: how it is written, what it means, and where it goes.
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    pub(crate) about: &'static str,
    /// Its own flag of `cofferdam serve`, where it has one; `--set` takes every setting.
    pub(crate) flag: Option<&'static str>,
    pub(crate) is_secret: bool,
    pub(crate) written: &'static str,
    /// The value of a file as text, if it has the right type.
    pub(crate) toml: fn(&DeValue<'_>) -> Option<String>,
    pub(crate) get: fn(&Config) -> String,
    pub(crate) set: fn(&mut Config, &str) -> Result<(), String>,
}

/// The settings of one topic, and what must hold between them.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) settings: &'static [Setting],
    pub(crate) check: fn(&Config) -> Result<(), Clash>,
}

/// A value that is right by itself and does not fit with another.
#[derive(Debug)]
pub(crate) struct Clash {
    pub(crate) key: &'static str,
    pub(crate) value: String,
    pub(crate) fix: String,
}

/// A section whose values all go together.
pub(crate) fn no_clash(_: &Config) -> Result<(), Clash> {
    Ok(())
}

/// `setting!(key, Kind, path.in.the.config, "what it means")`, and where it is so: `flag = "--x"`, `secret`.
macro_rules! setting {
    ($key:literal, $kind:ty, $($field:ident).+, $about:literal $(, flag = $flag:literal)?) => {
        $crate::config::setting::setting!(@row $key, $kind, $($field).+, $about, false $(, $flag)?)
    };
    ($key:literal, $kind:ty, $($field:ident).+, $about:literal, secret $(, flag = $flag:literal)?) => {
        $crate::config::setting::setting!(@row $key, $kind, $($field).+, $about, true $(, $flag)?)
    };
    (@row $key:literal, $kind:ty, $($field:ident).+, $about:literal, $secret:literal $(, $flag:literal)?) => {
        $crate::config::setting::Setting {
            key: $key,
            about: $about,
            flag: [$(Some($flag),)? None][0],
            is_secret: $secret,
            written: <$kind as $crate::config::kinds::Kind>::WRITTEN,
            toml: <$kind as $crate::config::kinds::Kind>::toml,
            get: |config| <$kind as $crate::config::kinds::Kind>::show(&config.$($field).+),
            set: |config, text| {
                config.$($field).+ = <$kind as $crate::config::kinds::Kind>::parse(text)?;
                Ok(())
            },
        }
    };
}
pub(crate) use setting;
