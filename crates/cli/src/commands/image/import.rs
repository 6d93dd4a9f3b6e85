//! `cofferdam image import`.

use super::super::remote::{print, print_json};
use super::progress::Reading;
use super::store;
use super::view::{Shown, size};
use crate::args::{ImageImportArgs, ImageLimitArgs};
use crate::exit::Failure;
use cofferdam_core::{ByteSize, InvalidValue};
use cofferdam_images::{ImageName, Import, ImportLimits, Imported};
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    image: Shown<'a>,
    layers_shared: usize,
}

pub(super) fn import(args: &ImageImportArgs) -> Result<ExitCode, Failure> {
    let name = ImageName::parse("--name", &args.name)?;
    let limits = limits(&args.limits)?;
    let reading = Reading::new(&args.source, args.json);
    let progress = |bytes| reading.advance(bytes);
    let import = Import { source: &args.source, name: &name, limits, progress: &progress };
    let imported = store()?.import(&import);
    reading.end();
    answer(&name, &imported?, args.json)
}

/// Says what was taken in.
pub(super) fn answer(name: &ImageName, imported: &Imported, json: bool) -> Result<ExitCode, Failure> {
    let Imported { image, layers_shared } = imported;
    let shown = Shown::new(image, vec![name.to_string()]);
    if json {
        print_json(&Answer { image: shown, layers_shared: *layers_shared })?;
        return Ok(ExitCode::SUCCESS);
    }
    let left_out: u64 = image.layers.iter().map(|layer| layer.left_out).sum();
    let mut text = format!("{name} {}\n", image.id);
    text += &format!(
        "{} in {} layers, {layers_shared} of them shared\n",
        size(image.size_bytes()),
        image.layers.len()
    );
    if left_out > 0 {
        text += &format!("{left_out} devices, pipes and files of /dev were left out\n");
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn limits(args: &ImageLimitArgs) -> Result<ImportLimits, InvalidValue> {
    let mut limits = ImportLimits::default();
    if let Some(text) = &args.max_size {
        limits.bytes = ByteSize::parse("--max-size", text)?.0;
    }
    if let Some(text) = &args.max_entries {
        let wrong = |_| InvalidValue::new("--max-entries", text, "write a whole number, such as 2000000");
        limits.entries = text.parse().map_err(wrong)?;
    }
    Ok(limits)
}
