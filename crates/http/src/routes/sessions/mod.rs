//! `/v1/sessions`, and what is in one.

mod contexts;
mod session;
mod steps;

use cofferdam_control::Control;
use utoipa_axum::router::OpenApiRouter;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    session::routes().merge(steps::routes()).merge(contexts::routes())
}
