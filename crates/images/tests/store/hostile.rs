//! Images that lie, and images that want too much: refused, and nothing is left of them.

use crate::bed::{Bed, MadeImage, compress, image, names, tar};
use cofferdam_images::{Digest, ImageError, ImportLimits};
use serde_json::json;
use std::fs;
use std::io::Write;

const ROOT: [(&str, &str); 1] = [("bin/tool", "tool")];

fn refused(bed: &Bed, result: Result<cofferdam_images::Imported, ImageError>, code: &str) {
    let error = result.expect_err(code);
    assert_eq!(error.code(), code, "{error}");
    assert!(bed.store.list().expect("the store can be read").is_empty());
    bed.holds(0);
}

#[test]
fn every_digest_is_checked() {
    let bed = Bed::new();
    let (one, two) = (bed.layer("one", &ROOT), bed.layer("two", &[("bin/tool", "evil")]));
    let made = image(std::slice::from_ref(&one), json!({}));
    // Another layer than the configuration names.
    let swapped = MadeImage { blobs: vec![two.clone()], ..made.clone() };
    refused(&bed, bed.import(&bed.docker("a.tar", &swapped, &[]), "x"), "image_digest_mismatch");
    refused(&bed, bed.import(&bed.oci("a", &swapped), "x"), "image_digest_mismatch");
    // Blobs that are not what their names say: layer, configuration, manifest.
    for victim in 0..3 {
        let root = bed.oci(&format!("b{victim}"), &made);
        let blobs = root.join("blobs/sha256");
        let layer = Digest::of(&one).hex();
        let config = Digest::of(&made.config).hex();
        let name = match victim {
            0 => layer,
            1 => config,
            _ => names(&blobs).into_iter().find(|name| *name != layer && *name != config).unwrap(),
        };
        let mut bytes = fs::read(blobs.join(&name)).unwrap();
        // Where it changes nothing but the digest: the fill of an archive, or a space in JSON.
        if victim == 0 {
            bytes.extend([0; 512])
        } else {
            bytes.push(b' ')
        }
        fs::write(blobs.join(&name), bytes).unwrap();
        refused(&bed, bed.import(&root, "x"), "image_digest_mismatch");
    }
    // A blob that unpacks to the right layer, and is another one: with a frame at its end that holds no data.
    let zstd = fs::read(compress("zstd", &bed.path("one.tar"))).unwrap();
    let root = bed.oci("d", &MadeImage { blobs: vec![zstd.clone()], ..made.clone() });
    let longer = [&zstd[..], &[0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 7]].concat();
    fs::write(root.join("blobs/sha256").join(Digest::of(&zstd).hex()), longer).unwrap();
    refused(&bed, bed.import(&root, "x"), "image_digest_mismatch");
    // A configuration under another name, in an archive of Docker.
    let archive = bed.docker("c.tar", &made, &[]);
    let folder = bed.path("c.tar-files");
    let config = folder.join(format!("{}.json", Digest::of(&made.config).hex()));
    fs::OpenOptions::new().append(true).open(config).unwrap().write_all(b" ").unwrap();
    tar(&folder, &archive, &names(&folder));
    refused(&bed, bed.import(&archive, "x"), "image_digest_mismatch");
    // The same parts, unchanged, are taken.
    bed.import(&bed.oci("good", &made), "x").unwrap();
}

#[test]
fn a_blob_cannot_be_a_link_out_of_the_layout() {
    let bed = Bed::new();
    let layer = bed.layer("one", &ROOT);
    let root = bed.oci("oci", &image(std::slice::from_ref(&layer), json!({})));
    let blob = root.join("blobs/sha256").join(Digest::of(&layer).hex());
    fs::remove_file(&blob).unwrap();
    std::os::unix::fs::symlink(bed.path("one.tar"), &blob).unwrap();
    refused(&bed, bed.import(&root, "x"), "image_unreadable");
}

#[test]
fn a_cut_archive_leaves_nothing() {
    let bed = Bed::new();
    let root = bed.tree("root", &[("a", "x"), ("b", "y"), ("c", &"z".repeat(100_000))]);
    let archive = bed.path("root.tar");
    tar(&root, &archive, &["."]);
    let compressed = compress("gzip", &archive);
    for path in [archive, compressed] {
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        refused(&bed, bed.import(&path, "x"), "image_refused");
    }
}

#[test]
fn bombs_are_stopped_at_the_limits() {
    let bed = Bed::new();
    let root = bed.tree("root", &[("zeros", "")]);
    fs::File::create(root.join("zeros")).unwrap().set_len(64 << 20).unwrap();
    let archive = bed.path("bomb.tar");
    tar(&root, &archive, &["."]);
    let limits = ImportLimits { bytes: 1 << 20, entries: 100 };
    for source in [compress("gzip", &archive), compress("zstd", &archive), archive, root] {
        refused(&bed, bed.import_within(&source, "x", limits), "image_too_large");
    }
    // Layers count together.
    let layer = |name: &str| bed.layer(name, &[(name, &"x".repeat(600 << 10))]);
    let made = image(&[layer("one"), layer("two")], json!({}));
    refused(&bed, bed.import_within(&bed.oci("oci", &made), "x", limits), "image_too_large");
    let many: Vec<(String, String)> = (0..101).map(|i| (format!("f{i}"), String::new())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    refused(&bed, bed.import_within(&bed.tree("many", &many), "x", limits), "image_too_large");
    // Zeros after the end of an archive are no file, and cost time all the same.
    let mut bytes = bed.layer("small", &ROOT);
    bytes.resize(4 << 20, 0);
    fs::write(bed.path("long.tar"), bytes).unwrap();
    refused(&bed, bed.import_within(&bed.path("long.tar"), "x", limits), "image_too_large");
}

#[test]
fn an_archive_in_an_archive_is_read_with_the_same_care() {
    let bed = Bed::new();
    let folder = bed.path("links");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("manifest.json")).unwrap();
    let archive = bed.path("links.tar");
    tar(&folder, &archive, &["manifest.json"]);
    refused(&bed, bed.import(&archive, "x"), "image_refused");
    fs::remove_file(folder.join("manifest.json")).unwrap();
    std::os::unix::fs::symlink("manifest.json", folder.join("manifest.json")).unwrap();
    tar(&folder, &archive, &["manifest.json"]);
    refused(&bed, bed.import(&archive, "x"), "image_refused");
}
