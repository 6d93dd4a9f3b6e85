//! Images as archives for others.

use crate::bed::{Bed, image, names, wanted};
use cofferdam_images::ImageError;
use serde_json::json;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};

#[test]
fn an_image_comes_back_as_it_went() {
    let bed = Bed::new();
    let one = bed.layer("one", &[("etc/motd", "old"), ("srv/a", "a"), ("opt/gone", ""), ("bin/sh", "shell")]);
    let two = bed.layer(
        "two",
        &[("etc/.wh.motd", ""), ("srv/.wh..wh..opq", ""), ("srv/c", "c"), ("link", "-> /etc/motd")],
    );
    let process = json!({"Env": ["A=1"], "WorkingDir": "/srv"});
    bed.import(&bed.oci("oci", &image(&[one, two], process)), "app").expect("it is taken");
    let lease = bed.store.open(&wanted("app")).expect("it is there");
    let archive = bed.path("archive.tar");
    let mut export = lease.export("app:1").expect("it can be read");
    io::copy(&mut export, &mut File::create(&archive).expect("a file")).expect("all of it");
    let back = bed.import(&archive, "back").expect("its digests are right").image;
    assert_eq!((back.layers.len(), &back.config.config), (2, &lease.image.config.config));
    let lease = bed.store.open(&wanted("back")).expect("it is there");
    let (upper, lower) = (&lease.layers[0], &lease.layers[1]);
    assert_eq!(fs::read_to_string(lower.join("bin/sh")).expect("a file"), "shell");
    assert_eq!(names(&upper.join("srv")), ["c"]);
    let deleted = fs::symlink_metadata(upper.join("etc/motd")).expect("what says that it is deleted");
    assert!(deleted.file_type().is_char_device() && deleted.rdev() == 0);
    let opaque = rustix::fs::getxattr(upper.join("srv"), "user.overlay.opaque", &mut [0; 8]);
    assert_eq!(opaque, Ok(1));
    assert_eq!(fs::read_link(upper.join("link")).expect("a link").to_str(), Some("/etc/motd"));
    assert_eq!(fs::metadata(lower.join("bin/sh")).expect("a file").permissions().mode() & 0o777, 0o644);
}

#[test]
fn a_layer_that_changes_meanwhile_ends_the_archive() {
    let bed = Bed::new();
    bed.import(&bed.tree("root", &[("a", "first"), ("b", "second")]), "app").expect("it is taken");
    let lease = bed.store.open(&wanted("app")).expect("it is there");
    let mut export = lease.export("app:1").expect("it can be read");
    fs::write(lease.layers[0].join("b"), vec![b'x'; 4000]).expect("somebody who should not");
    let error = io::copy(&mut export, &mut io::sink()).expect_err("it is not whole");
    assert!(error.to_string().contains("changed while it was read"), "{error}");
    fs::remove_dir_all(&lease.layers[0]).expect("somebody who should not");
    assert!(matches!(lease.export("app:1"), Err(ImageError::Source { .. })));
}
