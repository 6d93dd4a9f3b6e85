//! An S3-compatible store that belongs to the tests: its own folder, ports that were free, and nothing left of it.

use cofferdam_artifacts::Bucket;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

/// Runs until this process is gone: `seaweed.sh` waits for the end of its input.
#[derive(Debug)]
pub(crate) struct Server {
    _keeper: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    port: u16,
}

fn shared() -> &'static Mutex<Server> {
    static SHARED: OnceLock<Mutex<Server>> = OnceLock::new();
    SHARED.get_or_init(|| Mutex::new(Server::start()))
}

/// A bucket of the caller's own on the server that all share, with what it takes to use it.
pub(crate) fn bucket() -> Bucket {
    shared().lock().expect("the server").bucket()
}

impl Server {
    pub(crate) fn bucket(&mut self) -> Bucket {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let name = format!("case-{}", LAST.fetch_add(1, Ordering::Relaxed));
        writeln!(self.orders, "bucket {name}").expect("an order");
        assert_eq!(self.answer(), name);
        Bucket {
            name,
            endpoint: Some(format!("http://127.0.0.1:{}", self.port)),
            region: Some("us-east-1".to_owned()),
            access_key_id: Some("the-id".to_owned()),
            secret_access_key: Some("the-secret".to_owned()),
            session_token: None,
        }
    }

    #[allow(dead_code)] // by those who only need a store
    /// Has `seaweed.sh` stop or start the store, and waits for that.
    pub(crate) fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("an order");
        assert_eq!(self.answer(), order);
    }

    pub(crate) fn start() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the checkout");
        let found = Command::new(root.join("scripts/seaweed.sh")).stderr(Stdio::inherit()).output();
        let found = found.expect("scripts/seaweed.sh starts");
        assert!(found.status.success(), "there is no S3 store to test with: scripts/seaweed.sh failed");
        let weed = String::from_utf8(found.stdout).expect("a path");
        // All held at once, so that they are different ones.
        let held: Vec<_> = (0..8).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let ports: Vec<u16> = held.iter().map(|port| port.local_addr().expect("an address").port()).collect();
        drop(held);
        let mut keeper = Command::new("setsid")
            .args(["bash", "-c", include_str!("seaweed.sh"), "seaweed.sh", weed.trim()])
            .args(ports.iter().map(u16::to_string))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("setsid and bash start");
        let orders = keeper.stdin.take().expect("its input");
        let answers = BufReader::new(keeper.stdout.take().expect("its output"));
        let mut server = Self { _keeper: keeper, orders, answers, port: ports[6] };
        let folder = server.answer();
        assert!(folder.starts_with('/'), "the S3 store did not start");
        server
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        line.trim_end().to_owned()
    }
}
