//! `/v1/sessions`, and what is in one.

mod contexts;
mod files;
mod keep;
mod processes;
mod session;
mod step_output;
mod steps;

use cofferdam_control::Control;
use utoipa_axum::router::OpenApiRouter;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    session::routes()
        .merge(steps::routes())
        .merge(step_output::routes())
        .merge(keep::routes())
        .merge(contexts::routes())
        .merge(files::routes())
        .merge(processes::routes())
}
