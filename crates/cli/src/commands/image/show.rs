//! `cofferdam image show`.

use super::super::remote::table::{one_line, table};
use super::super::remote::{print, print_json};
use super::store;
use super::view::{Shown, size};
use crate::args::ImageShowArgs;
use crate::exit::Failure;
use crate::host::colour::Colours;
use cofferdam_images::ImageRef;
use std::fmt::Write;
use std::process::ExitCode;

pub(super) fn show(args: &ImageShowArgs) -> Result<ExitCode, Failure> {
    let (record, names) = store()?.show(&ImageRef::parse("image", &args.image)?)?;
    let shown = Shown::new(&record, names);
    if args.json {
        print_json(&shown)?;
    } else {
        print(&text(&shown))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(shown: &Shown<'_>) -> String {
    let config = shown.config;
    let rows = [
        ("names", shown.names.join(" ")),
        ("id", shown.id.clone()),
        ("size", size(shown.size_bytes)),
        ("imported", format!("{} from a {}", shown.imported_at, shown.source)),
        ("workdir", config.working_dir.clone()),
        ("user", config.user.clone()),
        ("entrypoint", config.entrypoint.join(" ")),
        ("command", config.cmd.join(" ")),
        ("environment", config.env.join(" ")),
    ];
    let mut text = String::new();
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        // The image wrote it: nothing in it may move a cursor.
        let _ = writeln!(text, "{name:<12} {}", one_line(value));
    }
    let row = |(i, layer): (usize, &cofferdam_images::LayerRecord)| {
        vec![
            (i + 1).to_string(),
            size(layer.size_bytes),
            layer.entries.to_string(),
            layer.diff_id.to_string(),
        ]
    };
    let rows: Vec<_> = shown.layers.iter().enumerate().map(row).collect();
    text.push('\n');
    text + &table(&["LAYER", "SIZE", "ENTRIES", "DIGEST"], &rows, Colours::for_stdout(), |_, cell| {
        cell.to_owned()
    })
}
