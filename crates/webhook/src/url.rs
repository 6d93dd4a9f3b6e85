//! Which URLs can be a webhook's at all. What their names lead to is looked at when they are dialled.

use reqwest::Url;

const MAX_BYTES: usize = 2048;

/// The URL as it will be used, or what is wrong with it.
pub fn check_url(text: &str, plain_http: bool) -> Result<Url, &'static str> {
    if text.len() > MAX_BYTES {
        return Err("it may have at most 2048 bytes");
    }
    let url = Url::parse(text).map_err(|_| "it must be a URL such as https://example.org/hook")?;
    match url.scheme() {
        "https" => {}
        "http" if plain_http => {}
        "http" => return Err("it must begin with https://"),
        _ => return Err("it must begin with https://"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must not have a user or a password in it; the message is signed instead");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("it must name a host");
    }
    if url.fragment().is_some() {
        return Err("it must not have a fragment (#…)");
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_https_urls_are_webhooks() {
        assert!(check_url("https://example.org:8443/hook?x=1", false).is_ok());
        assert!(check_url("http://example.org/", true).is_ok());
        for bad in [
            "http://example.org/",
            "ftp://example.org/",
            "file:///etc/passwd",
            "unix:/run/x.sock",
            "https://user@example.org/",
            "https://:pass@example.org/",
            "https://example.org/#a",
            "https://",
            "example.org",
            "",
        ] {
            assert!(check_url(bad, false).is_err(), "{bad}");
        }
        assert!(check_url(&format!("https://example.org/{}", "x".repeat(3000)), false).is_err());
    }
}
