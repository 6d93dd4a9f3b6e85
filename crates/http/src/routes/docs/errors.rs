//! `/docs/errors/{code}`: what an error means, and what to do about it. The pages are those of the documentation.

use crate::answer::{Answer, no_such_path};
use crate::document::refusals::OfOne;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use cofferdam_api::ErrorCode;

/// What an error code means
#[utoipa::path(
    get, path = "/docs/errors/{code}", operation_id = "server_error_page", tag = "server", security(()),
    params(("code" = String, Path, description = "The code of an error", example = "invalid")),
    responses((status = 200, description = "Its page", content_type = "text/plain", body = String), OfOne)
)]
pub(super) async fn error(code: Result<Path<String>, PathRejection>) -> Answer<Response> {
    let is_asked = |known: &ErrorCode| code.as_ref().is_ok_and(|code| code.0 == known.as_str());
    let known = ErrorCode::ALL.into_iter().find(is_asked);
    match known {
        Some(code) => Ok(super::file("text/plain; charset=utf-8", page(code))),
        None => Err(no_such_path().await),
    }
}

/// Where the page of a code is served.
pub(crate) fn address(code: ErrorCode) -> String {
    format!("/docs/errors/{}", code.as_str())
}

fn page(code: ErrorCode) -> &'static str {
    macro_rules! page {
        ($name:literal) => {
            include_str!(concat!("../../../../../docs/errors/", $name, ".md"))
        };
    }
    match code {
        ErrorCode::Malformed => page!("malformed"),
        ErrorCode::Invalid => page!("invalid"),
        ErrorCode::Unsupported => page!("unsupported"),
        ErrorCode::Unauthenticated => page!("unauthenticated"),
        ErrorCode::Denied => page!("denied"),
        ErrorCode::NotFound => page!("not_found"),
        ErrorCode::MethodNotAllowed => page!("method_not_allowed"),
        ErrorCode::IdempotencyConflict => page!("idempotency_conflict"),
        ErrorCode::WrongState => page!("wrong_state"),
        ErrorCode::Conflict => page!("conflict"),
        ErrorCode::RangeNotSatisfiable => page!("range_not_satisfiable"),
        ErrorCode::RequestTimeout => page!("request_timeout"),
        ErrorCode::TooLarge => page!("too_large"),
        ErrorCode::UnsupportedMediaType => page!("unsupported_media_type"),
        ErrorCode::RateLimited => page!("rate_limited"),
        ErrorCode::Unavailable => page!("unavailable"),
        ErrorCode::Internal => page!("internal"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// The compiler sees that each code has a page; this, that it is the right one and says what a reader needs.
    #[test]
    fn each_code_has_a_page_with_cause_example_and_fix() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let overview = std::fs::read_to_string(folder.join("errors.md")).unwrap();
        for code in ErrorCode::ALL {
            let (name, text) = (code.as_str(), page(code));
            assert!(text.starts_with(&format!("# {name}\n\nStatus {}.\n", code.status())), "{name}");
            for part in ["\n## Cause\n", "\n## Example\n", "\n## Fix\n"] {
                assert!(text.contains(part), "{name} lacks {part:?}");
            }
            assert!(overview.contains(&format!("(errors/{name}.md)")), "docs/errors.md does not link {name}");
        }
        let files = std::fs::read_dir(folder.join("errors")).unwrap().flatten();
        let files: BTreeSet<_> = files.map(|file| file.file_name().into_string().unwrap()).collect();
        let codes: BTreeSet<_> = ErrorCode::ALL.map(|code| format!("{}.md", code.as_str())).into();
        assert_eq!(files, codes, "docs/errors has a page for no code, or lacks one");
    }
}
