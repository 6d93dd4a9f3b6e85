//! Credentials are found wherever they are in an image.

use crate::bed::{Bed, bytes, image, wanted};
use cofferdam_images::scan;
use serde_json::json;

fn key() -> String {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    format!("-----BEGIN {} KEY-----\n{body}\n{body}\n", "PRIVATE")
}

#[test]
fn also_in_what_a_later_layer_deletes() {
    let bed = Bed::new();
    let lower = bed.layer("lower", &[("root/.ssh/id", &key()), ("etc/motd", "hello")]);
    let upper = bed.layer("upper", &[("root/.ssh/.wh.id", ""), ("root/.netrc", "machine a password b")]);
    bed.import(&bed.oci("oci", &image(&[lower, upper], json!({}))), "app").unwrap();
    let found = scan(&bed.store.open(&wanted("app")).unwrap()).unwrap();
    let found: Vec<_> = found.iter().map(|finding| (finding.place.as_str(), finding.layer)).collect();
    assert_eq!(found, [("/root/.ssh/id", Some(1)), ("/root/.netrc", Some(2))]);
}

#[test]
fn also_in_environment_and_history() {
    let bed = Bed::new();
    let mut made =
        image(&[bed.layer("one", &[("a", "b")])], json!({"Env": ["PATH=/bin", "DB_PASSWORD=hunter2"]}));
    let mut config: serde_json::Value = serde_json::from_slice(&made.config).unwrap();
    config["history"] =
        json!([{"created_by": "RUN |1 GITHUB_TOKEN=abc /bin/sh -c make"}, {"created_by": "COPY . ."}]);
    made.config = bytes(&config);
    bed.import(&bed.oci("oci", &made), "app").unwrap();
    let found = scan(&bed.store.open(&wanted("app")).unwrap()).unwrap();
    assert_eq!(
        found.iter().map(|finding| finding.place.as_str()).collect::<Vec<_>>(),
        ["environment", "history"]
    );
    // What was found is never shown.
    assert!(!format!("{found:?}").contains("hunter2"));
}
