//! Servers and workers that are killed in the middle of their work.

use crate::client::Client;
use crate::invariants;
use crate::load::{Ids, Load, wait_for_all};
use crate::machine::OwnProgram;
use crate::server::{Folder, Server};
use std::thread::sleep;
use std::time::Duration;

const CLIENTS: usize = 4;

/// How often something is killed; a soak asks for more.
fn kills() -> usize {
    std::env::var("COFFERDAM_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(50)
}

/// At another moment each time, from before the first answer to well into the work.
fn moment(kill: usize) {
    sleep(Duration::from_millis(5 + (kill as u64 * 37) % 260));
}

#[test]
fn nothing_acknowledged_is_lost_by_kills_of_the_server_under_load() {
    let (folder, program) = (Folder::new("kills"), OwnProgram::new());
    let start = || Server::start_role(&program.path(), "serve", folder.path(), &[]);
    let acknowledged = Ids::default();
    let (mut done, wanted) = (0, kills());
    // On a machine that is busy with something else, fewer answers come between two kills: then there are more kills.
    while done < wanted || (acknowledged.lock().expect("ids").len() <= wanted && done < 4 * wanted) {
        let server = start();
        let load = Load::start(CLIENTS, &[Client::of(&server)], &acknowledged);
        moment(done);
        done += 1;
        server.kill();
        load.stop();
    }
    // The last one is left to finish what was kept, and stops in peace.
    let server = start();
    let client = Client::of(&server);
    let acknowledged = std::mem::take(&mut *acknowledged.lock().expect("ids"));
    assert!(acknowledged.len() > kills() / 2, "only {} were acknowledged", acknowledged.len());
    wait_for_all(&client);
    for id in &acknowledged {
        assert_eq!(client.get(&format!("/v1/jobs/{id}")).status, 200, "I1: {id}");
    }
    let artifacts = invariants::check_artifacts(&client);
    assert_eq!(server.stop(), Some(0));
    let counts = invariants::check(folder.path(), &acknowledged);
    println!("{done} kills, {} acknowledged, {counts:?}, {artifacts} artifacts", acknowledged.len());
    assert_eq!(counts.jobs, counts.ended, "{counts:?}");
    assert!(counts.lost > 0 && counts.lost < counts.jobs, "the kills hit nothing, or everything: {counts:?}");
    assert!(counts.retried > 0, "nothing was retried: {counts:?}");
    program.wait_until_gone();
}

/// Control and two workers, each killed in turn.
#[test]
fn nothing_acknowledged_is_lost_by_kills_of_control_and_workers_under_load() {
    let (folder, program) = (Folder::new("role-kills"), OwnProgram::new());
    let token = folder.path().join("service.token");
    // Always at the same place, as behind a name.
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let start_control = || {
        Server::start_role(&program.path(), "control", folder.path(), &["--lease", "1s", "--listen", &listen])
    };
    let mut control = start_control();
    let start_worker =
        |control: &Server| Server::start_worker(&program.path(), &[control], &token, &["--slots", "4"]);
    let mut workers = [start_worker(&control), start_worker(&control)];
    let client = Client::of(&control);
    let acknowledged = Ids::default();
    let load = Load::start(CLIENTS, std::slice::from_ref(&client), &acknowledged);
    for kill in 0..kills() {
        moment(kill);
        if kill % 3 == 0 {
            control.kill();
            control = start_control();
        } else {
            let worker = &mut workers[kill % 2];
            let next = start_worker(&control);
            std::mem::replace(worker, next).kill();
        }
    }
    load.stop();
    let acknowledged = std::mem::take(&mut *acknowledged.lock().expect("ids"));
    assert!(acknowledged.len() > kills() / 2, "only {} were acknowledged", acknowledged.len());
    wait_for_all(&client);
    let artifacts = invariants::check_artifacts(&client);
    for worker in workers {
        assert_eq!(worker.stop(), Some(0));
    }
    assert_eq!(control.stop(), Some(0));
    let counts = invariants::check(folder.path(), &acknowledged);
    println!("{} kills, {} acknowledged, {counts:?}, {artifacts} artifacts", kills(), acknowledged.len());
    assert_eq!(counts.jobs, counts.ended, "{counts:?}");
    assert!(counts.lost > 0 && counts.lost < counts.jobs, "the kills hit nothing, or everything: {counts:?}");
    assert!(counts.retried > 0, "nothing was retried: {counts:?}");
    program.wait_until_gone();
}

/// A port that nobody has just now.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}
