//! What stays in the store, what goes, and what several processes may do at once.

use crate::bed::{Bed, image, names, wanted};
use cofferdam_images::ImageError;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const BASE: [(&str, &str); 1] = [("base", "shared")];

/// Two images that share their lower layer.
fn two_images(bed: &Bed) {
    let base = bed.layer("base", &BASE);
    for name in ["one", "two"] {
        let layers = [base.clone(), bed.layer(name, &[(name, "own")])];
        bed.import(&bed.oci(&format!("{name}-oci"), &image(&layers, json!({}))), name).expect("it is taken");
    }
}

#[test]
fn layers_are_shared_and_go_with_their_last_image() {
    let bed = Bed::new();
    two_images(&bed);
    bed.holds(3);
    let removed = bed.store.remove(&wanted("one")).unwrap();
    assert_eq!((removed.layers, removed.layers_in_use, removed.images.len()), (1, 0, 1));
    bed.holds(2);
    assert_eq!(bed.file("two", "base").as_deref(), Some("shared"));
    bed.store.remove(&wanted("two")).unwrap();
    bed.holds(0);
    assert_eq!(names(&bed.store.folder().join("images")), [""; 0]);
    assert!(matches!(bed.store.remove(&wanted("two")), Err(ImageError::NotFound { .. })));
}

#[test]
fn an_image_goes_with_its_last_name() {
    let bed = Bed::new();
    let root = bed.tree("root", &BASE);
    let id = bed.import(&root, "a").unwrap().image.id;
    bed.import(&root, "b").unwrap();
    assert_eq!(bed.store.remove(&wanted("a")).unwrap().layers, 0);
    bed.holds(1);
    let removed = bed.store.remove(&wanted(&format!("sha256:{}", &id.hex()[..10]))).unwrap();
    assert_eq!((removed.names, removed.layers), (vec!["b:latest".to_owned()], 1));
    bed.holds(0);
}

#[test]
fn what_a_service_keeps_stays_without_a_name() {
    let bed = Bed::new();
    two_images(&bed);
    let id = bed.store.show(&wanted("one")).unwrap().0.id;
    bed.store.pin("a", id).unwrap();
    bed.store.pin("b", id).unwrap();
    let removed = bed.store.remove(&wanted("one")).unwrap();
    assert_eq!((removed.is_kept, removed.layers, removed.images.len()), (true, 0, 0));
    bed.holds(3);
    let pinned = wanted(&format!("one@{id}"));
    assert_eq!(bed.store.open(&pinned).unwrap().image.id, id);
    // Nothing that others do takes it, and nothing else is kept by it.
    assert!(!bed.store.remove(&wanted("two")).unwrap().is_kept);
    bed.holds(2);
    bed.store.pin_only("a", &[]).unwrap();
    bed.import(&bed.tree("root", &[("x", "y")]), "three").unwrap();
    assert!(bed.store.open(&pinned).is_ok(), "another one keeps it");
    bed.store.pin_only("b", &[bed.store.show(&wanted("three")).unwrap().0.id]).unwrap();
    bed.store.remove(&wanted("three")).unwrap();
    bed.holds(1);
    assert!(matches!(bed.store.open(&pinned), Err(ImageError::NotFound { .. })));
}

#[test]
fn what_is_in_use_stays_until_later() {
    let bed = Bed::new();
    bed.import(&bed.tree("root", &BASE), "used").unwrap();
    let lease = bed.store.open(&wanted("used")).unwrap();
    let removed = bed.store.remove(&wanted("used")).unwrap();
    assert_eq!((removed.layers, removed.layers_in_use), (0, 1));
    assert_eq!(fs::read_to_string(lease.layers[0].join("base")).unwrap(), "shared");
    assert!(matches!(bed.store.open(&wanted("used")), Err(ImageError::NotFound { .. })));
    // It comes back whole if the same is imported before it goes.
    assert_eq!(bed.import(&bed.path("root"), "back").unwrap().layers_shared, 1);
    bed.store.remove(&wanted("back")).unwrap();
    bed.holds(1);
    drop(lease);
    bed.import(&bed.tree("other", &[("x", "y")]), "other").unwrap();
    bed.holds(1);
    assert_eq!(bed.file("other", "x").as_deref(), Some("y"));
}

#[test]
fn a_name_that_moves_takes_what_it_had_along() {
    let bed = Bed::new();
    let first = bed.import(&bed.tree("one", &BASE), "app").unwrap().image.id;
    let second = bed.import(&bed.tree("two", &[("x", "y")]), "app").unwrap().image.id;
    assert_ne!(first, second);
    bed.holds(1);
    assert!(bed.store.open(&wanted(&format!("app@{second}"))).is_ok());
    assert!(matches!(bed.store.open(&wanted(&format!("app@{first}"))), Err(ImageError::NotFound { .. })));
}

#[test]
fn what_a_dead_process_left_is_swept_and_what_a_living_one_makes_is_not() {
    let bed = Bed::new();
    bed.import(&bed.tree("root", &BASE), "app").unwrap();
    let staging = bed.store.folder().join("staging");
    fs::create_dir_all(staging.join("0123456789abcdef/root/deep")).unwrap();
    let living = bed.store.work_folder().unwrap();
    bed.import(&bed.path("root"), "again").unwrap();
    assert!(living.path().exists());
    assert_eq!(names(&staging).len(), 1);
    drop(living);
    bed.holds(1);
    // A layer that was moved into its place by a process that died before it wrote the image.
    let orphan = bed.store.folder().join("layers").join("0".repeat(64));
    fs::create_dir_all(orphan.join("root")).unwrap();
    bed.import(&bed.path("root"), "third").unwrap();
    assert!(!orphan.exists());
    bed.holds(1);
}

#[test]
fn several_may_import_and_remove_at_once() {
    let bed = Bed::new();
    let base = bed.layer("base", &BASE);
    let sources: Vec<_> = (0..4)
        .map(|i| {
            let layers = [base.clone(), bed.layer(&format!("l{i}"), &[("own", &format!("{i}"))])];
            bed.oci(&format!("o{i}"), &image(&layers, json!({})))
        })
        .collect();
    std::thread::scope(|scope| {
        for (i, source) in sources.iter().enumerate() {
            let bed = &bed;
            scope.spawn(move || {
                for _ in 0..5 {
                    bed.import(source, &format!("app:{i}")).unwrap();
                    assert_eq!(bed.file(&format!("app:{i}"), "own").unwrap(), i.to_string());
                    assert_eq!(bed.file(&format!("app:{i}"), "base").unwrap(), "shared");
                    bed.store.remove(&wanted(&format!("app:{i}"))).unwrap();
                }
                bed.import(source, &format!("app:{i}")).unwrap();
            });
        }
    });
    assert_eq!(bed.store.list().unwrap().len(), 4);
    bed.holds(5);
}

#[test]
fn a_layer_that_comes_twice_is_there_once() {
    let bed = Bed::new();
    let (base, other) = (bed.layer("base", &BASE), bed.layer("other", &[("x", "y")]));
    let made = image(&[base.clone(), other, base], json!({}));
    let imported = bed.import(&bed.oci("oci", &made), "app").unwrap();
    assert_eq!(imported.image.layers.len(), 3);
    assert_eq!(bed.store.open(&wanted("app")).unwrap().layers.len(), 2);
}

#[test]
fn a_store_that_others_can_write_to_is_refused() {
    let bed = Bed::new();
    fs::create_dir(bed.store.folder()).unwrap();
    fs::set_permissions(bed.store.folder(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = bed.import(&bed.tree("root", &BASE), "app").unwrap_err();
    assert_eq!(error.code(), "image_store_failed", "{error}");
}
