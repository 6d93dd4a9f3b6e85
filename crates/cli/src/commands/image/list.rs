//! `cofferdam image list`.

use super::super::remote::table::table;
use super::super::remote::{print, print_json};
use super::store;
use super::view::{Shown, size, time};
use crate::args::ImageListArgs;
use crate::exit::Failure;
use crate::host::colour::Colours;
use cofferdam_images::NamedImage;
use std::process::ExitCode;

/// Enough digits to name an image by.
const DIGITS: usize = 12;

pub(super) fn list(args: &ImageListArgs) -> Result<ExitCode, Failure> {
    let images = store()?.list()?;
    if args.json {
        let shown: Vec<_> =
            images.iter().map(|named| Shown::new(&named.image, vec![named.name.clone()])).collect();
        print_json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |named: &NamedImage| {
        let image = &named.image;
        let id = format!("sha256:{}", &image.id.hex()[..DIGITS]);
        // Seconds are enough to recognise an image by.
        let imported = time(image).get(..19).unwrap_or_default().to_owned();
        vec![named.name.clone(), id, image.layers.len().to_string(), size(image.size_bytes()), imported]
    };
    let rows: Vec<_> = images.iter().map(row).collect();
    let head = ["NAME", "ID", "LAYERS", "SIZE", "IMPORTED"];
    print(&table(&head, &rows, Colours::for_stdout(), |_, cell| cell.to_owned()))?;
    Ok(ExitCode::SUCCESS)
}
