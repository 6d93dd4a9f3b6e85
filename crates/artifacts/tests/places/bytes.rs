//! Bytes go in and come out.

use crate::bed::{Bed, bytes};
use cofferdam_artifacts::{CHUNK_BYTES, SEGMENT_BYTES};
use tokio::io::AsyncReadExt;

pub(crate) async fn what_is_written_comes_back(bed: Bed) {
    let edges = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, SEGMENT_BYTES, SEGMENT_BYTES + 1];
    for (i, size) in edges.into_iter().chain([2 * SEGMENT_BYTES + 12_345]).enumerate() {
        let kept = bed.write("ten-a", &format!("art-{i}"), bytes(size, i as u64)).await;
        assert!(bed.read_all(&kept).await.unwrap() == kept.plain, "{size} bytes");
        assert!(bed.vault.is_whole(&kept.name, size).await.unwrap(), "{size} bytes");
    }
}

pub(crate) async fn any_part_comes_back(bed: Bed) {
    let size = SEGMENT_BYTES + 3 * CHUNK_BYTES + 7;
    let kept = bed.write("ten-a", "art-a", bytes(size, 1)).await;
    let marks = [
        0,
        1,
        CHUNK_BYTES - 1,
        CHUNK_BYTES,
        CHUNK_BYTES + 1,
        SEGMENT_BYTES - 1,
        SEGMENT_BYTES,
        size - 1,
        size,
    ];
    for start in marks {
        for end in marks.into_iter().filter(|end| *end >= start) {
            let part = bed.read(&kept, start..end).await.unwrap();
            assert!(part == kept.plain[start as usize..end as usize], "{start}..{end}");
        }
    }
    // Behind the end there is nothing, and no error.
    assert_eq!(bed.read(&kept, size - 1..size + 10).await.unwrap().len(), 1);
    assert!(bed.read(&kept, size + 1..size + 10).await.unwrap().is_empty());
}

pub(crate) async fn a_reader_reads_the_same(bed: Bed) {
    let kept = bed.write("ten-a", "art-a", bytes(5 * CHUNK_BYTES + 1, 1)).await;
    let size = kept.plain.len() as u64;
    let mut reader = bed.vault.read(kept.name.clone(), kept.key.clone(), size, 0..size).into_reader();
    let mut out = Vec::new();
    reader.read_to_end(&mut out).await.unwrap();
    assert!(out == kept.plain);
    for (key, _) in bed.objects().await {
        bed.lose(&key).await;
    }
    let mut reader = bed.vault.read(kept.name, kept.key, size, 0..size).into_reader();
    reader.read_to_end(&mut Vec::new()).await.unwrap_err();
}

pub(crate) async fn nothing_plain_lies_in_the_place(bed: Bed) {
    let plain = b"a word that nobody else should read. ".repeat(5000);
    let kept = bed.write("ten-a", "art-a", plain.clone()).await;
    let objects = bed.objects().await;
    assert_eq!(objects.len(), 1);
    // The positive control: the same look finds it in what was put in.
    let shows = |bytes: &[u8]| bytes.windows(16).any(|part| part == &plain[..16]);
    assert!(shows(&kept.plain));
    assert!(!objects.iter().any(|(_, bytes)| shows(bytes)));
}

/// Not within a tenant, and not between tenants: a place that holds the same twice does not say so.
pub(crate) async fn the_same_bytes_never_look_the_same(bed: Bed) {
    for (tenant, id) in [("ten-a", "art-a"), ("ten-a", "art-b"), ("ten-b", "art-c")] {
        bed.write(tenant, id, vec![7; 1000]).await;
    }
    let objects = bed.objects().await;
    let [(_, one), (_, two), (_, three)] = &objects[..] else { panic!("{} objects", objects.len()) };
    assert!(one != two && two != three && one != three);
}
