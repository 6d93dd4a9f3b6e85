//! Logging in: as the registry asks for it, with what the caller has.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::collections::HashMap;
use std::fmt;

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub username: String,
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default)]
    auths: HashMap<String, Auth>,
}

#[derive(Deserialize)]
struct Auth {
    #[serde(default)]
    auth: String,
}

/// Docker Hub is logged in to under a name from before there were others.
const HUB_KEYS: [&str; 3] = ["https://index.docker.io/v1/", "index.docker.io", "docker.io"];

impl Credentials {
    /// What `docker login` or `podman login` left for a registry in its file.
    pub fn from_docker_config(json: &[u8], host: &str) -> Option<Self> {
        let config: DockerConfig = serde_json::from_slice(json).ok()?;
        let keys = [host.to_owned(), format!("https://{host}"), format!("https://{host}/")];
        let hub = HUB_KEYS.iter().filter(|_| host.ends_with("docker.io")).map(|key| (*key).to_owned());
        let auth = keys.into_iter().chain(hub).find_map(|key| config.auths.get(&key))?;
        let text = String::from_utf8(STANDARD.decode(auth.auth.trim()).ok()?).ok()?;
        let (username, password) = text.split_once(':')?;
        Some(Self { username: username.to_owned(), password: password.to_owned() })
    }
}

/// What a registry wants to see.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    Basic,
    /// A token, to be fetched elsewhere.
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

impl Challenge {
    /// From the header `WWW-Authenticate`.
    pub(crate) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let fields = parameters(rest);
        let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        Some(Self::Bearer { realm: field("realm")?, service: field("service"), scope: field("scope") })
    }
}

/// `name="value"` and `name=value`, divided by commas that are in no quotes.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',']).to_ascii_lowercase();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        fields.push((name, value.trim().to_owned()));
        rest = next;
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_understood() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
            scope: scope.map(str::to_owned),
        };
        let hub = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push""#;
        let expected = bearer(
            "https://auth.docker.io/token",
            Some("registry.docker.io"),
            Some("repository:a/b:pull,push"),
        );
        assert_eq!(Challenge::parse(hub), Some(expected));
        assert_eq!(
            Challenge::parse("bearer realm=http://x, service=y"),
            Some(bearer("http://x", Some("y"), None))
        );
        assert_eq!(Challenge::parse(r#"Basic realm="Registry""#), Some(Challenge::Basic));
        for odd in ["", "Bearer", "Bearer service=x", "Negotiate", "Digest realm=x"] {
            assert_eq!(Challenge::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn logins_are_found_in_dockers_file() {
        let json = br#"{"auths":{"localhost:5000":{"auth":"bWU6c2VjcmV0OndvcmQ="},"https://index.docker.io/v1/":{"auth":"aHViOng="},"quay.io":{}},"credsStore":"x"}"#;
        let found = Credentials::from_docker_config(json, "localhost:5000").unwrap();
        assert_eq!((found.username.as_str(), found.password.as_str()), ("me", "secret:word"));
        assert!(!format!("{found:?}").contains("word"));
        assert_eq!(Credentials::from_docker_config(json, "registry-1.docker.io").unwrap().username, "hub");
        assert_eq!(Credentials::from_docker_config(json, "quay.io"), None);
        assert_eq!(Credentials::from_docker_config(b"{", "quay.io"), None);
    }
}
