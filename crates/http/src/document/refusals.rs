//! The ways in which a request is refused, for the document. A handler names those that can happen to it.

use cofferdam_api::{ErrorBody, ErrorCode};
use serde_json::json;
use std::collections::BTreeMap;
use utoipa::openapi::response::Response;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, HeaderBuilder, OpenApi, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, Modify, ToSchema};

type Named = BTreeMap<String, RefOr<Response>>;

/// Everyone with a key may be told these.
pub(crate) struct Always;

/// The path names one thing.
pub(crate) struct OfOne;

/// There is a body.
pub(crate) struct OfBody;

/// The state of the thing, or an idempotency key, can stand against it.
pub(crate) struct OfState;

/// It takes bytes by a signed link.
pub(crate) struct OfUpload;

/// It becomes another protocol, if it is asked so.
pub(crate) struct OfUpgrade;

/// It serves parts of something.
pub(crate) struct OfPart;

/// For those that need no key: only their parameters can be wrong.
pub(crate) struct OfQuery;

/// The server cannot take work just now.
pub(crate) struct Unready;

impl IntoResponses for Always {
    fn responses() -> Named {
        use ErrorCode::{Denied, Internal, Invalid, RateLimited, Unauthenticated, Unavailable};
        named(&[Unauthenticated, Denied, Invalid, RateLimited, Internal, Unavailable])
    }
}

impl IntoResponses for OfOne {
    fn responses() -> Named {
        named(&[ErrorCode::NotFound])
    }
}

impl IntoResponses for OfBody {
    fn responses() -> Named {
        named(&[
            ErrorCode::Malformed,
            ErrorCode::RequestTimeout,
            ErrorCode::TooLarge,
            ErrorCode::UnsupportedMediaType,
        ])
    }
}

impl IntoResponses for OfState {
    fn responses() -> Named {
        named(&[ErrorCode::WrongState])
    }
}

impl IntoResponses for OfUpload {
    fn responses() -> Named {
        use ErrorCode::{Denied, Internal, Invalid, Malformed, NotFound, TooLarge, Unavailable, WrongState};
        named(&[Malformed, Denied, NotFound, WrongState, TooLarge, Invalid, Internal, Unavailable])
    }
}

impl IntoResponses for OfUpgrade {
    fn responses() -> Named {
        named(&[ErrorCode::Malformed])
    }
}

impl IntoResponses for OfPart {
    fn responses() -> Named {
        named(&[ErrorCode::RangeNotSatisfiable])
    }
}

impl IntoResponses for OfQuery {
    fn responses() -> Named {
        named(&[ErrorCode::Invalid])
    }
}

impl IntoResponses for Unready {
    fn responses() -> Named {
        named(&[ErrorCode::Unavailable])
    }
}

/// By status, as references to what [`Responses`] describes once for all.
fn named(codes: &[ErrorCode]) -> Named {
    let reference = |code: &ErrorCode| {
        let status = code.status().to_string();
        (status.clone(), RefOr::Ref(Ref::from_response_name(format!("Error{status}"))))
    };
    codes.iter().map(reference).collect()
}

/// Describes one answer for each status that an error has.
pub(crate) struct Responses;

impl Modify for Responses {
    fn modify(&self, document: &mut OpenApi) {
        let mut by_status: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
        for code in ErrorCode::ALL {
            by_status.entry(code.status()).or_default().push(code);
        }
        let components = document.components.get_or_insert_default();
        for (status, codes) in by_status {
            components.responses.insert(format!("Error{status}"), RefOr::T(response(&codes)));
        }
    }
}

fn response(codes: &[ErrorCode]) -> Response {
    let names: Vec<_> = codes.iter().map(|code| format!("`{}`", code.as_str())).collect();
    let schema = Ref::from_schema_name(ErrorBody::name());
    let mut content = ContentBuilder::new().schema(Some(schema));
    if let [first, ..] = codes {
        content = content.example(Some(example(*first)));
    }
    let mut response = ResponseBuilder::new()
        .description(format!("The code is {}", names.join(" or ")))
        .content("application/json", content.build());
    if codes.iter().any(|code| code.is_retryable()) {
        let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
        let header =
            HeaderBuilder::new().schema(Some(seconds)).description(Some("Seconds after which to try again"));
        response = response.header("Retry-After", header.build());
    }
    response.build()
}

fn example(code: ErrorCode) -> serde_json::Value {
    let (message, details, remediation) = match code {
        ErrorCode::Malformed => {
            ("the body is not JSON: EOF while parsing an object", json!({}), "send a JSON object")
        }
        ErrorCode::Unauthenticated => {
            ("there is no valid key with the request", json!({}), "send a valid key as X-API-Key")
        }
        ErrorCode::Denied => {
            ("the key lacks the scope jobs:write (rule scope)", json!({"rule": "scope"}), "use another key")
        }
        ErrorCode::NotFound => {
            ("there is no such job", json!({}), "check the id of the job, and whose it is")
        }
        ErrorCode::RequestTimeout => ("the body came too slowly", json!({}), "send the body faster"),
        ErrorCode::IdempotencyConflict | ErrorCode::Conflict | ErrorCode::WrongState => {
            ("the job is running", json!({}), "wait until it has ended")
        }
        ErrorCode::TooLarge => ("the body is too large", json!({}), "send at most 16 MiB"),
        ErrorCode::RangeNotSatisfiable => {
            ("there are only 10 bytes", json!({}), "ask for a part that is there")
        }
        ErrorCode::UnsupportedMediaType => {
            ("the body is said to be text/plain", json!({}), "send it as application/json")
        }
        ErrorCode::Invalid | ErrorCode::Unsupported => {
            let details = json!({"field": "timeout_ms", "value": "0"});
            ("timeout_ms: \"0\" is not valid", details, "it must be more than 0")
        }
        ErrorCode::MethodNotAllowed => ("the path has no such method", json!({}), "see Allow"),
        ErrorCode::RateLimited => ("too many requests", json!({}), "try again in a moment"),
        ErrorCode::Unavailable => ("the server is about to stop", json!({}), "try again in a moment"),
        ErrorCode::Internal => ("something is wrong with the server", json!({}), "tell who looks after it"),
    };
    json!({"error": {
        "code": code, "message": message, "details": details, "remediation": remediation,
        "retryable": code.is_retryable(), "request_id": "req-1-1",
    }})
}
