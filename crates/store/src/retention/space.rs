//! Bytes that nothing uses any more, given back to the disk.

use crate::{Result, Store};
use sqlx::{AnyConnection, Row};

/// What a file has to spare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Space {
    /// Pages of the file that hold nothing.
    pub free_pages: i64,
    /// Whether they can be given back while the file is in use.
    pub can_shrink: bool,
}

impl Store {
    /// What there is to give back. A server's database looks after that by itself, so there it is nothing.
    pub async fn space(&self) -> Result<Space> {
        let Some([free, mode]) = self.engine.kind().space() else { return Ok(Space::default()) };
        let number = async |text: &'static str| -> Result<i64> {
            let row = self.engine.fetch_optional(sqlx::query(text)).await?;
            Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(0))
        };
        Ok(Space { free_pages: number(free).await?, can_shrink: number(mode).await? != 0 })
    }

    /// Gives some of it back.
    pub async fn shrink(&self) -> Result<()> {
        match self.engine.kind().shrink() {
            None => Ok(()),
            Some(text) => self.writer.write(Shrink(text)).await,
        }
    }
}

struct Shrink(&'static str);

impl crate::writer::Act<()> for Shrink {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        sqlx::query(self.0).fetch_all(connection).await?;
        Ok(())
    }
}
