//! `/v1/images`: which images of the server's store a tenant is told of.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::cursor::{page, read_cursor};
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::idempotency::idempotency_key;
use crate::path::Id;
use crate::query::{NoQuery, Query};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use cofferdam_api::{Image, ImageCheck, ImageList, ImageRequest};
use cofferdam_control::{Control, hash, image_view};
use cofferdam_policy::Action;
use cofferdam_store::ImageFilter;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new()
        .routes(routes!(list, register))
        .routes(routes!(show, unregister))
        .routes(routes!(check))
}

const PAGE: u64 = 50;
const MAX_PAGE: u64 = 500;

/// Register an image
///
/// The image is in the server's store already. The contract of every profile is tried in a sandbox on it, which takes
/// some seconds; an image that fails one of them is refused, and so is one with credentials in it, unless
/// `allow_credentials` is set. The refusal has the table of checks in `details.check`. An image for all tenants takes an
/// operator.
#[utoipa::path(
    post, path = "/images", operation_id = "image_register", tag = "images",
    params(
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
         description = "The same key with the same body is done once, and answered alike; with another body, or before the first has ended, it is a 409"),
    ),
    request_body(content = ImageRequest, content_type = "application/json"),
    responses(
        (status = 201, description = "The image", body = Image, links(
            ("get" = (operation_id = "image_get", parameters(("id" = "$response.body#/id")))),
            ("check" = (operation_id = "image_check", parameters(("id" = "$response.body#/id")))),
            ("delete" = (operation_id = "image_unregister", parameters(("id" = "$response.body#/id")))),
        )),
        Always, OfOne, OfBody, OfState,
    )
)]
async fn register(
    State(control): State<Control>,
    caller: Caller,
    _: NoQuery,
    headers: HeaderMap,
    body: Body<ImageRequest>,
) -> Answer {
    let name = idempotency_key(&headers)?.map(|name| (name, hash(&body.bytes)));
    let permit = caller.permit(&control, Action::ImageRegister).await?;
    Ok(json(201, &image_view(control.register_image(&permit, body.value, name).await?)))
}

/// List images
///
/// Those of the tenant and those of all tenants, the newest first.
#[utoipa::path(
    get, path = "/images", operation_id = "image_list", tag = "images",
    params(
        ("profile" = Option<String>, Query, pattern = r"^[^\u0000]*$", example = "python-tools",
         description = "Only those that were registered for this profile"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "How many; 50 unless given"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "A page of images", body = ImageList), Always)
)]
async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["profile", "limit", "cursor"])?;
    let permit = caller.permit(&control, Action::ImageList).await?;
    let limit = query.count("limit", MAX_PAGE)?.unwrap_or(PAGE) as usize;
    let before = query.get("cursor").map(read_cursor).transpose()?;
    let filter = ImageFilter { profile: query.get("profile").map(str::to_owned), before };
    let found = control.list_images(&permit, &filter, limit as i64 + 1).await?;
    let (images, next_cursor) = page(found, limit, |image| (image.created_at_ms, &image.id));
    Ok(json(200, &ImageList { images: images.into_iter().map(image_view).collect(), next_cursor }))
}

/// Show an image
#[utoipa::path(
    get, path = "/images/{id}", operation_id = "image_get", tag = "images",
    params(("id" = String, Path, description = "The image's id", example = "img-aaaaaaaaaaaaaaaa")),
    responses((status = 200, description = "The image", body = Image), Always, OfOne)
)]
async fn show(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::ImageGet).await?;
    Ok(json(200, &image_view(control.get_image(&permit, &id).await?)))
}

/// Check an image
///
/// Tries the contract of every profile that it was registered for in a sandbox on it, and looks for credentials. Nothing
/// changes by it. An image that is not in the server's store any more is a 409.
#[utoipa::path(
    post, path = "/images/{id}/check", operation_id = "image_check", tag = "images",
    params(("id" = String, Path, description = "The image's id", example = "img-aaaaaaaaaaaaaaaa")),
    responses((status = 200, description = "What was found", body = ImageCheck), Always, OfOne, OfState)
)]
async fn check(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::ImageCheck).await?;
    Ok(json(200, &control.check_image(&permit, &id).await?))
}

/// Unregister an image
///
/// Its layers stay in the server's store, and jobs that were taken in with it run on it. One that all tenants see takes
/// an operator.
#[utoipa::path(
    delete, path = "/images/{id}", operation_id = "image_unregister", tag = "images",
    params(
        ("id" = String, Path, description = "The image's id", example = "img-aaaaaaaaaaaaaaaa"),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
         description = "The same key with the same body is done once, and answered alike; with another body, or before the first has ended, it is a 409"),
    ),
    responses((status = 204, description = "It is gone"), Always, OfOne, OfState)
)]
async fn unregister(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    headers: HeaderMap,
) -> Answer {
    let name = idempotency_key(&headers)?.map(|name| (name, String::new()));
    let permit = caller.permit(&control, Action::ImageUnregister).await?;
    control.unregister_image(&permit, &id, name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
