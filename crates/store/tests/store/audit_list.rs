//! Questions to the audit: each answers with what fits, in order, from any place, and by an index.

use crate::bed::{Bed, OTHER, TENANT, event};
use cofferdam_store::{AuditEvent, AuditFilter, Store};
use sqlx::Row;

/// Thirty entries, ten of each of three kinds, by three actors, at ten times.
async fn thirty(bed: &Bed) -> Store {
    let store = bed.open().await;
    for i in 0..30_i64 {
        let kind = ["job.accepted", "denied", "key.used"][i as usize % 3];
        let actor = ["key_a", "key_b", "system"][i as usize / 10];
        let event = AuditEvent {
            at_ms: 1_000 + i / 3 * 10,
            actor: actor.to_owned(),
            ..event(kind, &format!("r{}", i % 5))
        };
        store.note(TENANT.to_owned(), event).await.unwrap();
        store.note(OTHER.to_owned(), crate::bed::event("denied", "r0")).await.unwrap();
    }
    store
}

async fn seqs(store: &Store, filter: AuditFilter) -> Vec<i64> {
    let entries = store.audit_list(TENANT, &filter).await.unwrap();
    entries.iter().map(|entry| entry.seq).collect()
}

fn all() -> AuditFilter {
    AuditFilter { limit: 100, ..AuditFilter::default() }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

pub(crate) async fn entries_are_found_by_what_they_are(bed: Bed) {
    let store = thirty(&bed).await;
    assert_eq!(seqs(&store, all()).await, (1..=30).collect::<Vec<_>>());
    let denied = AuditFilter { kind: some("denied"), ..all() };
    assert_eq!(seqs(&store, denied.clone()).await, [2, 5, 8, 11, 14, 17, 20, 23, 26, 29]);
    assert_eq!(seqs(&store, AuditFilter { kind: some("job.accepted"), ..all() }).await.len(), 10);
    assert_eq!(
        seqs(&store, AuditFilter { actor: some("key_b"), ..all() }).await,
        (11..=20).collect::<Vec<_>>()
    );
    assert_eq!(seqs(&store, AuditFilter { actor: some("system"), ..all() }).await.len(), 10);
    assert_eq!(seqs(&store, AuditFilter { resource: some("r1"), ..all() }).await, [2, 7, 12, 17, 22, 27]);
    let both = AuditFilter { actor: some("key_b"), ..denied.clone() };
    assert_eq!(seqs(&store, both.clone()).await, [11, 14, 17, 20]);
    assert_eq!(seqs(&store, AuditFilter { resource: some("r1"), ..both }).await, [17]);
    assert!(seqs(&store, AuditFilter { actor: some("key_a' OR 'a' = 'a"), ..all() }).await.is_empty());
    // From any place, without a gap or a repetition.
    let mut found = Vec::new();
    while let page = seqs(
        &store,
        AuditFilter { after_seq: found.last().copied().unwrap_or(0), limit: 3, ..denied.clone() },
    )
    .await
        && !page.is_empty()
    {
        found.extend(page);
    }
    assert_eq!(found, [2, 5, 8, 11, 14, 17, 20, 23, 26, 29]);
}

pub(crate) async fn entries_are_found_by_their_time(bed: Bed) {
    let store = thirty(&bed).await;
    let between = |from_ms, to_ms| AuditFilter { from_ms, to_ms, ..all() };
    // Three entries at each of 1000, 1010, … 1090.
    for (from, to, first, last) in [
        (None, None, 1, 30),
        (Some(0), None, 1, 30),
        (Some(1_000), Some(1_010), 1, 3),
        (Some(1_001), Some(1_020), 4, 6),
        (Some(1_045), Some(1_071), 16, 24),
        (Some(1_090), None, 28, 30),
        (None, Some(1_090), 1, 27),
        (Some(1_091), None, 1, 0),
        (None, Some(1_000), 1, 0),
        (Some(1_050), Some(1_020), 1, 0),
        (Some(i64::MIN), Some(i64::MAX), 1, 30),
    ] {
        let expected: Vec<i64> = (first..=last).collect();
        assert_eq!(seqs(&store, between(from, to)).await, expected, "{from:?} to {to:?}");
    }
    let later = AuditFilter { after_seq: 5, kind: some("denied"), ..between(Some(1_000), Some(1_030)) };
    assert_eq!(seqs(&store, later).await, [8]);
    assert!(store.audit_list("ten_nobody", &between(Some(1), Some(2))).await.unwrap().is_empty());
    // Where retention has removed the beginning.
    bed.harm("DELETE FROM audit WHERE tenant_id = 'ten_one' AND seq <= 10").await;
    assert_eq!(seqs(&store, between(Some(0), Some(1_040))).await, [11, 12]);
    assert_eq!(seqs(&store, between(Some(1_030), Some(1_050))).await, [11, 12, 13, 14, 15]);
}

pub(crate) async fn time_in_a_chain_never_runs_backwards(bed: Bed) {
    let store = bed.open().await;
    for at_ms in [500, 400, 600, 10] {
        store.note(TENANT.to_owned(), AuditEvent { at_ms, ..event("case.noted", "x") }).await.unwrap();
    }
    let again = bed.open().await;
    again.note(TENANT.to_owned(), AuditEvent { at_ms: 20, ..event("case.noted", "x") }).await.unwrap();
    let times: Vec<_> = store.audit(TENANT, 0, 10).await.unwrap().iter().map(|entry| entry.at_ms).collect();
    assert_eq!(times, [500, 500, 600, 600, 600]);
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 5);
}

fn question(actor: bool, kind: Option<&str>, resource: bool) -> AuditFilter {
    AuditFilter {
        actor: actor.then(|| "key_a".to_owned()),
        kind: kind.map(str::to_owned),
        resource: resource.then(|| "r1".to_owned()),
        ..all()
    }
}

/// Questions, with the index that must lead.
fn questions() -> [(AuditFilter, &'static str); 7] {
    [
        (question(false, None, false), ""),
        (question(true, None, false), "audit_by_actor"),
        (question(true, Some("job.accepted"), false), "audit_by_actor"),
        (question(true, Some("denied"), false), "audit_by_rare_kind"),
        (question(false, Some("denied"), false), "audit_by_rare_kind"),
        (question(false, None, true), "audit_by_resource"),
        (question(true, Some("denied"), true), "audit_by_resource"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_question_to_sqlite_is_led_by_an_index() {
    let bed = Bed::sqlite();
    let _store = thirty(&bed).await;
    for (filter, index) in questions() {
        let text = format!("EXPLAIN QUERY PLAN {}", filter.question());
        let rows = sqlx::query(sqlx::AssertSqlSafe(text)).fetch_all(&mut bed.raw().await).await.unwrap();
        let plan: String =
            rows.iter().map(|row| row.try_get::<String, _>("detail").unwrap() + "\n").collect();
        let range = if index.is_empty() { "seq>? AND seq<?)" } else { "<expr>>? AND <expr><?)" };
        assert!(
            plan.contains(index) && plan.contains(range) && !plan.contains("B-TREE"),
            "{filter:?}: {plan}"
        );
    }
}

/// A plan that is made once for all values knows nothing of rare ones: the worst case, and what a server uses.
#[tokio::test(flavor = "multi_thread")]
async fn every_question_to_postgres_is_led_by_an_index() {
    let bed = Bed::postgres().await;
    bed.open().await;
    bed.run(
        "INSERT INTO audit (tenant_id, seq, at_ms, kind, actor, resource, details, hash) \
         SELECT 'ten_one', i, i, CASE WHEN i % 500 = 0 THEN 'denied' ELSE 'job.accepted' END, \
         'key_' || i % 3, 'r' || i / 3, '{}', '' FROM generate_series(1, 30000) AS i; ANALYZE audit",
    )
    .await;
    for (filter, index) in questions() {
        let mut raw = bed.raw().await;
        let count = [&filter.resource, &filter.kind, &filter.actor].into_iter().flatten().count();
        let (types, values) = (", text".repeat(count), ", 'key_a'".repeat(count));
        let prepare = format!("PREPARE q (text, bigint, bigint, bigint{types}) AS {}", filter.question());
        for text in ["SET plan_cache_mode = force_generic_plan".to_owned(), prepare] {
            sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(&mut raw).await.unwrap();
        }
        let explain = format!("EXPLAIN EXECUTE q ('ten_one', 20000, 30000, 100{values})");
        let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(explain)).fetch_all(&mut raw).await.unwrap();
        let plan: String = rows.iter().map(|row| row.try_get::<String, _>(0).unwrap() + "\n").collect();
        let index = if index.is_empty() { "audit_pkey" } else { index };
        assert!(plan.contains(index) && !plan.contains("Seq Scan"), "{filter:?}: {plan}");
    }
}
