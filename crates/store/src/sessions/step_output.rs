//! What a step writes while it runs. It lies with the output of jobs, and is read like it.

use super::guard::why_step;
use crate::{OutputEvent, Result, Store, output, texts};
use cofferdam_core::JobState;
use sqlx::AnyConnection;

impl Store {
    /// Keeps some of a running step's output.
    pub async fn append_step_output(
        &self,
        id: String,
        generation: i64,
        events: Vec<OutputEvent>,
    ) -> Result<()> {
        texts::check([("the step's id", id.as_str())])?;
        self.writer.write(Append { id, generation, events }).await
    }
}

struct Append {
    id: String,
    generation: i64,
    events: Vec<OutputEvent>,
}

impl crate::writer::Act<()> for Append {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let row = sqlx::query("SELECT 1 FROM steps WHERE id = $1 AND generation = $2 AND state = 'running'")
            .bind(self.id.as_str())
            .bind(self.generation)
            .fetch_optional(&mut *connection)
            .await?;
        if row.is_none() {
            return Err(why_step(connection, &self.id, self.generation, JobState::Running).await);
        }
        output::append(connection, &self.id, self.events).await
    }
}
