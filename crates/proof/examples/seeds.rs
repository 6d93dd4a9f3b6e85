//! Writes the seeds of the corpora that need signatures and hashes, which `fuzz/make_seeds.py` cannot make. Run it
//! after a change of a format: `cargo run -p cofferdam-proof --example seeds`.

use cofferdam_core::{AuditEntry, chain_hash, timestamp};
use cofferdam_proof::{
    ArtifactOut, Blob, ChainPoint, Checkpoint, Envelope, ExportHeader, FileIn, Form, Head, Image, Inputs,
    KeyList, ListedKey, Outputs, PolicyUsed, ProofError, Receipt, SigningKey, StreamOut, Work, sha256,
    write_line,
};
use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;

const TENANT: &str = "ten-aaaaaaaaaaaaaaaa";

fn key(number: u8) -> SigningKey {
    SigningKey::from_seed(&[number; 32])
}

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (target, seeds) in
        [("proof_document", documents()), ("proof_keys", lists()?), ("proof_chain", chains())]
    {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        for (name, seed) in seeds {
            std::fs::write(folder.join(name), seed)?;
        }
    }
    Ok(())
}

type Seeds = Vec<(&'static str, String)>;

fn documents() -> Seeds {
    let entries = chain(3);
    let point = |entry: &AuditEntry| ChainPoint::new(TENANT, entry.seq, &entry.hash, 0);
    let head = Head(point(&entries[2])).seal(&key(1));
    let checkpoint = Checkpoint(point(&entries[0])).seal(&key(1));
    let altered = |envelope: &Envelope, change: &dyn Fn(&mut Value)| {
        let mut value = serde_json::to_value(envelope).unwrap_or_default();
        change(&mut value);
        value.to_string()
    };
    vec![
        ("receipt", receipt().seal(&key(1)).to_json()),
        ("head", head.to_json()),
        ("checkpoint", checkpoint.to_json()),
        ("stranger", Head(point(&entries[2])).seal(&key(9)).to_json()),
        ("no-signature", altered(&head, &|value| value["signatures"] = json!([]))),
        ("other-name", altered(&head, &|value| value["signatures"][0]["keyid"] = json!(key(2).id()))),
        ("other-content", altered(&head, &|value| value["payload"] = json!("e30="))),
        ("other-type", altered(&checkpoint, &|value| value["payloadType"] = json!(head.payload_type()))),
        ("algorithm", altered(&head, &|value| value["signatures"][0]["alg"] = json!("none"))),
        ("point", json!({"tenant": "t", "seq": 1, "hash": "a".repeat(64), "at": timestamp(0)}).to_string()),
        (
            "point-before-the-first",
            json!({"tenant": "t", "seq": 0, "hash": "", "at": timestamp(0)}).to_string(),
        ),
        ("point-wrong", json!({"tenant": "t", "seq": -1, "hash": "x", "at": "soon"}).to_string()),
        ("empty", String::new()),
    ]
}

fn lists() -> Result<Seeds, ProofError> {
    let listed = |number| ListedKey::new(&key(number).public(), 0);
    let retired = ListedKey { retired_at: Some(timestamp(5)), leaked_at: Some(timestamp(6)), ..listed(2) };
    let text = |keys: Vec<ListedKey>| json!({"keys": keys}).to_string();
    let two = KeyList::new(vec![retired, listed(1)])?;
    Ok(vec![
        ("two", json!(two).to_string()),
        ("none", text(Vec::new())),
        ("twice", text(vec![listed(1), listed(1)])),
        ("other-name", text(vec![ListedKey { keyid: key(2).id(), ..listed(1) }])),
        ("other-algorithm", text(vec![ListedKey { algorithm: "none".to_owned(), ..listed(1) }])),
        ("weak", text(vec![ListedKey { public_key: "A".repeat(43) + "=", ..listed(1) }])),
        ("empty", String::new()),
    ])
}

fn chain(length: i64) -> Vec<AuditEntry> {
    let mut before = String::new();
    let entry = |seq| {
        let (kind, actor, resource) = ("job.accepted".to_owned(), "key-a".to_owned(), "job-é".to_owned());
        let details = r#"{"why":"\n"}"#.to_owned();
        let mut entry = AuditEntry { seq, at_ms: seq, kind, actor, resource, details, hash: String::new() };
        entry.hash = chain_hash(&before, TENANT, &entry);
        before.clone_from(&entry.hash);
        entry
    };
    (1..=length).map(entry).collect()
}

fn chains() -> Seeds {
    let entries = chain(5);
    let file = |checkpoint: Option<Envelope>, entries: &[&AuditEntry]| {
        let lines: String = entries.iter().map(write_line).collect();
        write_line(&ExportHeader::new(TENANT, checkpoint)) + &lines
    };
    let all: Vec<&AuditEntry> = entries.iter().collect();
    let start = Checkpoint(ChainPoint::new(TENANT, 2, &entries[1].hash, 0)).seal(&key(1));
    let [a, b, c, d, e] = &all[..] else { return Vec::new() };
    vec![
        ("whole", file(None, &all)),
        ("after-a-checkpoint", file(Some(start), &all[2..])),
        ("gap", file(None, &[a, c, d, e])),
        ("swap", file(None, &[a, c, b, d, e])),
        ("twice", file(None, &[a, b, b, c])),
        ("edit", file(None, &all).replacen("job-é", "job-e", 1)),
        ("other-tenant", file(None, &all).replacen(TENANT, "ten-b", 1)),
        ("half-a-line", file(None, &all[..2]).trim_end_matches("}\n").to_owned()),
        ("only-a-header", file(None, &[])),
        ("other-format", file(None, &all[..1]).replacen("audit-1", "audit-9", 1)),
        ("largest-number", file(None, &all[..1]).replacen("\"seq\":1,", "\"seq\":9223372036854775807,", 1)),
        ("empty", String::new()),
    ]
}

fn receipt() -> Receipt {
    Receipt {
        step: None,
        job_id: "job-aaaaaaaaaaaaaaaa".to_owned(),
        tenant: TENANT.to_owned(),
        task_id: "task".to_owned(),
        agent: None,
        work: Work { form: Form::Shell, language: None, sha256: sha256(b"ls"), args_sha256: sha256(b"") },
        inputs: Inputs {
            stdin: Some(Blob { sha256: sha256(b"in"), size_bytes: 2 }),
            files: vec![FileIn { path: "a".to_owned(), sha256: sha256(b"a"), size_bytes: 1 }],
            env_names: vec!["A".to_owned()],
        },
        image: Image { name: "host".to_owned(), sha256: None },
        policy: PolicyUsed { sha256: Some(sha256(b"rules")) },
        network_policy: Some(json!("none")),
        limits: json!({"cpus": 0.5}),
        outputs: Outputs {
            stdout: Some(StreamOut { sha256: sha256(b"1\n"), size_bytes: 2, truncated: true }),
            stderr: None,
        },
        artifacts: vec![ArtifactOut { path: "r".to_owned(), size_bytes: 3, sha256: Some(sha256(b"r")) }],
        isolation: json!({"backend": "native", "controls": []}),
        state: "succeeded".to_owned(),
        outcome: json!({"kind": "exited", "code": 0}),
        limits_hit: json!([]),
        resource_usage: json!({"cpu_percent": 12.5}),
        duration_ms: Some(7),
        worker: Some("wrk-a".to_owned()),
        sandbox_id: None,
        created_at: timestamp(0),
        started_at: None,
        finished_at: timestamp(10),
    }
}
