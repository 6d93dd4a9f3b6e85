//! What credentials look like.

use std::path::Path;

/// Files that exist to hold credentials, by the end of their path, and a word that shows that they do.
const FILES: [(&str, &[&str], &str); 12] = [
    (".netrc", &["password"], "a .netrc with a password"),
    (".git-credentials", &["://"], "stored git credentials"),
    (".docker/config.json", &["\"auth\"", "\"identitytoken\""], "a login to a container registry"),
    (".dockercfg", &["\"auth\""], "a login to a container registry"),
    (".config/containers/auth.json", &["\"auth\""], "a login to a container registry"),
    (".aws/credentials", &["aws_secret_access_key"], "an AWS secret key"),
    (".npmrc", &["_authToken", "_password"], "a token of an npm registry"),
    (".pypirc", &["password"], "a password of a Python index"),
    (".cargo/credentials.toml", &["token"], "a token of a cargo registry"),
    (".kube/config", &["client-key-data", "token:"], "access to a Kubernetes cluster"),
    (
        ".config/gcloud/application_default_credentials.json",
        &["refresh_token", "private_key"],
        "Google credentials",
    ),
    (".azure/accessTokens.json", &["accessToken"], "Azure credentials"),
];

/// A token that begins with a mark of its own: what follows it, how much of that at least, and what it is.
type Token = (&'static str, fn(u8) -> bool, usize, &'static str);

const TOKENS: [Token; 9] = [
    ("AKIA", is_upper, 16, "an AWS access key"),
    ("ASIA", is_upper, 16, "an AWS access key"),
    ("AIza", is_word, 35, "a Google API key"),
    ("ghp_", is_word, 36, "a GitHub token"),
    ("github_pat_", is_word, 60, "a GitHub token"),
    ("glpat-", is_word, 20, "a GitLab token"),
    ("xoxb-", is_word, 40, "a Slack token"),
    ("sk_live_", is_word, 24, "a Stripe key"),
    ("AccountKey=", is_base64, 80, "an Azure storage key"),
];

/// Names of variables whose value is a secret, by their ends.
const VARIABLES: [&str; 7] =
    ["_PASSWORD", "_SECRET", "_TOKEN", "_API_KEY", "_ACCESS_KEY", "_SECRET_KEY", "_PRIVATE_KEY"];

fn is_upper(c: u8) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit()
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'-'
}

fn is_base64(c: u8) -> bool {
    c.is_ascii_alphanumeric() || b"+/=".contains(&c)
}

/// A file by its name, if what is in it bears that out.
pub(super) fn by_name(path: &Path, bytes: &[u8]) -> Option<&'static str> {
    let known = FILES.iter().find(|(end, _, _)| path.ends_with(end))?;
    known.1.iter().any(|word| find(bytes, word.as_bytes()).is_some()).then_some(known.2)
}

/// Compiled programs begin so.
const ELF: &[u8] = b"\x7fELF";

/// Bytes of any file or text. Libraries of cryptography have keys compiled in that they test themselves with.
pub(super) fn by_content(bytes: &[u8]) -> Option<&'static str> {
    let key = if bytes.starts_with(ELF) { None } else { private_key(bytes) };
    key.or_else(|| token(bytes))
}

/// `NAME=VALUE` whose name says what its value is.
pub(super) fn by_variable(text: &str) -> Option<&'static str> {
    let (name, value) = text.split_once('=')?;
    let name = name.to_ascii_uppercase();
    let is_named = VARIABLES.iter().any(|end| name.ends_with(end) || name == end[1..]);
    // Another variable's value is not in the image.
    (is_named && !value.is_empty() && !value.trim_start_matches('"').starts_with('$'))
        .then_some("a variable that is named like a secret")
}

/// A PEM private key: its first line, and base64 after it. Programs and documents that only speak of one have the
/// line alone.
fn private_key(bytes: &[u8]) -> Option<&'static str> {
    let mut rest = bytes;
    while let Some(at) = find(rest, b"-----BEGIN ") {
        rest = &rest[at + 11..];
        let line_end = rest.iter().position(|&c| c == b'\n').unwrap_or(rest.len());
        let (line, after) = rest.split_at(line_end);
        if !line.trim_ascii_end().ends_with(b"PRIVATE KEY-----") {
            continue;
        }
        let body = after.split(|&c| c == b'\n').skip(1).map(<[u8]>::trim_ascii);
        // Older keys have headers and an empty line first.
        let mut body = body.skip_while(|line| line.is_empty() || line.contains(&b':'));
        if body.next().is_some_and(|line| line.len() >= 40 && line.iter().all(|&c| is_base64(c))) {
            return Some("a private key");
        }
    }
    None
}

fn token(bytes: &[u8]) -> Option<&'static str> {
    TOKENS
        .iter()
        .find(|(mark, follows, least, _)| has_token(bytes, mark.as_bytes(), *follows, *least))
        .map(|token| token.3)
}

fn has_token(bytes: &[u8], mark: &[u8], follows: fn(u8) -> bool, least: usize) -> bool {
    let mut from = 0;
    while let Some(at) = find(&bytes[from..], mark) {
        let begin = from + at;
        from = begin + mark.len();
        // In the middle of a longer word it is chance: compiled programs and compressed data have all words.
        let starts = begin.checked_sub(1).is_none_or(|before| !is_word(bytes[before]));
        let length = bytes[from..].iter().take_while(|&&c| follows(c)).count();
        let ends = bytes.get(from + length).is_none_or(|&c| !is_word(c));
        if starts && ends && length >= least && is_varied(&bytes[from..from + length]) {
            return true;
        }
    }
    false
}

/// Examples in documents repeat themselves, real ones do not.
fn is_varied(token: &[u8]) -> bool {
    let mut seen = [false; 256];
    token.iter().for_each(|&c| seen[usize::from(c)] = true);
    let is_example = find(token, b"EXAMPLE").is_some() || find(token, b"example").is_some();
    seen.iter().filter(|&&seen| seen).count() >= 8 && !is_example
}

fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    let first = *word.first()?;
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|&c| c == first) {
        let begin = from + at;
        if bytes[begin..].starts_with(word) {
            return Some(begin);
        }
        from = begin + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In two parts, so that no scanner finds these here.
    fn joined(mark: &str, rest: &str) -> Vec<u8> {
        format!("x = '{mark}{rest}'\n").into_bytes()
    }

    #[test]
    fn keys_and_tokens_are_found() {
        let key = format!(
            "-----BEGIN {} KEY-----\n{}\n",
            "OPENSSH PRIVATE", "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAA"
        );
        assert_eq!(by_content(key.as_bytes()), Some("a private key"));
        let old = format!(
            "-----BEGIN {} KEY-----\nProc-Type: 4\n\n{}\n",
            "RSA PRIVATE", "MIIEowIBAAKCAQEAr0v7tQ1f2G3h4J5k6L7m8N9p0Q1r2S3t"
        );
        assert_eq!(by_content(old.as_bytes()), Some("a private key"));
        assert_eq!(by_content(&joined("AKIA", "J5K2QX7M4NP3R8TV")), Some("an AWS access key"));
        assert_eq!(
            by_content(&joined("ghp_", "a8Kd0fLq3Zx7Vb2Nm5Rt9Yw1Ec4Gh6Jp0Su8")),
            Some("a GitHub token")
        );
    }

    #[test]
    fn what_only_looks_like_one_is_not() {
        for text in [
            "if line == '-----BEGIN RSA PRIVATE KEY-----':\n    return True\n",
            "-----BEGIN CERTIFICATE-----\nMIIEowIBAAKCAQEAr0v7tQ1f2G3h4J5k6L7m8N9p0Q1r2S3t\n",
            "-----BEGIN PRIVATE KEY-----",
            "AKIAIOSFODNN7EXAMPLE",
            "AKIAAAAAAAAAAAAAAAAA",
            "xAKIAJ5K2QX7M4NP3R8TV",
        ] {
            assert_eq!(by_content(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn files_are_known_by_name_and_content() {
        let found = |path: &str, text: &str| by_name(Path::new(path), text.as_bytes()).is_some();
        assert!(found("/root/.netrc", "machine x login y password z"));
        assert!(found("/home/a/.docker/config.json", r#"{"auths":{"x":{"auth":"eA=="}}}"#));
        assert!(found("/root/.git-credentials", "https://a:b@example.org"));
        assert!(!found("/root/.docker/config.json", r#"{"auths":{}}"#));
        assert!(!found("/usr/share/doc/netrc", "password"));
    }

    #[test]
    fn variables_are_known_by_name() {
        for text in
            ["DB_PASSWORD=x", "GITHUB_TOKEN=abc", "AWS_SECRET_ACCESS_KEY=abc", "PASSWORD=x", "my_api_key=1"]
        {
            assert!(by_variable(text).is_some(), "{text}");
        }
        for text in [
            "PATH=/bin",
            "TOKENIZERS=1",
            "DB_PASSWORD=",
            "GPG_KEY=ABC",
            "A_TOKEN=$OTHER",
            "A_TOKEN=\"$OTHER\"",
            "none",
        ] {
            assert!(by_variable(text).is_none(), "{text}");
        }
    }
}
