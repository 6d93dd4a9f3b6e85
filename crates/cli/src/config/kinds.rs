//! How values are written: as text in a variable or behind a flag, as a type of TOML in a file.

use cofferdam_control::Keep;
use cofferdam_core::{ByteSize, Cpus as CpuShare, parse_duration};
use cofferdam_webhook::Network;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use toml::de::DeValue;

pub(crate) trait Kind {
    type Value;
    /// For messages and the documentation.
    const WRITTEN: &'static str;

    fn toml(value: &DeValue<'_>) -> Option<String>;
    /// The value, or what would be right.
    fn parse(text: &str) -> Result<Self::Value, String>;
    /// As it would have to be written.
    fn show(value: &Self::Value) -> String;
}

fn string(value: &DeValue<'_>) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn integer(value: &DeValue<'_>) -> Option<String> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
}

/// `"512m"`, or a whole number of bytes.
pub(crate) struct Size;

impl Kind for Size {
    type Value = u64;
    const WRITTEN: &'static str = "a size such as \"512m\" or \"2g\"";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        string(value).or_else(|| integer(value))
    }

    fn parse(text: &str) -> Result<u64, String> {
        ByteSize::parse("", text).map(|size| size.0).map_err(|error| error.fix)
    }

    fn show(value: &u64) -> String {
        let units = [("t", 40), ("g", 30), ("m", 20), ("k", 10)];
        let unit = units.iter().find(|(_, shift)| *value >= 1 << shift && value.is_multiple_of(1 << shift));
        unit.map_or_else(|| value.to_string(), |(name, shift)| format!("{}{name}", value >> shift))
    }
}

/// A size of something in memory.
pub(crate) struct Bytes;

impl Kind for Bytes {
    type Value = usize;
    const WRITTEN: &'static str = Size::WRITTEN;

    fn toml(value: &DeValue<'_>) -> Option<String> {
        Size::toml(value)
    }

    fn parse(text: &str) -> Result<usize, String> {
        usize::try_from(Size::parse(text)?).map_err(|_| "it is larger than any machine".to_owned())
    }

    fn show(value: &usize) -> String {
        Size::show(&(*value as u64))
    }
}

/// `"30s"`.
pub(crate) struct Time;

impl Kind for Time {
    type Value = Duration;
    const WRITTEN: &'static str = "a time such as \"500ms\", \"30s\", \"5m\" or \"2h\"";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        string(value)
    }

    fn parse(text: &str) -> Result<Duration, String> {
        parse_duration("", text).map_err(|error| error.fix)
    }

    fn show(value: &Duration) -> String {
        let ms = value.as_millis();
        let units = [("h", 3_600_000), ("m", 60_000), ("s", 1000)];
        let unit = units.iter().find(|(_, unit)| ms >= *unit && ms.is_multiple_of(*unit));
        unit.map_or_else(|| format!("{ms}ms"), |(name, unit)| format!("{}{name}", ms / unit))
    }
}

/// `"30d"`, or `"never"` for what is never removed.
pub(crate) struct KeepFor;

impl Kind for KeepFor {
    type Value = Keep;
    const WRITTEN: &'static str = "a time such as \"30d\", \"12h\" or \"45m\", or \"never\"";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        string(value)
    }

    fn parse(text: &str) -> Result<Keep, String> {
        Keep::parse("", text).map_err(|error| error.fix)
    }

    fn show(value: &Keep) -> String {
        value.to_string()
    }
}

/// A whole number, more than 0.
pub(crate) struct Count<T>(PhantomData<T>);

impl<T: TryFrom<u64> + Copy + std::fmt::Display> Kind for Count<T> {
    type Value = T;
    const WRITTEN: &'static str = "a whole number";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        integer(value)
    }

    fn parse(text: &str) -> Result<T, String> {
        let number = text.parse::<u64>().ok().filter(|number| *number > 0);
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| "write a whole number, at least 1".to_owned())
    }

    fn show(value: &T) -> String {
        value.to_string()
    }
}

/// A whole number that may be 0, and is at most this.
pub(crate) struct UpTo<const MOST: usize>;

impl<const MOST: usize> Kind for UpTo<MOST> {
    type Value = usize;
    const WRITTEN: &'static str = "a whole number";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        integer(value)
    }

    fn parse(text: &str) -> Result<usize, String> {
        let number = text.parse().ok().filter(|number| *number <= MOST);
        number.ok_or_else(|| format!("write a whole number from 0 to {MOST}"))
    }

    fn show(value: &usize) -> String {
        value.to_string()
    }
}

/// `0.5`.
pub(crate) struct Cpus;

impl Kind for Cpus {
    type Value = CpuShare;
    const WRITTEN: &'static str = "a number such as 0.5 or 4";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        integer(value).or_else(|| value.as_float().map(|number| number.as_str().to_owned()))
    }

    fn parse(text: &str) -> Result<CpuShare, String> {
        CpuShare::parse("", text).map_err(|error| error.fix)
    }

    fn show(value: &CpuShare) -> String {
        value.to_string()
    }
}

pub(crate) struct Switch;

impl Kind for Switch {
    type Value = bool;
    const WRITTEN: &'static str = "true or false";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        value.as_bool().map(|value| value.to_string())
    }

    fn parse(text: &str) -> Result<bool, String> {
        text.parse().map_err(|_| "write true or false".to_owned())
    }

    fn show(value: &bool) -> String {
        value.to_string()
    }
}

pub(crate) struct Text;

impl Kind for Text {
    type Value = String;
    const WRITTEN: &'static str = "text in quotes";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        string(value)
    }

    fn parse(text: &str) -> Result<String, String> {
        match text.is_empty() || text.chars().any(char::is_control) {
            true => Err("write some text, without line breaks".to_owned()),
            false => Ok(text.to_owned()),
        }
    }

    fn show(value: &String) -> String {
        value.clone()
    }
}

pub(crate) struct Folder;

impl Kind for Folder {
    type Value = PathBuf;
    const WRITTEN: &'static str = "a path in quotes";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        string(value)
    }

    fn parse(text: &str) -> Result<PathBuf, String> {
        Text::parse(text).map(PathBuf::from).map_err(|_| "write a path".to_owned())
    }

    fn show(value: &PathBuf) -> String {
        value.display().to_string()
    }
}

pub(crate) struct Address;

impl Kind for Address {
    type Value = SocketAddr;
    const WRITTEN: &'static str = "an address and a port in quotes, such as \"127.0.0.1:8080\"";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        string(value)
    }

    fn parse(text: &str) -> Result<SocketAddr, String> {
        text.parse().map_err(|_| "write an address and a port, such as 127.0.0.1:8080".to_owned())
    }

    fn show(value: &SocketAddr) -> String {
        value.to_string()
    }
}

/// What may be left out.
pub(crate) struct Maybe<K>(PhantomData<K>);

impl<K: Kind> Kind for Maybe<K> {
    type Value = Option<K::Value>;
    const WRITTEN: &'static str = K::WRITTEN;

    fn toml(value: &DeValue<'_>) -> Option<String> {
        K::toml(value)
    }

    fn parse(text: &str) -> Result<Self::Value, String> {
        K::parse(text).map(Some)
    }

    fn show(value: &Self::Value) -> String {
        value.as_ref().map(K::show).unwrap_or_default()
    }
}

/// `["127.0.0.1", "10.1.0.0/16"]`; as text with commas between.
pub(crate) struct Networks;

impl Kind for Networks {
    type Value = Vec<Network>;
    const WRITTEN: &'static str = "networks such as [\"127.0.0.1\", \"10.1.0.0/16\"]";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        let Some(list) = value.as_array() else { return string(value) };
        let texts: Option<Vec<String>> = list.iter().map(|item| string(item.get_ref())).collect();
        texts.map(|texts| texts.join(","))
    }

    fn parse(text: &str) -> Result<Vec<Network>, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let fix = "write addresses or networks, such as 127.0.0.1 or 10.1.0.0/16";
        parts.map(|part| Network::parse(part).ok_or_else(|| fix.to_owned())).collect()
    }

    fn show(value: &Vec<Network>) -> String {
        value.iter().map(Network::to_string).collect::<Vec<_>>().join(",")
    }
}

/// `["native", "docker"]`; as text with commas between.
pub(crate) struct Words;

impl Kind for Words {
    type Value = Vec<String>;
    const WRITTEN: &'static str = "words such as [\"native\", \"docker\"]";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        Networks::toml(value)
    }

    fn parse(text: &str) -> Result<Vec<String>, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        Ok(parts.map(str::to_owned).collect())
    }

    fn show(value: &Vec<String>) -> String {
        value.join(",")
    }
}
