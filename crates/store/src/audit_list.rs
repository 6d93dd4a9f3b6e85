//! Parts of a tenant's chain, by what is asked for. However long the chain is and however deep the page, an index
//! leads to its first entry.

use crate::audit::entry;
use crate::{Millis, Result, Store};
use cofferdam_core::AuditEntry;
use sqlx::Row;

/// Which entries of a chain, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub after_seq: i64,
    /// From this time on.
    pub from_ms: Option<Millis>,
    /// Before this time.
    pub to_ms: Option<Millis>,
    pub actor: Option<String>,
    pub kind: Option<String>,
    pub resource: Option<String>,
    pub limit: i64,
}

/// Kinds of which every job has one: walking the chain meets them all the time, so they have no index.
const RARE: &str = "kind NOT IN ('job.accepted', 'job.running', 'job.finished')";

fn is_common(kind: &str) -> bool {
    ["job.accepted", "job.running", "job.finished"].contains(&kind)
}

/// The column whose index leads to the entries; without one, the chain's own order does.
fn leading(filter: &AuditFilter) -> Option<&'static str> {
    let AuditFilter { actor, kind, resource, .. } = filter;
    match (resource, kind, actor) {
        (Some(_), _, _) => Some("resource"),
        (None, Some(kind), _) if !is_common(kind) => Some("kind"),
        // The system is in the chain as often as jobs are.
        (None, _, Some(actor)) if actor != "system" => Some("actor"),
        (None, _, _) => None,
    }
}

/// The question as SQL, and what it compares with after the first four. No database is left to guess: it would often
/// walk the chain for something that is hardly ever in it. The three indexes, and nothing else, are ordered by
/// `seq + 0`, and the conditions that do not lead are written so that no index of theirs fits.
fn question(filter: &AuditFilter) -> (String, Vec<&str>) {
    let AuditFilter { actor, kind, resource, .. } = filter;
    let leading = leading(filter);
    let mut conditions = String::new();
    let mut values = Vec::new();
    for (name, value) in [("resource", resource), ("kind", kind), ("actor", actor)] {
        let Some(value) = value else { continue };
        values.push(value.as_str());
        let hidden = if leading == Some(name) { "" } else { " || ''" };
        conditions.push_str(&format!(" AND {name}{hidden} = ${}", values.len() + 4));
    }
    // An index that holds only some rows is taken where the question says that it is only about those.
    match leading {
        Some("kind") => conditions.push_str(&format!(" AND {RARE}")),
        Some("actor") => conditions.push_str(" AND actor <> 'system'"),
        _ => {}
    }
    let seq = if leading.is_some() { "seq + 0" } else { "seq" };
    let text = format!(
        "SELECT seq, at_ms, kind, actor, resource, details, hash FROM audit \
         WHERE tenant_id = $1 AND {seq} > $2 AND {seq} < $3{conditions} ORDER BY {seq} LIMIT $4"
    );
    (text, values)
}

impl AuditFilter {
    /// The question as a database is asked it, for the tests that look at how it is answered.
    #[doc(hidden)]
    pub fn question(&self) -> String {
        question(self).0
    }
}

/// The number of the first entry at or after a time, found by halving: times never run backwards in a chain.
const FIRST_AT: &str = "WITH RECURSIVE search (low, high) AS ( \
     SELECT CAST($2 AS BIGINT), CAST($3 AS BIGINT) UNION ALL SELECT \
     CASE WHEN (SELECT at_ms FROM audit WHERE tenant_id = $1 AND seq >= (low + high) / 2 ORDER BY seq LIMIT 1) < $4 \
     THEN (low + high) / 2 + 1 ELSE low END, \
     CASE WHEN (SELECT at_ms FROM audit WHERE tenant_id = $1 AND seq >= (low + high) / 2 ORDER BY seq LIMIT 1) < $4 \
     THEN high ELSE (low + high) / 2 END \
     FROM search WHERE low < high) \
     SELECT low FROM search WHERE low >= high";

impl Store {
    /// The entries of a tenant that fit, in order.
    pub async fn audit_list(&self, tenant: &str, filter: &AuditFilter) -> Result<Vec<AuditEntry>> {
        let mut after = filter.after_seq;
        let mut before = i64::MAX;
        if filter.from_ms.is_some() || filter.to_ms.is_some() {
            let last = self.audit_head(tenant).await?.seq;
            if let Some(from) = filter.from_ms {
                after = after.max(self.first_at(tenant, last, from).await? - 1);
            }
            if let Some(to) = filter.to_ms {
                before = self.first_at(tenant, last, to).await?;
            }
        }
        let (text, values) = question(filter);
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(tenant).bind(after).bind(before);
        let mut query = query.bind(filter.limit);
        for value in values {
            query = query.bind(value);
        }
        query.fetch_all(self.engine.readers()).await?.iter().map(|row| Ok(entry(row)?)).collect()
    }

    /// One more than the last number where everything is older.
    async fn first_at(&self, tenant: &str, last: i64, at_ms: Millis) -> Result<i64> {
        let query = sqlx::query(FIRST_AT).bind(tenant).bind(1_i64).bind(last + 1).bind(at_ms);
        Ok(query.fetch_one(self.engine.readers()).await?.try_get(0)?)
    }
}
