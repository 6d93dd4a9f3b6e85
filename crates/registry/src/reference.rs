//! What a person types for an image of a registry.

use cofferdam_core::InvalidValue;
use cofferdam_images::{Digest, ImageName};
use std::fmt;
use std::net::IpAddr;

/// Where images are whose name has no registry.
const HUB: &str = "registry-1.docker.io";

/// An image of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The registry, with its port where it has one.
    pub host: String,
    pub repository: String,
    /// What it is asked for by: a tag, or a digest.
    pub tag: String,
    pub digest: Option<Digest>,
    typed: String,
}

impl Reference {
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidValue> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(Digest::parse(field, digest)?)),
            None => (text, None),
        };
        // The same letters as for names of the store.
        let parsed = ImageName::parse(field, name)?.to_string();
        let (name, tag) = parsed.rsplit_once(':').unwrap_or((&parsed, "latest"));
        let (host, repository) = match name.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => {
                (first, rest.to_owned())
            }
            Some(_) => (HUB, name.to_owned()),
            None => (HUB, format!("library/{name}")),
        };
        let host = if matches!(host, "docker.io" | "index.docker.io") { HUB } else { host };
        Ok(Self { host: host.to_owned(), repository, tag: tag.to_owned(), digest, typed: text.to_owned() })
    }

    /// Its name in the store, unless another one is given.
    pub fn name(&self, field: &str) -> Result<ImageName, InvalidValue> {
        let (name, _) = self.typed.split_once('@').unwrap_or((&self.typed, ""));
        match self.digest {
            // What a tag means may be another image by now.
            Some(digest) if !name.rsplit('/').next().unwrap_or_default().contains(':') => {
                ImageName::parse(field, &format!("{name}:sha256-{}", &digest.hex()[..12]))
            }
            _ => ImageName::parse(field, name),
        }
    }

    /// What the manifest is asked for by.
    pub(crate) fn wanted(&self) -> String {
        self.digest.map_or_else(|| self.tag.clone(), |digest| digest.to_string())
    }

    /// Whether the registry is on this machine, where nobody listens in.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.host.rsplit_once(':').map_or(self.host.as_str(), |(host, _)| host);
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_registries_as_everywhere() {
        let parts = |text: &str| {
            let Reference { host, repository, tag, .. } = Reference::parse("image", text).unwrap();
            format!("{host} {repository} {tag}")
        };
        assert_eq!(parts("node:20"), "registry-1.docker.io library/node 20");
        assert_eq!(parts("team/app"), "registry-1.docker.io team/app latest");
        assert_eq!(parts("docker.io/team/app"), "registry-1.docker.io team/app latest");
        assert_eq!(parts("localhost:5000/a/b:1"), "localhost:5000 a/b 1");
        assert_eq!(parts("quay.io/a/b"), "quay.io a/b latest");
        for wrong in ["", "A", "a b", "a@sha256:00", "../a", "https://a/b"] {
            assert!(Reference::parse("image", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_digest_names_the_image_where_no_tag_does() {
        let digest = Digest::of(b"");
        let name =
            |text: String| Reference::parse("image", &text).unwrap().name("--name").unwrap().to_string();
        assert_eq!(name(format!("quay.io/a@{digest}")), "quay.io/a:sha256-e3b0c44298fc");
        assert_eq!(name(format!("quay.io/a:1@{digest}")), "quay.io/a:1");
        assert_eq!(name("127.0.0.1:5000/a".to_owned()), "127.0.0.1:5000/a:latest");
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let is = |text: &str| Reference::parse("image", text).unwrap().is_loopback();
        assert!(is("localhost:5000/a") && is("127.0.0.1:1/a"));
        assert!(!is("node") && !is("localhost.example.org/a") && !is("10.0.0.1:5000/a"));
    }
}
