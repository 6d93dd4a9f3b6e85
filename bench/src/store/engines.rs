//! The two databases, each in a place of its own that goes with the benchmark.

use std::fs;
use std::path::{Path, PathBuf};

use cofferdam_store::Location;
use serde::Serialize;

use super::postgres::Server;
use crate::failure::{Doing, Failure, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    pub(crate) const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

pub(super) enum Place {
    Sqlite(PathBuf),
    Postgres(Server),
}

impl Place {
    pub(super) fn open(engine: Engine, folder: &Path) -> Result<Self> {
        match engine {
            Engine::Sqlite => {
                let _ = fs::remove_dir_all(folder);
                fs::create_dir_all(folder).doing(format_args!("making {}", folder.display()))?;
                Ok(Self::Sqlite(folder.to_owned()))
            }
            Engine::Postgres => Server::start().map(Self::Postgres),
        }
    }

    pub(super) fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }

    /// A database that is empty.
    pub(super) async fn location(&self, name: &str) -> Result<Location> {
        match self {
            Self::Sqlite(folder) => Ok(Location::Sqlite(folder.join(format!("{name}.db")))),
            Self::Postgres(server) => server.create(name).map(Location::Postgres),
        }
    }

    pub(super) fn close(self) -> Result<()> {
        match self {
            Self::Sqlite(folder) => fs::remove_dir_all(&folder)
                .map_err(|error| Failure::new(format!("removing {}: {error}", folder.display()))),
            Self::Postgres(server) => server.stop(),
        }
    }
}
