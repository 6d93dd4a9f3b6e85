//! `/v1/sessions`, and what is in one.

mod archive;
mod artifacts;
mod content;
mod contexts;
mod files;
mod keep;
mod links;
mod process_socket;
mod processes;
mod search;
mod session;
mod step_output;
mod steps;
mod watch;

use cofferdam_control::Control;
use utoipa_axum::router::OpenApiRouter;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    session::routes()
        .merge(steps::routes())
        .merge(step_output::routes())
        .merge(keep::routes())
        .merge(contexts::routes())
        .merge(files::routes())
        .merge(archive::routes())
        .merge(artifacts::routes())
        .merge(links::routes())
        .merge(search::routes())
        .merge(watch::routes())
        .merge(processes::routes())
        .merge(process_socket::routes())
}
