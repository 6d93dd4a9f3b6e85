//! `cofferdam image rm`.

use super::super::remote::{print, print_json};
use super::store;
use super::view::size;
use crate::args::ImageShowArgs;
use crate::exit::Failure;
use cofferdam_images::ImageRef;
use std::process::ExitCode;

pub(super) fn rm(args: &ImageShowArgs) -> Result<ExitCode, Failure> {
    let removed = store()?.remove(&ImageRef::parse("image", &args.image)?)?;
    if args.json {
        print_json(&removed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!(
        "removed {}: {} layers, {}\n",
        removed.names.join(" "),
        removed.layers,
        size(removed.size_bytes)
    );
    if removed.layers_in_use > 0 {
        text += &format!("{} layers are in use; they go with the next rm or import\n", removed.layers_in_use);
    }
    if removed.is_kept {
        text += "the image itself stays: a service has registered it (cofferdam image unregister)\n";
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
