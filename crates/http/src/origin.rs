//! Where a page is from that asks. A browser lets any page open a WebSocket to anywhere, and says only whose it is; so
//! whoever is asked has to look.

use crate::answer::Problem;
use axum::http::{HeaderMap, header};
use cofferdam_api::ErrorCode;

/// Refuses a page that is neither this server's own nor of the origin that is allowed. What is no page says no origin.
pub(crate) fn check_origin(headers: &HeaderMap, allowed: Option<&str>) -> Result<(), Problem> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let (Some(origin), None) = (origins.next(), origins.next()) else {
        return if headers.contains_key(header::ORIGIN) { Err(refused("more than one")) } else { Ok(()) };
    };
    let origin = origin.to_str().unwrap_or_default();
    let is_allowed = match allowed {
        Some(allowed) => origin == allowed,
        None => is_own(origin, headers),
    };
    if is_allowed { Ok(()) } else { Err(refused(origin)) }
}

/// By name and port: a proxy that speaks TLS for us changes the scheme, and nothing else.
fn is_own(origin: &str, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let named = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    matches!((named, host), (Some(named), Some(host)) if !host.is_empty() && named.eq_ignore_ascii_case(host))
}

fn refused(origin: &str) -> Problem {
    let shown: String = origin.chars().take(100).collect();
    let fix = "ask for a ticket with this origin in it";
    let mut problem =
        Problem::new(ErrorCode::Denied, format!("pages of {shown:?} may not open this (rule origin)"), fix);
    problem.details = serde_json::json!({"rule": "origin"});
    problem
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn check(origins: &[&str], host: &str, allowed: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        for origin in origins {
            headers.append(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        check_origin(&headers, allowed).is_ok()
    }

    #[test]
    fn own_pages_and_those_that_were_named_may() {
        assert!(check(&[], "a.example", None), "no page at all");
        assert!(check(&["https://a.example"], "a.example", None));
        assert!(check(&["http://localhost:8080"], "localhost:8080", None));
        assert!(check(&["https://b.example"], "a.example", Some("https://b.example")));
    }

    #[test]
    fn no_other_page_may() {
        for origin in
            ["https://b.example", "null", "", "a.example", "https://a.example.b", "https://a.example:1"]
        {
            assert!(!check(&[origin], "a.example", None), "{origin}");
        }
        // A ticket for one origin is not for another, nor for our own.
        assert!(!check(&["https://a.example"], "a.example", Some("https://b.example")));
        assert!(!check(&["http://b.example"], "a.example", Some("https://b.example")));
        assert!(!check(&["https://a.example", "https://b.example"], "a.example", None), "two of them");
        assert!(!check(&["https://"], "", None));
    }
}
