//! `cofferdam image register`, `unregister` and `list --remote`: the images that a service is told of.

use super::failure::failure;
use super::table::{by_state, table};
use super::{block_on, connect, print, print_json};
use crate::args::{ImageListArgs, ImageRegisterArgs, ImageUnregisterArgs, RemoteArgs};
use crate::exit::{Failure, say};
use crate::host::colour::Colours;
use cofferdam_api::{Image, ImageRequest, ImageVisibility};
use serde_json::json;
use std::process::ExitCode;

pub(in crate::commands) fn register(args: ImageRegisterArgs) -> Result<ExitCode, Failure> {
    let ImageRegisterArgs { name, digest, profiles, capabilities, global, allow_credentials, remote } = args;
    let visibility = if global { ImageVisibility::Global } else { ImageVisibility::Tenant };
    let request = ImageRequest { name, digest, profiles, capabilities, visibility, allow_credentials };
    let client = connect(&remote)?;
    let image = block_on(async { client.image_register(&request).await.map_err(failure) })?;
    match remote.json {
        true => print_json(&image)?,
        false => print(&format!("{}\n", image.id))?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(in crate::commands) fn unregister(args: &ImageUnregisterArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    block_on(async { client.image_unregister(&args.id).await.map_err(failure) })?;
    match args.remote.json {
        true => print_json(&json!({"id": args.id, "unregistered": true}))?,
        false => print(&format!("{}\n", args.id))?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(in crate::commands) fn list(args: ImageListArgs) -> Result<ExitCode, Failure> {
    let ImageListArgs { remote: _, profile, url, key_file, json } = args;
    let client = connect(&RemoteArgs { url, key_file, json })?;
    let list = block_on(async { client.image_list(profile.as_deref(), None).await.map_err(failure) })?;
    if json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = list.images.iter().map(row).collect();
    print(&table(&["ID", "FOR", "PROFILES", "NAME"], &rows, Colours::for_stdout(), by_state))?;
    if list.next_cursor.is_some() {
        say("there are more, over GET /v1/images");
    }
    Ok(ExitCode::SUCCESS)
}

fn row(image: &Image) -> Vec<String> {
    let seen_by = match image.visibility {
        ImageVisibility::Tenant => "the tenant",
        ImageVisibility::Global => "all",
    };
    vec![image.id.clone(), seen_by.to_owned(), image.profiles.join(" "), image.name.clone()]
}
