//! Keys, chains and receipts to check.

use cofferdam_core::{AuditEntry, chain_hash};
use cofferdam_proof::{
    ArtifactOut, Blob, FileIn, Form, Image, Inputs, KeyList, ListedKey, Outputs, PolicyUsed, Receipt,
    SigningKey, StreamOut, Work, sha256,
};
use serde_json::{Value, json};

pub(crate) const TENANT: &str = "ten-aaaaaaaaaaaaaaaa";
pub(crate) const OTHER: &str = "ten-bbbbbbbbbbbbbbbb";

/// 2026-01-01, when everything here happens.
pub(crate) const NOW: i64 = 1_767_225_600_000;

pub(crate) fn key(number: u8) -> SigningKey {
    SigningKey::from_seed(&[number; 32])
}

pub(crate) fn listed(number: u8) -> ListedKey {
    ListedKey::new(&key(number).public(), NOW)
}

/// A list of these keys, all of them current.
pub(crate) fn trusted(numbers: &[u8]) -> KeyList {
    KeyList::new(numbers.iter().map(|number| listed(*number)).collect()).unwrap()
}

/// A whole chain of a tenant.
pub(crate) fn chain(tenant: &str, length: i64) -> Vec<AuditEntry> {
    let mut before = String::new();
    let entry = |seq| {
        let mut entry = AuditEntry {
            seq,
            at_ms: NOW + seq,
            kind: "job.accepted".to_owned(),
            actor: "key-one".to_owned(),
            resource: format!("job-{seq}"),
            details: "{}".to_owned(),
            hash: String::new(),
        };
        entry.hash = chain_hash(&before, tenant, &entry);
        before.clone_from(&entry.hash);
        entry
    };
    (1..=length).map(entry).collect()
}

/// Writes the hashes of a chain anew, as somebody would who can write to the store.
pub(crate) fn rehash(tenant: &str, entries: &mut [AuditEntry]) {
    let mut before = String::new();
    for entry in entries {
        entry.hash = chain_hash(&before, tenant, entry);
        before.clone_from(&entry.hash);
    }
}

pub(crate) fn receipt() -> Receipt {
    Receipt {
        step: None,
        job_id: "job-aaaaaaaaaaaaaaaa".to_owned(),
        tenant: TENANT.to_owned(),
        task_id: "task".to_owned(),
        agent: Some("agent".to_owned()),
        work: Work {
            form: Form::Code,
            language: Some("python".to_owned()),
            sha256: sha256(b"print(1)"),
            args_sha256: sha256(b""),
        },
        inputs: Inputs {
            stdin: Some(Blob { sha256: sha256(b"in"), size_bytes: 2 }),
            files: vec![FileIn { path: "a.txt".to_owned(), sha256: sha256(b"a"), size_bytes: 1 }],
            env_names: vec!["TOKEN".to_owned()],
        },
        image: Image { name: "host".to_owned(), sha256: None },
        policy: PolicyUsed { sha256: Some(sha256(b"package cofferdam")) },
        network_policy: Some(json!("none")),
        limits: json!({"memory_bytes": 1 << 20, "cpus": 0.5}),
        outputs: Outputs {
            stdout: Some(StreamOut { sha256: sha256(b"1\n"), size_bytes: 2, truncated: false }),
            stderr: None,
        },
        artifacts: vec![ArtifactOut {
            path: "r.json".to_owned(),
            size_bytes: 3,
            sha256: Some(sha256(b"{ }")),
        }],
        isolation: json!({"backend": "native"}),
        state: "succeeded".to_owned(),
        outcome: json!({"kind": "exited", "code": 0}),
        limits_hit: Value::Null,
        resource_usage: json!({"cpu_percent": 12.5}),
        duration_ms: Some(7),
        worker: Some("wrk-a".to_owned()),
        sandbox_id: Some("sbx-a".to_owned()),
        created_at: cofferdam_core::timestamp(NOW),
        started_at: None,
        finished_at: cofferdam_core::timestamp(NOW + 10),
    }
}
