//! Requests that name themselves, so that sending one again does not do it again.

use crate::{Millis, Result, Store, texts};
use sqlx::{AnyConnection, Row};

/// The name that a caller gave a request, and what that was.
#[derive(Debug, Clone)]
pub struct Idempotency {
    pub route: &'static str,
    pub name: String,
    /// Of the whole body: the same name for something else is a mistake.
    pub body_hash: String,
}

/// What is kept under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// Nothing yet; now it is this request's.
    New,
    /// The same request came before, and made this.
    Same { resource: String },
    /// Another request has that name.
    Other,
}

impl Store {
    /// What is kept under the name of a request, before anything is done for it.
    pub async fn kept_request(&self, tenant: &str, idempotency: &Idempotency) -> Result<Kept> {
        let Idempotency { route, name, body_hash } = idempotency;
        let query = sqlx::query(FIND).bind(tenant).bind(*route).bind(name.as_str());
        let Some(row) = self.engine.fetch_optional(query).await? else { return Ok(Kept::New) };
        kept(&row, body_hash)
    }
}

impl Store {
    /// Takes a name before what it asks for is done, in more than one transaction. What it made is said with
    /// [`Store::finish_name`]; until then its resource is empty.
    pub async fn take_name(&self, tenant: String, name: Idempotency, now: Millis) -> Result<Kept> {
        texts::check([("the idempotency key", name.name.as_str())])?;
        self.writer.write(Take { tenant, name, now }).await
    }

    /// Says what came of a request that has a name, or, with nothing, that nothing did: then the name is free again.
    pub async fn finish_name(&self, tenant: String, name: Idempotency, made: Option<String>) -> Result<()> {
        self.writer.write(Finish { tenant, name, made }).await
    }
}

struct Take {
    tenant: String,
    name: Idempotency,
    now: Millis,
}

impl crate::writer::Act<Kept> for Take {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<Kept>
    where
        Self: 'c,
    {
        take(connection, &self.tenant, &self.name, "", self.now).await
    }
}

struct Finish {
    tenant: String,
    name: Idempotency,
    made: Option<String>,
}

impl crate::writer::Act<()> for Finish {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let Self { tenant, name, made } = self;
        let text = match made {
            Some(_) => {
                "UPDATE idempotency SET resource = $4 WHERE tenant_id = $1 AND route = $2 AND name = $3 AND resource = ''"
            }
            None => {
                "DELETE FROM idempotency WHERE tenant_id = $1 AND route = $2 AND name = $3 AND resource = ''"
            }
        };
        let query = sqlx::query(text).bind(tenant).bind(name.route).bind(name.name);
        let query = match made {
            Some(made) => query.bind(made),
            None => query,
        };
        query.execute(connection).await?;
        Ok(())
    }
}

const FIND: &str =
    "SELECT body_hash, resource FROM idempotency WHERE tenant_id = $1 AND route = $2 AND name = $3";

fn kept(row: &sqlx::any::AnyRow, body_hash: &str) -> Result<Kept> {
    let known: String = row.try_get(0)?;
    Ok(if known == body_hash { Kept::Same { resource: row.try_get(1)? } } else { Kept::Other })
}

/// Takes a name for a request, inside the transaction that does what it asks for.
pub(crate) async fn take(
    connection: &mut AnyConnection,
    tenant: &str,
    idempotency: &Idempotency,
    resource: &str,
    now: Millis,
) -> Result<Kept> {
    let Idempotency { route, name, body_hash } = idempotency;
    let taken = sqlx::query(
        "INSERT INTO idempotency (tenant_id, route, name, body_hash, resource, created_at_ms) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant_id, route, name) DO NOTHING",
    )
    .bind(tenant)
    .bind(*route)
    .bind(name.as_str())
    .bind(body_hash.as_str())
    .bind(resource)
    .bind(now)
    .execute(&mut *connection)
    .await?;
    if taken.rows_affected() == 1 {
        return Ok(Kept::New);
    }
    let row = sqlx::query(FIND).bind(tenant).bind(*route).bind(name.as_str()).fetch_one(connection).await?;
    kept(&row, body_hash)
}
