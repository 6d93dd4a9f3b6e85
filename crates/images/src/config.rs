//! What an image says about itself. It is the image's word, and nothing here acts on it.

use crate::limits::MAX_LAYERS;
use crate::{Digest, ImageError, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The configuration of an image, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageConfig {
    #[serde(default)]
    pub architecture: String,
    #[serde(default)]
    pub os: String,
    #[serde(default, deserialize_with = "or_default")]
    pub config: ProcessConfig,
    pub rootfs: RootFs,
    #[serde(default, deserialize_with = "or_default")]
    pub history: Vec<History>,
}

/// How the image wants its processes to be started. Environment and working directory are honoured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ProcessConfig {
    #[serde(default, deserialize_with = "or_default")]
    pub env: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub working_dir: String,
    #[serde(default, deserialize_with = "or_default")]
    pub user: String,
    #[serde(default, deserialize_with = "or_default")]
    pub entrypoint: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub cmd: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub exposed_ports: BTreeMap<String, serde_json::Value>,
    #[serde(default, deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The digests of the layers' archives, uncompressed; the lowest first.
    pub diff_ids: Vec<Digest>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    #[serde(default, deserialize_with = "or_default")]
    pub created_by: String,
    #[serde(default, deserialize_with = "or_default")]
    pub comment: String,
}

/// Some tools write `null` for what is empty.
fn or_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> std::result::Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// The machine that this program is for.
pub(crate) const ARCHITECTURE: &str = "amd64";
pub(crate) const OS: &str = "linux";

impl ImageConfig {
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let wrong = |why: String| ImageError::refused("the image's configuration", why);
        let config: Self = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
        if (config.os.as_str(), config.architecture.as_str()) != (OS, ARCHITECTURE) {
            let found = format!("{}/{}", config.os, config.architecture);
            return Err(wrong(format!("it is for {found:?}; get the image for {OS}/{ARCHITECTURE}")));
        }
        let layers = config.rootfs.diff_ids.len();
        if !(1..=MAX_LAYERS).contains(&layers) {
            return Err(wrong(format!("it has {layers} layers; an image has 1 to {MAX_LAYERS}")));
        }
        Ok(config)
    }

    /// The configuration of a root filesystem that came without one.
    pub(crate) fn of_root(layer: Digest) -> Self {
        Self {
            architecture: ARCHITECTURE.to_owned(),
            os: OS.to_owned(),
            rootfs: RootFs { kind: "layers".to_owned(), diff_ids: vec![layer] },
            ..Self::default()
        }
    }
}

impl ProcessConfig {
    /// The variables that a process gets, in order. What is no variable, and the names that the sandbox sets
    /// itself, are left out.
    pub fn variables(&self) -> Vec<(String, String)> {
        let pairs = self.env.iter().filter_map(|text| text.split_once('='));
        let is_plain =
            |name: &str, value: &str| !name.is_empty() && !name.contains('\0') && !value.contains('\0');
        pairs
            .filter(|(name, value)| is_plain(name, value) && !name.starts_with("CYNODE_"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// The working directory, if the image names one; `/` is what tools write for none.
    pub fn workdir(&self) -> Option<&str> {
        Some(self.working_dir.as_str()).filter(|path| !path.is_empty() && *path != "/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(os: &str, rest: &str) -> String {
        let digest = Digest::of(b"");
        format!(
            r#"{{"os":"{os}","architecture":"amd64","rootfs":{{"type":"layers","diff_ids":["{digest}"]}}{rest}}}"#
        )
    }

    #[test]
    fn nulls_and_unknown_fields_are_taken() {
        let rest = r#","config":{"Env":["A=1","B=x=y","CYNODE_X=1","=z","none"],"Cmd":null,"WorkingDir":"/app"},"history":null,"x":1"#;
        let config = ImageConfig::parse(json("linux", rest).as_bytes()).unwrap();
        let expected = [("A", "1"), ("B", "x=y")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(config.config.variables(), expected);
        assert_eq!(config.config.workdir(), Some("/app"));
        assert_eq!(
            ImageConfig::parse(json("linux", r#","config":null"#).as_bytes()).unwrap().config.workdir(),
            None
        );
    }

    #[test]
    fn another_machine_or_no_layer_is_refused() {
        assert!(ImageConfig::parse(json("windows", "").as_bytes()).is_err());
        assert!(
            ImageConfig::parse(br#"{"os":"linux","architecture":"amd64","rootfs":{"diff_ids":[]}}"#).is_err()
        );
        assert!(ImageConfig::parse(br#"{"os":"linux","architecture":"amd64"}"#).is_err());
        assert!(ImageConfig::parse(b"[").is_err());
    }
}
