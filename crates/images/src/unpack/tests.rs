use super::*;
use crate::ImportLimits;
use crate::tar::{END, Streamed, Written, write_header};
use proptest::prelude::*;
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder to unpack into, beside a file that nothing may touch.
struct Bed {
    top: PathBuf,
}

impl Bed {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let top = std::env::temp_dir().join(format!("cofferdam-unpack-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&top);
        std::fs::create_dir_all(top.join("root")).unwrap();
        std::fs::create_dir(top.join("outside")).unwrap();
        std::fs::write(top.join("outside/file"), "untouched").unwrap();
        Self { top }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.join("root").join(name)
    }

    fn unpack_with(&self, limits: ImportLimits, archive: &[u8]) -> Result<Unpacked> {
        let root = File::open(self.top.join("root")).unwrap();
        let mut budget = Budget::new(limits);
        Unpacker::new(&self.top, root.into(), &mut budget).unpack(&mut TarReader::new(Streamed(archive)))
    }

    fn unpack(&self, entries: &[Made]) -> Result<Unpacked> {
        self.unpack_with(ImportLimits::default(), &archive(entries))
    }

    /// Unpacking must fail, with these words.
    fn refuses(&self, entries: &[Made], words: &str) {
        let error = self.unpack(entries).expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
        self.check_outside();
    }

    fn check_outside(&self) {
        let names: Vec<_> =
            std::fs::read_dir(self.top.join("outside")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["file"]);
        assert_eq!(std::fs::read_to_string(self.top.join("outside/file")).unwrap(), "untouched");
        assert_eq!(std::fs::read_dir(&self.top).unwrap().count(), 2);
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.top);
    }
}

#[derive(Debug, Clone)]
struct Made {
    path: Vec<u8>,
    kind: Kind,
    link: Vec<u8>,
    mode: u32,
    uid: u64,
    data: Vec<u8>,
}

fn made(path: &str, kind: Kind, link: &str) -> Made {
    let mode = if kind == Kind::Folder { 0o755 } else { 0o644 };
    Made { path: path.into(), kind, link: link.into(), mode, uid: 0, data: Vec::new() }
}

fn file(path: &str, data: &str) -> Made {
    Made { data: data.into(), ..made(path, Kind::File, "") }
}

fn folder(path: &str) -> Made {
    made(path, Kind::Folder, "")
}

fn symlink(path: &str, target: &str) -> Made {
    made(path, Kind::Symlink, target)
}

fn hard_link(path: &str, target: &str) -> Made {
    made(path, Kind::HardLink, target)
}

fn archive(entries: &[Made]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        let Made { path, kind, link, mode, uid, data } = entry;
        let size = data.len() as u64;
        let written =
            Written { path, link, kind: *kind, mode: *mode, uid: *uid, seconds: 1_700_000_000, size };
        bytes.extend(write_header(&written));
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.extend(END);
    bytes
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn is_whiteout(path: &Path) -> bool {
    let metadata = std::fs::symlink_metadata(path).unwrap();
    metadata.file_type().is_char_device() && metadata.rdev() == 0
}

fn is_opaque(path: &Path) -> bool {
    let mut value = [0; 8];
    fs::getxattr(path, c"user.overlay.opaque", &mut value).is_ok_and(|n| &value[..n] == b"y")
}

#[test]
fn files_folders_and_links_come_out_as_they_went_in() {
    let bed = Bed::new();
    let entries = [
        folder("./"),
        Made { mode: 0o1777, ..folder("./tmp/") },
        Made { mode: 0o755, ..file("usr/bin/tool", "#!/bin/sh\n") },
        hard_link("usr/bin/other", "usr/bin/tool"),
        symlink("bin", "usr/bin"),
        symlink("etc/alternatives/x", "/usr/bin/tool"),
        file("dev/null", ""),
        made("dev/zero", Kind::Special, ""),
        made("pipe", Kind::Special, ""),
    ];
    let done = bed.unpack(&entries).unwrap();
    assert_eq!(done, Unpacked { entries: 5, bytes: 10, left_out: 3 });
    assert_eq!(std::fs::read_to_string(bed.path("bin/tool")).unwrap(), "#!/bin/sh\n");
    assert_eq!(
        (mode(&bed.path("tmp")), mode(&bed.path("usr")), mode(&bed.path("usr/bin/tool"))),
        (0o1777, 0o755, 0o755)
    );
    let one = std::fs::metadata(bed.path("usr/bin/tool")).unwrap();
    assert_eq!((one.nlink(), one.mtime()), (2, 1_700_000_000));
    assert_eq!(std::fs::read_link(bed.path("etc/alternatives/x")).unwrap(), Path::new("/usr/bin/tool"));
    assert!(!bed.path("pipe").exists() && !bed.path("dev/null").exists());
}

#[test]
fn no_path_leads_out() {
    let bed = Bed::new();
    bed.refuses(&[file("../outside/evil", "x")], "could lead out");
    bed.refuses(&[file("a/../../outside/evil", "x")], "could lead out");
    bed.refuses(&[file("/etc/evil", "x")], "absolute");
    bed.refuses(&[folder("..")], "could lead out");
    bed.refuses(&[file("./", "x")], "");
}

#[test]
fn nothing_is_written_through_a_link() {
    let outside = "../outside";
    Bed::new().refuses(&[symlink("out", outside), file("out/evil", "x")], "through a symbolic link");
    Bed::new().refuses(&[symlink("out", "/nonexistent"), folder("out/evil")], "through a symbolic link");
    Bed::new().refuses(&[symlink("a", "."), symlink("a/b", outside), file("a/b/evil", "x")], "symbolic link");
    Bed::new().refuses(&[symlink("self", "self"), file("self/x", "x")], "symbolic link");
    // The link itself is replaced, not what it leads to.
    let bed = Bed::new();
    bed.unpack(&[symlink("out", "../outside/file"), file("out", "mine")]).unwrap();
    assert_eq!(std::fs::read_to_string(bed.path("out")).unwrap(), "mine");
    bed.check_outside();
    // A folder that was used and then turned into a link.
    let bed = Bed::new();
    bed.refuses(
        &[folder("d"), file("d/.wh..wh.x", ""), symlink("d", outside), file("d/evil", "x")],
        "symbolic link",
    );
}

#[test]
fn hard_links_stay_in_the_layer() {
    Bed::new().refuses(&[hard_link("x", "../outside/file")], "could lead out");
    Bed::new().refuses(&[hard_link("x", "/etc/passwd")], "absolute");
    Bed::new().refuses(&[hard_link("x", "missing")], "not in the layer");
    Bed::new().refuses(&[folder("d"), hard_link("x", "d")], "not in the layer");
    Bed::new().refuses(&[symlink("out", "../outside"), hard_link("x", "out/file")], "not in the layer");
    // A link to a link is a second link, and changing the one by a file leaves what it leads to alone.
    let bed = Bed::new();
    bed.unpack(&[symlink("s", "../outside/file"), hard_link("t", "s"), file("t", "mine")]).unwrap();
    bed.check_outside();
    let bed = Bed::new();
    bed.unpack(&[file("a", "x"), hard_link("a", "a")]).unwrap();
    assert_eq!(std::fs::read_to_string(bed.path("a")).unwrap(), "x");
}

#[test]
fn no_rights_come_from_an_archive() {
    let bed = Bed::new();
    let entries = [
        Made { mode: 0o4755, ..file("su", "x") },
        Made { mode: 0o2755, ..folder("group") },
        Made { mode: 0o600, uid: 1000, ..file("home/own", "x") },
        Made { mode: 0o600, uid: 0, ..file("secret", "x") },
        Made { mode: 0o000, ..folder("closed") },
    ];
    bed.unpack(&entries).unwrap();
    let modes = ["su", "group", "home/own", "secret", "closed"].map(|name| mode(&bed.path(name)));
    assert_eq!(modes, [0o755, 0o755, 0o644, 0o600, 0o700]);
    let owner = rustix::process::geteuid().as_raw();
    assert_eq!(std::fs::metadata(bed.path("home/own")).unwrap().uid(), owner);
}

#[test]
fn deletions_are_what_overlays_know() {
    let bed = Bed::new();
    let entries = [
        file("etc/.wh.motd", ""),
        file("var/cache/.wh..wh..opq", ""),
        file("var/cache/new", "x"),
        folder("replaced"),
        file(".wh.replaced", ""),
        file(".wh.again", ""),
        folder("again"),
        file(".wh.file", ""),
        file("file", "x"),
        folder(".wh..wh.plnk"),
    ];
    bed.unpack(&entries).unwrap();
    assert!(is_whiteout(&bed.path("etc/motd")));
    assert!(is_opaque(&bed.path("var/cache")) && bed.path("var/cache/new").exists());
    assert!(is_opaque(&bed.path("replaced")) && is_opaque(&bed.path("again")));
    assert_eq!(std::fs::read_to_string(bed.path("file")).unwrap(), "x");
    assert!(!is_opaque(&bed.path("etc")) && !bed.path(".wh..wh.plnk").exists());
    for name in [".wh.", ".wh..", ".wh..."] {
        Bed::new().refuses(&[file(name, "")], "deletes nothing");
        Bed::new().refuses(&[folder("d"), file(&format!("d/{name}"), "")], "deletes nothing");
    }
}

#[test]
fn a_device_cannot_be_smuggled_in_as_a_deletion() {
    let bed = Bed::new();
    bed.unpack(&[file("a", "x"), made("b", Kind::Special, "")]).unwrap();
    assert!(!bed.path("b").exists());
}

#[test]
fn mount_points_of_the_sandbox_are_folders() {
    for name in ["dev", "etc", "proc", "run", "tmp", "workspace"] {
        Bed::new().refuses(&[symlink(name, "/")], "must be a folder");
        Bed::new().refuses(&[file(name, "x")], "must be a folder");
    }
}

#[test]
fn a_full_folder_is_not_replaced_and_an_empty_one_is() {
    Bed::new().refuses(&[file("d/x", "x"), file("d", "y")], "has something in it");
    let bed = Bed::new();
    bed.unpack(&[folder("d"), file("d", "y"), folder("d"), file("d/x", "x")]).unwrap();
    assert!(bed.path("d/x").exists());
    Bed::new().refuses(&[file("f", "x"), file("f/x", "x")], "not a folder");
}

#[test]
fn there_are_limits() {
    let limits = ImportLimits { bytes: 1 << 20, entries: 3 };
    let many: Vec<Made> = (0..4).map(|i| file(&format!("f{i}"), "")).collect();
    let error = Bed::new().unpack_with(limits, &archive(&many)).unwrap_err();
    assert!(matches!(error, ImageError::Limit { max: 3, .. }), "{error:?}");
    let deep = "d/".repeat(200);
    Bed::new().refuses(&[folder(&deep)], "deeper than 128");
    Bed::new().refuses(&[file(&"n".repeat(300), "")], "longer than 255");
}

/// Stands for the path of the folder outside: should the walls be broken, nothing of the machine is changed.
const ABSOLUTE: &str = "ABSOLUTE";

/// Anything that an archive can say, in a few names so that entries meet.
fn entries() -> impl Strategy<Value = Vec<Made>> {
    let name = prop_oneof![
        Just("a"),
        Just("b"),
        Just("c"),
        Just(".wh.a"),
        Just(".wh..wh..opq"),
        Just(".."),
        Just("."),
        Just("")
    ];
    let path = proptest::collection::vec(name, 1..5).prop_map(|names| names.join("/"));
    let link = prop_oneof![
        path.clone(),
        Just("../outside/file".to_owned()),
        Just(ABSOLUTE.to_owned()),
        Just("../outside".to_owned())
    ];
    let kind = prop_oneof![
        Just(Kind::File),
        Just(Kind::Folder),
        Just(Kind::Symlink),
        Just(Kind::HardLink),
        Just(Kind::Special)
    ];
    let entry = (path, kind, link, 0u32..0o7777).prop_map(|(path, kind, link, mode)| {
        let data = if kind == Kind::File { b"data".to_vec() } else { Vec::new() };
        Made { mode, data, ..made(&path, kind, &link) }
    });
    proptest::collection::vec(entry, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_an_archive_says_nothing_outside_changes(mut entries in entries()) {
        let bed = Bed::new();
        let outside = bed.top.join("outside").into_os_string().into_encoded_bytes();
        for entry in entries.iter_mut().filter(|entry| entry.link == ABSOLUTE.as_bytes()) {
            entry.link.clone_from(&outside);
        }
        // One by one: an entry that is refused must not keep the others from trying.
        for i in 0..entries.len() {
            let _ = bed.unpack(&entries[i..]);
        }
        bed.check_outside();
        let mut folders = vec![bed.path("")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let metadata = std::fs::symlink_metadata(&path).unwrap();
                let kind = metadata.file_type();
                prop_assert!(!kind.is_block_device() && !kind.is_fifo() && !kind.is_socket());
                prop_assert!(!kind.is_char_device() || metadata.rdev() == 0);
                prop_assert!(kind.is_symlink() || metadata.permissions().mode() & 0o6000 == 0);
                if kind.is_dir() {
                    folders.push(path);
                }
            }
        }
    }
}
