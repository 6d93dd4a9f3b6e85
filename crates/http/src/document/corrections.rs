//! What derived schemas cannot say: that a job has either code in a language or a command, and that a header which may
//! be left out cannot be null.

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

pub(super) fn say_that_headers_are_not_null(document: &mut Value) {
    let items = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    let operations = items.filter_map(Value::as_object_mut).flat_map(|item| item.values_mut());
    let parameters =
        operations.filter_map(|operation| operation.get_mut("parameters")?.as_array_mut()).flatten();
    for parameter in parameters {
        if let Some(types) = parameter["schema"]["type"].as_array_mut() {
            types.retain(|name| name != "null");
            if let [one] = &types[..] {
                parameter["schema"]["type"] = one.clone();
            }
        }
    }
}
