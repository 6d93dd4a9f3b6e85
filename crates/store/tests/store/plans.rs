//! No question that a caller can ask reads a whole table, however large it has become.

use crate::bed::Bed;
use cofferdam_store::{Location, Statement};
use sqlx::{AnyConnection, Executor, Row};

/// How an engine would go about a statement, in its own words.
async fn plan(raw: &mut AnyConnection, is_sqlite: bool, statement: &Statement) -> Vec<String> {
    if is_sqlite {
        let text = format!("EXPLAIN QUERY PLAN {}", statement.sql);
        let rows = raw.fetch_all(sqlx::AssertSqlSafe(text)).await.unwrap();
        return rows.iter().map(|row| row.get(3)).collect();
    }
    // Without values, as it plans a statement that comes again and again.
    let name = format!("plan_{}", statement.name.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
    let text = format!("PREPARE {name} AS {}", statement.sql);
    raw.execute(sqlx::AssertSqlSafe(text))
        .await
        .unwrap_or_else(|error| panic!("{}: {error}", statement.name));
    let nulls = vec!["NULL"; statement.parameters].join(", ");
    let arguments = if nulls.is_empty() { nulls } else { format!("({nulls})") };
    let text = format!("EXPLAIN EXECUTE {name}{arguments}");
    let rows = raw.fetch_all(sqlx::AssertSqlSafe(text)).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Whether a line of a plan reads a table from one end to the other, or sorts what it found.
fn is_costly(line: &str) -> bool {
    let line = line.trim_start_matches(['-', '>', ' ']);
    let scans = line.starts_with("SCAN ") && !line.starts_with("SCAN CONSTANT ROW");
    scans || line.starts_with("Seq Scan") || line.contains("TEMP B-TREE") || line.contains("Sort ")
}

pub(crate) async fn nothing_reads_a_whole_table(bed: Bed) {
    let store = bed.open().await;
    let is_sqlite = matches!(bed.location, Location::Sqlite(_));
    let mut raw = bed.raw().await;
    if !is_sqlite {
        // Tables are small here, and then anything is quicker than an index; and no plan for values that are not
        // there. What is left is whether there is a way.
        raw.execute(
            "SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan",
        )
        .await
        .unwrap();
    }
    let statements = cofferdam_store::statements(is_sqlite);
    assert!(statements.len() > 10);
    let mut costly = Vec::new();
    for statement in &statements {
        let lines = plan(&mut raw, is_sqlite, statement).await;
        assert!(!lines.is_empty(), "{}", statement.name);
        for line in lines.iter().filter(|line| is_costly(line)) {
            costly.push(format!("{}: {line}", statement.name));
        }
    }
    assert!(costly.is_empty(), "{}", costly.join("\n"));
    // And the search itself sees what it looks for.
    let whole = Statement {
        name: "whole".to_owned(),
        sql: "SELECT id FROM jobs ORDER BY spec".to_owned(),
        parameters: 0,
    };
    assert!(plan(&mut raw, is_sqlite, &whole).await.iter().any(|line| is_costly(line)));
    drop(store);
}
