//! `[serve]`: the process itself.

use crate::config::kinds::{Address, Count, Folder, Maybe, Size, Text, Time};
use crate::config::setting::{Section, no_clash, setting};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct ServeConfig {
    pub(crate) data: Option<PathBuf>,
    pub(crate) listen: SocketAddr,
    pub(crate) database: Option<String>,
    pub(crate) slots: Option<usize>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) drain: Duration,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            data: None,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            database: None,
            slots: None,
            memory_bytes: None,
            drain: Duration::from_secs(30),
        }
    }
}

pub(crate) const SECTION: Section = Section {
    name: "serve",
    about: "The process, its folder and its address.",
    settings: &[
        setting!(
            "data",
            Maybe<Folder>,
            serve.data,
            "folder for the database and the first key; made if it is not there. It has to be given",
            flag = "--data"
        ),
        setting!("listen", Address, serve.listen, "address to listen on", flag = "--listen"),
        setting!(
            "database",
            Maybe<Text>,
            serve.database,
            "a postgres:// address, in the place of SQLite in the data folder",
            secret,
            flag = "--database"
        ),
        setting!(
            "slots",
            Maybe<Count<usize>>,
            serve.slots,
            "jobs that may run at once; four for each processor unless it is given",
            flag = "--slots"
        ),
        setting!(
            "memory",
            Maybe<Size>,
            serve.memory_bytes,
            "memory that running jobs may have together; 3/4 of the machine's unless it is given",
            flag = "--memory"
        ),
        setting!("drain", Time, serve.drain, "how long what runs may go on when the server is told to stop"),
        setting!(
            "lease",
            Time,
            control.lease,
            "for this long a claim on a job is believed without another word"
        ),
    ],
    check: no_clash,
};
