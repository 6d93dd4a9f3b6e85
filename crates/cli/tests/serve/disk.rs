//! A disk that is full.

use crate::client::Client;
use crate::invariants;
use crate::load::{id, job, state, wait_for_all};
use crate::machine::wait_until;
use crate::server::{Folder, Server};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// A small disk of the test's own, for as long as it lives.
struct SmallDisk<'f>(&'f Path);

impl<'f> SmallDisk<'f> {
    fn mount(folder: &'f Path) -> Self {
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=4m", "cofferdam-test"]).arg(folder).status();
        assert!(mounted.expect("mount").success());
        Self(folder)
    }

    /// Fills it to the last byte.
    fn fill(&self) -> File {
        let path = self.0.join("filler");
        let mut file = OpenOptions::new().create(true).append(true).open(path).expect("a file");
        for piece in [64 << 10, 4 << 10, 1] {
            while file.write_all(&vec![b'x'; piece]).is_ok() {}
        }
        file
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("filler")).expect("the file");
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_refuses_new_work_serves_reads_and_recovers() {
    let folder = Folder::new("full");
    let disk = SmallDisk::mount(folder.path());
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    let before = id(&client.post("/v1/jobs?wait_ms=30000", r#"{"command":"echo before"}"#).json());
    let runs = id(&client.post("/v1/jobs", r#"{"command":"sleep 3; echo through"}"#).json());
    wait_until("it runs", || state(&client, &runs) == "running");
    let filler = disk.fill();
    // Its log has room for some more, which was taken before.
    let mut refused = None;
    let mut acknowledged = vec![before.clone(), runs.clone()];
    wait_until("new work is refused", || {
        let large = format!(r#"{{"command":["true"],"stdin":"{}"}}"#, "x".repeat(100_000));
        let stream = client.open("POST", "/v1/jobs", "", &large).expect("a connection");
        let text = std::io::read_to_string(stream).expect("an answer").to_ascii_lowercase();
        match text.split(' ').nth(1) {
            Some("202") => acknowledged.push(text[text.find("job-").expect("an id")..][..20].to_owned()),
            _ => refused = Some(text),
        }
        refused.is_some()
    });
    let refused = refused.expect("a refusal");
    assert!(refused.starts_with("http/1.1 503") && refused.contains("retry-after:"), "{refused}");
    assert!(refused.contains(r#""retryable":true"#) && !refused.contains("sqlite"), "{refused}");
    assert_eq!(job(&client, &before)["result"]["stdout"], "before\n", "reads are served");
    assert_eq!(client.get("/v1/jobs").status, 200);
    drop(filler);
    disk.free();
    wait_until("work is taken again", || {
        let answer = client.post("/v1/jobs?wait_ms=30000", r#"{"command":"echo after"}"#);
        answer.status == 200 && answer.json()["result"]["stdout"] == "after\n"
    });
    wait_until("what ran meanwhile has ended", || state(&client, &runs) == "succeeded");
    assert_eq!(job(&client, &runs)["result"]["stdout"], "through\n");
    wait_for_all(&client);
    assert_eq!(server.stop(), Some(0));
    let counts = invariants::check(folder.path(), &acknowledged);
    assert_eq!((counts.jobs, counts.lost), (counts.ended, 0), "{counts:?}");
}
