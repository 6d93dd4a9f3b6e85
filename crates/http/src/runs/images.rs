//! `/images`: the image store of a worker, for the control plane that registers what is in it.

use super::Runs;
use crate::answer::{Answer, Problem, json};
use crate::body::Body as JsonBody;
use crate::document::refusals::{Always, OfBody};
use crate::query::NoQuery;
use axum::extract::State;
use cofferdam_api::{ErrorCode, ImageLook, ImageLooked, ImagePins};
use cofferdam_control::{ImageFailure, ImageWorker, InspectedImage};
use cofferdam_core::InvalidValue;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Runs> {
    OpenApiRouter::new().routes(routes!(look)).routes(routes!(pin))
}

/// Characters of a name.
const MAX_NAME: usize = 384;

/// More than there are.
const MAX_PROFILES: usize = 16;

/// More than anybody registers; each is a link in the store.
const MAX_DIGESTS: usize = 100_000;

/// Try an image
///
/// Runs the contract of each profile in a sandbox on it, and looks for credentials in it. It may take minutes; what is
/// wrong with the image or its name is part of the answer.
#[utoipa::path(
    post, path = "/images/look", operation_id = "shelf_look", tag = "images",
    request_body(content = ImageLook, content_type = "application/json"),
    responses((status = 200, description = "What came of it", body = ImageLooked), Always, OfBody)
)]
async fn look(State(runs): State<Runs>, _: NoQuery, body: JsonBody<ImageLook>) -> Answer {
    let ImageLook { worker_id, name, digest, profiles } = body.value;
    check_count("name", name.chars().count(), MAX_NAME)?;
    check_count("profiles", profiles.len(), MAX_PROFILES)?;
    runs.check_worker(&worker_id)?;
    let looked = match shelf(&runs)?.inspect(&name, digest.as_deref(), &profiles).await {
        Ok(InspectedImage { name, capabilities, check }) => ImageLooked::Found { name, capabilities, check },
        Err(failure) => said(failure),
    };
    Ok(json(200, &looked))
}

/// Keep images
///
/// In the worker's store, whatever becomes of their names there.
#[utoipa::path(
    put, path = "/images/pins", operation_id = "shelf_pin", tag = "images",
    request_body(content = ImagePins, content_type = "application/json"),
    responses((status = 200, description = "What came of it", body = ImageLooked), Always, OfBody)
)]
async fn pin(State(runs): State<Runs>, _: NoQuery, body: JsonBody<ImagePins>) -> Answer {
    let ImagePins { worker_id, keeper, digests, is_all } = body.value;
    check_count("digests", digests.len(), MAX_DIGESTS)?;
    runs.check_worker(&worker_id)?;
    // It becomes the name of a folder.
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !(1..=64).contains(&keeper.len()) || !keeper.bytes().all(is_plain) {
        let fix = "it must be 1 to 64 small letters, digits and -";
        return Err(InvalidValue::new("keeper", keeper, fix).into());
    }
    let kept = match is_all {
        true => shelf(&runs)?.pin_only(&keeper, digests).await,
        false => pin_each(shelf(&runs)?, &keeper, &digests).await,
    };
    Ok(json(200, &kept.map_or_else(said, |()| ImageLooked::Done)))
}

/// What the document says of sizes.
fn check_count(field: &'static str, count: usize, most: usize) -> Result<(), InvalidValue> {
    match count > most {
        true => Err(InvalidValue::new(field, count.to_string(), format!("it may have at most {most}"))),
        false => Ok(()),
    }
}

async fn pin_each(shelf: &dyn ImageWorker, keeper: &str, digests: &[String]) -> Result<(), ImageFailure> {
    for digest in digests {
        shelf.pin(keeper, digest).await?;
    }
    Ok(())
}

fn shelf(runs: &Runs) -> Result<&dyn ImageWorker, Problem> {
    let none = || Problem::new(ErrorCode::Unsupported, "this worker has no images", "ask another worker");
    runs.worker().images().ok_or_else(none)
}

fn said(failure: ImageFailure) -> ImageLooked {
    match failure {
        ImageFailure::NotThere => ImageLooked::NotThere,
        ImageFailure::Invalid(InvalidValue { field, value, fix }) => {
            ImageLooked::Invalid { field, value, fix }
        }
        ImageFailure::Failed(why) => ImageLooked::Failed { why },
    }
}
