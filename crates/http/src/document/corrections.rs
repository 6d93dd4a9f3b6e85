//! What derived schemas cannot say: that a job has either code in a language or a command and a process always one, that
//! a header or a body which may be left out cannot be null, and that bytes are bytes.

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

pub(super) fn say_what_a_process_needs(document: &mut Value) {
    let request = &mut document["components"]["schemas"]["ProcessRequest"];
    request["required"] = json!(["command"]);
    request["properties"]["command"] = json!({"$ref": "#/components/schemas/Command"});
}

/// The feed, and a watch, have events of other names than output has.
pub(super) fn say_what_other_streams_tell(document: &mut Value) {
    say_what_a_stream_tells(
        document,
        "/v1/events",
        json!({
            "description": "An event of the feed.",
            "pattern": r"^(init|error|job\.[a-z_]+)$",
            "name": "`init`, `error`, or what became of a job, such as `job.finished`",
            "data": "JSON: FeedInitData, FeedData or ErrorData.",
            "example": {"event": "init", "id": "7", "data": "{\"seq\":7}"},
        }),
    );
    say_what_a_stream_tells(
        document,
        "/v1/sessions/{id}/files/watch",
        json!({
            "description": "An event of a watch.",
            "pattern": "^(ready|created|modified|removed|moved|truncated|gone|error)$",
            "name": "`ready`, `created`, `modified`, `removed`, `moved`, `truncated`, `gone` or `error`",
            "data": "JSON: WatchReadyData, FileChangeData, TruncatedData or ErrorData.",
            "example": {"event": "ready", "id": "7", "data": "{\"seq\":7,\"path\":\"/workspace\"}"},
        }),
    );
}

fn say_what_a_stream_tells(document: &mut Value, path: &str, said: Value) {
    let mut event = document["components"]["schemas"]["StreamEvent"].clone();
    event["description"] = said["description"].clone();
    event["properties"]["event"]["pattern"] = said["pattern"].clone();
    event["properties"]["event"]["description"] = said["name"].clone();
    event["properties"]["data"]["description"] = said["data"].clone();
    event["example"] = said["example"].clone();
    let answers = document["paths"][path]["get"]["responses"].as_object_mut();
    if let Some(schema) =
        answers.and_then(|all| all.get_mut("200")?.pointer_mut("/content/text~1event-stream/schema"))
    {
        *schema = event;
    }
}

/// Those that may come without a body: nothing at all is an empty file, no input, or the defaults.
const MAY_HAVE_NO_BODY: [&str; 4] = ["artifact_finalize", "artifact_link", "file_write", "process_input"];

pub(super) fn say_what_bodies_are(document: &mut Value) {
    for operation in operations(document) {
        let may_have_none =
            operation["operationId"].as_str().is_some_and(|id| MAY_HAVE_NO_BODY.contains(&id));
        let Some(body) = operation.get_mut("requestBody") else { continue };
        body["required"] = json!(!may_have_none);
        if let Some(schema) = body.pointer_mut("/content/application~1octet-stream/schema") {
            *schema = json!({"type": "string", "format": "binary"});
        }
        if let Some(schema) = body.pointer_mut("/content/application~1json/schema")
            && let Some(one) = schema.pointer("/oneOf/0").cloned()
        {
            *schema = one;
        }
    }
}

fn operations(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let items = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    items.filter_map(Value::as_object_mut).flat_map(|item| item.values_mut())
}

pub(super) fn say_that_headers_are_not_null(document: &mut Value) {
    let parameters = operations(document)
        .filter_map(|operation| operation.get_mut("parameters")?.as_array_mut())
        .flatten();
    for parameter in parameters {
        let Some(kind) = parameter.pointer_mut("/schema/type") else { continue };
        if let Some(types) = kind.as_array_mut() {
            types.retain(|name| name != "null");
            if let [one] = &types[..] {
                *kind = one.clone();
            }
        }
    }
}
