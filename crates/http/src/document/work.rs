//! What derived schemas cannot say: that a job has either code in a language or a command.

use serde_json::{Value, json};

pub(super) fn say_what_a_job_needs(document: &mut Value) {
    let request = &mut document["components"]["schemas"]["JobRequest"];
    request["anyOf"] = json!([
        {
            "title": "Code in a language",
            "required": ["language", "code"],
            "properties": {
                "language": {"type": "string"}, "code": {"type": "string"}, "command": {"type": "null"},
            },
        },
        {
            "title": "A command",
            "required": ["command"],
            "properties": {
                "command": {"type": ["string", "array"]}, "language": {"type": "null"}, "code": {"type": "null"},
            },
        },
    ]);
}
