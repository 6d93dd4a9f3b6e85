//! The files of `job run --input`: uploaded first, then named in the request.

use super::super::failure::failure;
use super::super::progress::Transfer;
use crate::args::JobRunArgs;
use crate::commands::run::{parse_words, read_files};
use crate::exit::{Failure, say};
use cofferdam_api::{InlineFile, JobRequest};
use cofferdam_client::Client;

/// Uploads each, and puts it into the request. Returns the ids of the artifacts.
pub(super) async fn upload(
    client: &Client,
    args: &JobRunArgs,
    request: &mut JobRequest,
) -> Result<Vec<String>, Failure> {
    if args.input.is_empty() {
        return Ok(Vec::new());
    }
    let run = args.as_run_with_inputs();
    let words = parse_words(&run)?;
    // The script, where there is one, is sent along with the request.
    let sources = read_files(&words, &run)?.split_off(usize::from(words.script.is_some()));
    let mut ids = Vec::new();
    for source in sources {
        let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", source.host.display()));
        let size = std::fs::metadata(&source.host).map_err(failed)?.len();
        let transfer = Transfer::new(&source.host.display().to_string(), size, args.remote.json);
        let artifact = client.artifact_upload(&source.host, transfer.counter()).await;
        transfer.end();
        let artifact = artifact.map_err(failure)?;
        let path = source.guest.as_str().to_owned();
        ids.push(artifact.id.clone());
        request.files.push(InlineFile {
            path,
            content: None,
            content_base64: None,
            artifact: Some(artifact.id),
        });
    }
    Ok(ids)
}

/// Removes what was uploaded for one job that has ended.
pub(super) async fn remove(client: &Client, ids: &[String]) {
    for id in ids {
        if let Err(error) = client.artifact_delete(id).await {
            say(&format!("{id} was uploaded and is kept: {error}"));
        }
    }
}
