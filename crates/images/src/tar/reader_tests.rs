use super::*;
use crate::tar::{END, Written, write_header};
use proptest::prelude::*;

fn file<'e>(path: &'e [u8], size: u64) -> Written<'e> {
    Written { path, link: b"", kind: Kind::File, mode: 0o644, uid: 7, seconds: 11, size }
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

fn read(archive: &[u8]) -> Result<Vec<(Entry, Vec<u8>)>, TarError> {
    let mut reader = TarReader::new(Streamed(archive));
    let mut found = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        let mut bytes = Vec::new();
        reader.data().read_to_end(&mut bytes)?;
        found.push((entry, bytes));
    }
    Ok(found)
}

fn refused(archive: &[u8], words: &str) {
    match read(archive) {
        Err(TarError::Malformed { what, .. }) => assert!(what.contains(words), "{what}"),
        other => panic!("{words}: {other:?}"),
    }
}

/// A header with one field replaced, and its checksum made right again.
fn changed(entry: &Written<'_>, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut block = write_header(entry);
    block[at..at + bytes.len()].copy_from_slice(bytes);
    block[148..156].copy_from_slice(b"        ");
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn pax(records: &[u8], kind: &[u8]) -> Vec<u8> {
    let mut bytes = changed(&file(b"pax", records.len() as u64), 156, kind);
    bytes.extend(padded(records));
    bytes
}

#[test]
fn what_was_written_is_read() {
    let long = [b"folder/".as_slice(), &[b'n'; 200]].concat();
    let mut archive = write_header(&file(&long, 3));
    archive.extend(padded(b"abc"));
    archive.extend(write_header(&Written { link: &long, kind: Kind::HardLink, ..file(b"link", 0) }));
    archive.extend(END);
    let found = read(&archive).unwrap();
    assert_eq!((found[0].0.path.as_slice(), found[0].1.as_slice()), (&long[..], &b"abc"[..]));
    assert_eq!((found[0].0.mode, found[0].0.uid, found[0].0.seconds), (0o644, 7, 11));
    assert_eq!((found[1].0.kind, &found[1].0.link), (Kind::HardLink, &long));
}

#[test]
fn extended_headers_count_for_one_entry() {
    let mut archive = pax(b"16 path=renamed\n", b"x");
    archive.extend(write_header(&file(b"a", 0)));
    archive.extend(write_header(&file(b"b", 0)));
    archive.extend(END);
    let names: Vec<_> = read(&archive).unwrap().into_iter().map(|(entry, _)| entry.path).collect();
    assert_eq!(names, [b"renamed".to_vec(), b"b".to_vec()]);
}

/// Two readers that disagree about a size see two archives.
#[test]
fn the_extended_size_is_the_size() {
    let inner = [write_header(&file(b"hidden", 0)), END.to_vec()].concat();
    let mut archive = pax(format!("13 size={:04}\n", inner.len()).as_bytes(), b"x");
    archive.extend(write_header(&file(b"outer", 0)));
    archive.extend(&inner);
    archive.extend(END);
    let found = read(&archive).unwrap();
    assert_eq!((found.len(), found[0].1.len()), (1, inner.len()));
}

#[test]
fn a_cut_archive_is_refused() {
    let mut archive = write_header(&file(b"a", 600));
    archive.extend(padded(&[1; 600]));
    refused(&archive, "without an end mark");
    refused(&[], "without an end mark");
    refused(&archive[..100], "without an end mark");
    assert!(read(&archive[..900]).is_err());
    let mut reader = TarReader::new(Streamed(&archive[..900]));
    reader.next_entry().unwrap();
    assert!(
        matches!(reader.next_entry(), Err(TarError::Malformed { what, .. }) if what.contains("within an entry"))
    );
}

#[test]
fn what_readers_disagree_about_is_refused() {
    refused(&changed(&file(b"a", 5), 156, b"2"), "not a file has bytes");
    refused(&changed(&file(b"a", 5), 156, b"5"), "not a file has bytes");
    refused(&changed(&file(b"a", 0), 156, b"S"), "sparse");
    refused(&changed(&file(b"a", 0), 156, b"V"), "unknown kind");
    refused(&changed(&file(b"a", 0), 124, &[0xff; 12]), "size is no number");
    refused(&pax(b"12 path=abc\n", b"g"), "global header");
    let mut wrong = write_header(&file(b"a", 0));
    wrong[0] = b'b';
    refused(&wrong, "checksum");
    let sparse = [pax(b"22 GNU.sparse.major=1\n", b"x"), write_header(&file(b"a", 0))].concat();
    refused(&sparse, "sparse");
}

#[test]
fn headers_before_an_entry_are_limited() {
    let many: Vec<u8> = (0..9).flat_map(|_| pax(b"7 a=bc\n", b"x")).collect();
    refused(&many, "too many headers");
    refused(&changed(&file(b"a", 2 << 20), 156, b"L"), "larger than 1 MiB");
    let mut long = changed(&file(b"a", 5000), 156, b"L");
    long.extend(padded(&[b'n'; 5000]));
    long.extend(write_header(&file(b"a", 0)));
    refused(&long, "longer than 4095");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_or_read_more_than_there_is(
        mut blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..1200), 0..4),
        kind in any::<u8>(), size in 0u64..3000, cut in 0usize..4000,
    ) {
        let mut archive = changed(&file(b"a/b", size), 156, &[kind]);
        for block in &mut blocks {
            archive.extend_from_slice(block);
            archive.extend(changed(&file(b"c", block.len() as u64), 156, b"x"));
        }
        archive.truncate(cut.max(BLOCK));
        if let Ok(found) = read(&archive) {
            prop_assert!(found.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() <= archive.len());
        }
    }
}
