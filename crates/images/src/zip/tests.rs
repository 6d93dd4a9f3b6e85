use super::*;
use proptest::prelude::*;
use std::io::Read;

type Found = Vec<(Vec<u8>, Vec<u8>, Option<u32>)>;

fn read(archive: &[u8]) -> Result<Found, ZipError> {
    let mut reader = ZipReader::new(archive);
    let mut found: Found = Vec::new();
    while let Some(item) = reader.next_item()? {
        match item {
            ZipItem::Entry(ZipEntry { path, .. }) => {
                let mut bytes = Vec::new();
                reader.data().read_to_end(&mut bytes)?;
                found.push((path, bytes, None));
            }
            ZipItem::Mode { path, mode } => {
                let entry = found.iter_mut().find(|(known, ..)| *known == path);
                entry.expect("one that came before").2 = mode;
            }
        }
    }
    Ok(found)
}

fn refused(archive: &[u8], words: &str) {
    match read(archive) {
        Err(ZipError::Malformed { what, .. }) => assert!(what.contains(words), "{what}"),
        other => panic!("{words}: {other:?}"),
    }
}

fn written(files: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::default();
    let mut archive = writer.begin(b"folder/", ZipKind::Folder, 0o750, 1_700_000_000, b"").unwrap();
    archive.extend(writer.end_entry().unwrap());
    for (path, content) in files {
        archive.extend(writer.begin(path, ZipKind::File, 0o640, 1_700_000_000, b"").unwrap());
        for piece in content.chunks(1000) {
            archive.extend(writer.data(piece).unwrap());
        }
        archive.extend(writer.end_entry().unwrap());
    }
    archive.extend(writer.begin(b"link", ZipKind::Link, 0, 0, b"folder/a").unwrap());
    archive.extend(writer.end_entry().unwrap());
    archive.extend(writer.finish().unwrap());
    archive
}

#[test]
fn what_was_written_is_read() {
    let content: Vec<u8> = (0..100_000u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
    let found = read(&written(&[(b"folder/a", &content), (b"empty", b"")])).unwrap();
    assert_eq!(found[0], (b"folder/".to_vec(), Vec::new(), Some(0o040_750)));
    assert!(found[1] == (b"folder/a".to_vec(), content, Some(0o100_640)));
    assert_eq!(found[2], (b"empty".to_vec(), Vec::new(), Some(0o100_640)));
    assert_eq!(found[3], (b"link".to_vec(), b"folder/a".to_vec(), Some(0o120_777)));
}

/// What two readers would see differently is refused.
#[test]
fn what_the_end_does_not_confirm_is_refused() {
    let archive = written(&[(b"folder/a", b"some bytes")]);
    let end = archive.windows(4).position(|four| four == CENTRAL.to_le_bytes()).unwrap();
    let mut renamed = archive.clone();
    let name = end + archive[end..].windows(8).position(|eight| eight == b"folder/a").unwrap();
    renamed[name] = b'g';
    refused(&renamed, "does not have");
    let mut short = archive[..end].to_vec();
    short.extend(&archive[archive.len() - 22..]);
    refused(&short, "does not name every entry");
    let mut doubled = archive[..end].to_vec();
    let first = &archive[end..end + 46 + 7];
    doubled.extend([first, first].concat());
    refused(&doubled, "does not have");
}

#[test]
fn a_cut_or_changed_archive_is_refused() {
    let archive = written(&[(b"folder/a", &[7; 5000])]);
    for cut in 0..archive.len() {
        assert!(read(&archive[..cut]).is_err(), "cut at {cut}");
    }
    let mut sum = archive.clone();
    let descriptor = archive.windows(4).position(|four| four == DESCRIPTOR.to_le_bytes()).unwrap();
    sum[descriptor + 4] ^= 1;
    refused(&sum, "not what it says");
    let mut encrypted = archive.clone();
    let file = archive.windows(8).position(|eight| eight == b"folder/a").unwrap() - 30;
    encrypted[file + 6] |= 1;
    refused(&encrypted, "encrypted");
    let mut method = archive.clone();
    method[file + 8] = 12;
    refused(&method, "not deflate");
    refused(b"PK\x01", "cut");
    refused(b"not a zip", "does not begin");
}

/// Its header says nothing of its size, so only its bytes can tell.
#[test]
fn a_folder_with_bytes_is_refused() {
    let mut archive = written(&[(b"folder/a", b"some bytes")]);
    let names: Vec<_> = (0..archive.len() - 8).filter(|at| archive[*at..].starts_with(b"folder/a")).collect();
    for at in names {
        archive[at + 7] = b'/';
    }
    let error = read(&archive).unwrap_err().to_string();
    assert!(error.contains("a folder has bytes"), "{error}");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(at: prop::sample::Index, byte: u8, cut: prop::sample::Index, more in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut archive = written(&[(b"folder/a", b"some bytes"), (b"b", &[1; 300])]);
        let place = at.index(archive.len());
        archive[place] = byte;
        let rest = archive.split_off(cut.index(archive.len()));
        archive.extend(more);
        let _ = read(&archive);
        archive.extend(rest);
        let _ = read(&archive);
    }

    #[test]
    fn any_content_comes_back(content in proptest::collection::vec(any::<u8>(), 0..9000)) {
        let found = read(&written(&[(b"a", &content)])).unwrap();
        prop_assert_eq!(&found[1].1, &content);
    }
}
