//! Where the service keeps artifacts, from the command line and the environment.

use crate::exit::Failure;
use cofferdam_artifacts::{Bucket, Location, MasterKey, Vault};
use std::path::{Path, PathBuf};

/// Opens the place that `--artifacts` names: `s3://BUCKET`, or a folder; by default one beside the database.
pub(in crate::commands) fn vault(
    place: Option<&str>,
    data: &Path,
    master: MasterKey,
) -> Result<Vault, Failure> {
    let location = match place {
        None => Location::Folder(data.join("artifacts")),
        Some(text) => match text.strip_prefix("s3://") {
            Some(bucket) => Location::S3(bucket_of(bucket, |name| std::env::var(name).ok())?),
            None => Location::Folder(PathBuf::from(text)),
        },
    };
    let failed = |error: cofferdam_artifacts::ArtifactError| Failure::new(format!("artifacts: {error}"));
    Vault::open(&location, master).map_err(failed)
}

/// The names are those that every tool for such stores uses.
fn bucket_of(name: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Bucket, Failure> {
    if name.is_empty() || name.contains('/') {
        let fix = "write s3:// and the name of a bucket";
        return Err(Failure::new(format!("--artifacts: \"s3://{name}\": {fix}")));
    }
    let needed = |key: &str| {
        variable(key).ok_or_else(|| Failure::new(format!("--artifacts: {key} is not set, which s3:// needs")))
    };
    Ok(Bucket {
        name: name.to_owned(),
        endpoint: variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL")),
        region: variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION")),
        access_key_id: Some(needed("AWS_ACCESS_KEY_ID")?),
        secret_access_key: Some(needed("AWS_SECRET_ACCESS_KEY")?),
        session_token: variable("AWS_SESSION_TOKEN"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_needs_a_name_and_credentials() {
        let none = |_: &str| None;
        let all = |name: &str| Some(format!("value of {name}"));
        assert!(bucket_of("b", none).is_err());
        assert!(bucket_of("", all).is_err() && bucket_of("a/b", all).is_err());
        let bucket = bucket_of("b", all).expect("a bucket");
        assert_eq!(bucket.endpoint.as_deref(), Some("value of AWS_ENDPOINT_URL_S3"));
        assert!(!format!("{bucket:?}").contains("SECRET"), "{bucket:?}");
    }
}
