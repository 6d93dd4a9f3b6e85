//! Drivers: attacks that an observer outside has to judge, one file a topic.

mod command;
mod escape;
mod exhaust;
mod failpoints;
mod files;
mod leak;
mod outlive;
mod output;
pub(crate) mod posture;
mod races;
mod undying;

use crate::lab::Lab;
use crate::row::{Row, Seen};
use cofferdam_core::Control;
pub(crate) use escape::DESCRIPTORS;
use std::time::Instant;

/// Every driver, by the name that the catalogue gives it.
#[cfg_attr(not(test), expect(dead_code, reason = "the tests compare it with the catalogue"))]
pub(crate) const DRIVERS: &[&str] = &[
    "escape-06-cwd-matrix",
    "escape-07-exec-self",
    "escape-08-hostile-image",
    "escape-15-hashes",
    "escape-20-failpoints",
    "escape-21-log",
    "priv-02-golden",
    "priv-04-status",
    "priv-05-at-rest",
    "leak-01-init",
    "leak-01-command",
    "leak-02-two-tenants",
    "leak-07-neighbours",
    "leak-08-piped",
    "exhaust-03-deadline",
    "exhaust-04-gone",
    "exhaust-05-swap",
    "exhaust-06-inotify",
    "exhaust-07-server-memory",
    "exhaust-08-json",
    "exhaust-10-cleanup",
    "exhaust-11-neighbour",
    "outlive-01-scan",
    "outlive-03-canary",
    "outlive-04-inventory",
    "outlive-05-scan",
    "outlive-06-kill-launcher",
    "outlive-06-kill-command",
    "outlive-08-frozen",
    "outlive-09-set-aside",
    "files-01-upload",
    "files-02-chown",
    "files-03-collect",
    "files-04-race",
    "files-05-race",
    "files-06-collect",
    "files-07-names",
    "files-09-delete",
    "files-10-count",
];

/// What a driver says of its attack: the wall, then the control.
pub(crate) type Looks = (Seen, Seen);

pub(crate) async fn drive(lab: &mut Lab, case: &str, driver: &str) -> Row {
    let began = Instant::now();
    let (row, left_out) = match driver {
        "outlive-06-kill-launcher" => (outlive::kill_launcher(lab).await, vec![Control::DiesWithHost]),
        "exhaust-05-swap" => (exhaust::swap(lab).await, vec![Control::SwapOff]),
        "exhaust-06-inotify" => (exhaust::inotify(lab).await, vec![exhaust::inotify_control(lab.mode)]),
        "leak-08-piped" => (leak::piped_core(lab).await, vec![Control::CoreDumpsOff]),
        "leak-01-init" => (leak::init(lab).await, vec![Control::CleanEnvironment]),
        "leak-07-neighbours" => (leak::neighbours(lab).await, vec![Control::PrivateRoot]),
        "escape-07-exec-self" => (escape::exec_self(lab).await, vec![Control::Landlock]),
        "priv-05-at-rest" => (posture::at_rest(lab).await, vec![Control::InitProtected]),
        _ => (alone(lab, driver).await, Vec::new()),
    };
    let (wall, control) = row.unwrap_or_else(|error| (Seen::Error(error), Seen::Without(String::new())));
    Row::new(case, driver, wall, control).leaving_out(&left_out).took(began.elapsed())
}

/// Drivers whose control, if they have one, leaves no control of the product out.
async fn alone(lab: &mut Lab, driver: &str) -> Result<Looks, String> {
    match driver {
        "escape-06-cwd-matrix" => escape::cwd_matrix(lab).await,
        "escape-08-hostile-image" => escape::hostile_image(lab).await,
        "escape-15-hashes" => escape::hashes(lab).await,
        "escape-20-failpoints" => failpoints::every_stage(lab).await,
        "escape-21-log" => escape::log(lab).await,
        "priv-02-golden" => posture::golden(lab).await,
        "priv-04-status" => escape::status(lab).await,
        "leak-01-command" => command::arguments(lab).await,
        "leak-02-two-tenants" => leak::two_tenants(lab).await,
        "exhaust-03-deadline" => exhaust::deadline(lab).await,
        "exhaust-04-gone" => exhaust::gone(lab).await,
        "exhaust-07-server-memory" => output::endless(lab).await,
        "exhaust-08-json" => output::odd(lab).await,
        "exhaust-10-cleanup" => exhaust::cleanup(lab).await,
        "exhaust-11-neighbour" => exhaust::sync_storm(lab).await,
        "outlive-01-scan" => outlive::grace(lab).await,
        "outlive-03-canary" => outlive::canary(lab).await,
        "outlive-04-inventory" => outlive::many_runs(lab).await,
        "outlive-05-scan" => outlive::double_fork(lab).await,
        "outlive-06-kill-command" => command::kill(lab).await,
        "outlive-09-set-aside" => undying::set_aside(lab).await,
        "outlive-08-frozen" => outlive::frozen(lab).await,
        "files-01-upload" => files::upload(lab).await,
        "files-02-chown" => files::chown(lab).await,
        "files-03-collect" => files::collect_special(lab).await,
        "files-04-race" => races::renamed(lab).await,
        "files-05-race" => races::exchanged(lab).await,
        "files-06-collect" => files::collect_links(lab).await,
        "files-07-names" => files::names(lab).await,
        "files-09-delete" => files::delete(lab).await,
        "files-10-count" => files::count(lab).await,
        _ => Err("no such driver".to_owned()),
    }
}

/// For walls that only the product's own code is, so that there is nothing to leave out.
pub(crate) fn own_code() -> Seen {
    Seen::Without("the host's own code is tested".to_owned())
}

pub(crate) fn held(text: impl Into<String>) -> Seen {
    Seen::Held(text.into())
}

pub(crate) fn broke(text: impl Into<String>) -> Seen {
    Seen::Broke(text.into())
}
