//! Every form that an image may come in.

use crate::bed::{Bed, bytes, compress, image, names, tar, wanted};
use cofferdam_images::{Digest, ImageError};
use serde_json::json;
use std::fs;

const ROOT: [(&str, &str); 3] = [("bin/tool", "tool"), ("etc/motd", "hello"), ("lib", "-> usr/lib")];

#[test]
fn a_root_folder_and_its_archives_are_taken() {
    let bed = Bed::new();
    let root = bed.tree("root", &ROOT);
    let first = bed.import(&root, "folder").unwrap();
    assert_eq!((first.image.layers.len(), first.layers_shared), (1, 0));
    assert_eq!(bed.file("folder", "etc/motd").as_deref(), Some("hello"));
    assert_eq!(bed.import(&root, "again:2").unwrap().image.id, first.image.id);
    let archive = bed.path("root.tar");
    tar(&root, &archive, &["."]);
    let plain = bed.import(&archive, "plain").unwrap().image;
    for program in ["gzip", "zstd"] {
        let compressed = bed.import(&compress(program, &archive), program).unwrap();
        assert_eq!((compressed.image.id, compressed.layers_shared), (plain.id, 1));
    }
    bed.holds(2);
    let listed: Vec<String> = bed.store.list().unwrap().into_iter().map(|named| named.name).collect();
    assert_eq!(listed, ["again:2", "folder:latest", "gzip:latest", "plain:latest", "zstd:latest"]);
}

#[test]
fn docker_archives_and_oci_layouts_are_the_same_image() {
    let bed = Bed::new();
    let layers =
        [bed.layer("one", &ROOT), bed.layer("two", &[("etc/motd", "changed"), ("bin/.wh.tool", "")])];
    let made = image(&layers, json!({"Env": ["A=1"], "WorkingDir": "/srv"}));
    let id = Digest::of(&made.config);
    let docker = bed.import(&bed.docker("docker.tar", &made, &["app:1"]), "docker").unwrap();
    assert_eq!((docker.image.id, docker.layers_shared), (id, 0));
    let oci = bed.oci("oci", &made);
    assert_eq!(bed.import(&oci, "oci").unwrap().layers_shared, 2);
    let archive = bed.path("oci.tar");
    tar(&oci, &archive, &names(&oci));
    for source in [&archive, &compress("gzip", &archive), &compress("zstd", &archive)] {
        let imported = bed.import(source, "archive").unwrap();
        assert_eq!((imported.image.id, imported.layers_shared), (id, 2));
    }
    bed.holds(2);
    assert_eq!(bed.file("docker", "etc/motd").as_deref(), Some("changed"));
    let (record, names) = bed.store.show(&wanted(&format!("any@{id}"))).unwrap();
    assert_eq!(names, ["archive:latest", "docker:latest", "oci:latest"]);
    assert_eq!(record.config.config.variables(), [("A".to_owned(), "1".to_owned())]);
}

#[test]
fn compressed_layers_and_platforms_are_understood() {
    let bed = Bed::new();
    let layer = bed.layer("one", &ROOT);
    let mut made = image(std::slice::from_ref(&layer), json!({}));
    made.blobs = vec![fs::read(compress("zstd", &bed.path("one.tar"))).unwrap()];
    let root = bed.oci("oci", &made);
    // An index for several platforms, of which the other one is not there.
    let index = fs::read(root.join("index.json")).unwrap();
    let mut index: serde_json::Value = serde_json::from_slice(&index).unwrap();
    index["manifests"][0]["platform"] = json!({"os": "linux", "architecture": "amd64"});
    let other = json!({"digest": Digest::of(b"other"), "platform": {"os": "linux", "architecture": "arm64"}});
    index["manifests"].as_array_mut().unwrap().insert(0, other.clone());
    let inner = bytes(&index);
    let digest = Digest::of(&inner);
    fs::write(root.join("blobs/sha256").join(digest.hex()), &inner).unwrap();
    let media = "application/vnd.oci.image.index.v1+json";
    fs::write(
        root.join("index.json"),
        bytes(&json!({"manifests": [{"mediaType": media, "digest": digest}]})),
    )
    .unwrap();
    bed.import(&root, "app").unwrap();
    assert_eq!(bed.file("app", "bin/tool").as_deref(), Some("tool"));
    fs::write(root.join("index.json"), bytes(&json!({"manifests": [other]}))).unwrap();
    let error = bed.import(&root, "other").unwrap_err().to_string();
    assert!(error.contains("linux/arm64"), "{error}");
}

#[test]
fn of_several_images_the_named_one_is_taken() {
    let bed = Bed::new();
    let layer = bed.layer("one", &ROOT);
    let made = image(&[layer], json!({}));
    let archive = bed.docker("two.tar", &made, &["app:1"]);
    let folder = bed.path("two.tar-files");
    let manifest = fs::read(folder.join("manifest.json")).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let mut second = manifest[0].clone();
    second["RepoTags"] = json!(["app:2"]);
    manifest.as_array_mut().unwrap().push(second);
    fs::write(folder.join("manifest.json"), bytes(&manifest)).unwrap();
    tar(&folder, &archive, &names(&folder));
    bed.import(&archive, "app:2").unwrap();
    let error = bed.import(&archive, "app:3").unwrap_err().to_string();
    assert!(error.contains("app:1, app:2"), "{error}");
}

#[test]
fn what_is_no_image_is_refused_with_a_reason() {
    let bed = Bed::new();
    fs::write(bed.path("text"), "no archive ".repeat(200)).unwrap();
    fs::write(bed.path("nothing"), "").unwrap();
    fs::create_dir(bed.path("empty")).unwrap();
    for name in ["text", "nothing", "empty"] {
        let error = bed.import(&bed.path(name), "x").unwrap_err();
        assert!(matches!(error, ImageError::Refused { .. }), "{name}: {error}");
    }
    assert!(matches!(bed.import(&bed.path("missing"), "x"), Err(ImageError::Source { .. })));
    assert!(bed.store.list().unwrap().is_empty());
    bed.holds(0);
}
