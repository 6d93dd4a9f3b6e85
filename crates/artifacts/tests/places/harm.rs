//! Somebody has the place and not the keys, and changes what lies there. Each case reads well before the harm.

use crate::bed::{Bed, Kept, bytes};
use cofferdam_artifacts::{ArtifactError, CHUNK_BYTES, MasterKey, SEGMENT_BYTES};

async fn two_segments(bed: &Bed, id: &str, seed: u64) -> Kept {
    let kept = bed.write("ten-a", id, bytes(2 * SEGMENT_BYTES, seed)).await;
    assert!(bed.read_all(&kept).await.unwrap() == kept.plain);
    kept
}

async fn assert_damaged(bed: &Bed, kept: &Kept) {
    let read = bed.read_all(kept).await.map(|bytes| bytes.len());
    assert!(matches!(read, Err(ArtifactError::Damaged(_) | ArtifactError::Missing)), "{read:?}");
}

pub(crate) async fn a_changed_byte_is_found(bed: Bed) {
    let kept = two_segments(&bed, "art-a", 1).await;
    let (key, sealed) = bed.objects().await.remove(1);
    for at in [0, sealed.len() / 2, sealed.len() - 1] {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        bed.overwrite(&key, changed).await;
        assert_damaged(&bed, &kept).await;
    }
    // What lies before it can still be read.
    assert_eq!(bed.read(&kept, 0..CHUNK_BYTES).await.unwrap().len() as u64, CHUNK_BYTES);
}

/// Also where the cut falls between two chunks, so that every chunk that is left opens.
pub(crate) async fn a_cut_end_is_found(bed: Bed) {
    let kept = two_segments(&bed, "art-a", 1).await;
    let (key, sealed) = bed.objects().await.remove(1);
    let chunk = CHUNK_BYTES as usize + 16;
    for left in [0, chunk, sealed.len() - chunk, sealed.len() - 1] {
        bed.overwrite(&key, sealed[..left].to_vec()).await;
        assert_damaged(&bed, &kept).await;
    }
    // Even if the record were made to say so: the last chunk that is left was not sealed as the last.
    bed.overwrite(&key, sealed[..sealed.len() - chunk].to_vec()).await;
    let shorter = Kept { plain: kept.plain[..kept.plain.len() - CHUNK_BYTES as usize].to_vec(), ..kept };
    assert_damaged(&bed, &shorter).await;
}

pub(crate) async fn a_missing_segment_is_found(bed: Bed) {
    let kept = two_segments(&bed, "art-a", 1).await;
    let (key, _) = bed.objects().await.remove(1);
    bed.lose(&key).await;
    assert_damaged(&bed, &kept).await;
}

pub(crate) async fn moved_segments_are_found(bed: Bed) {
    let kept = two_segments(&bed, "art-a", 1).await;
    let objects = bed.objects().await;
    bed.overwrite(&objects[0].0, objects[1].1.clone()).await;
    bed.overwrite(&objects[1].0, objects[0].1.clone()).await;
    assert_damaged(&bed, &kept).await;
}

pub(crate) async fn another_artifacts_bytes_are_found(bed: Bed) {
    let one = two_segments(&bed, "art-a", 1).await;
    let two = two_segments(&bed, "art-b", 2).await;
    let objects = bed.objects().await;
    for (mine, other) in [(0, 2), (1, 3)] {
        bed.overwrite(&objects[mine].0, objects[other].1.clone()).await;
    }
    assert_damaged(&bed, &one).await;
    // Even with the other one's key: they are bound to its name.
    let exchanged = Kept { key: two.key, plain: two.plain, name: one.name };
    assert_damaged(&bed, &exchanged).await;
}

pub(crate) async fn an_earlier_writing_is_found(bed: Bed) {
    let earlier = two_segments(&bed, "art-a", 1).await;
    let old = bed.objects().await;
    bed.vault.remove_attempt(&earlier.name).await.unwrap();
    let now = two_segments(&bed, "art-a", 2).await;
    let new = bed.objects().await;
    assert_eq!(new.len(), 2);
    for (new, old) in new.iter().zip(&old) {
        bed.overwrite(&new.0, old.1.clone()).await;
    }
    assert_damaged(&bed, &now).await;
}

pub(crate) async fn another_master_key_opens_nothing(bed: Bed) {
    let kept = bed.write("ten-a", "art-a", bytes(10, 1)).await;
    let (_, wrapped) = bed.vault.new_key(&kept.name).unwrap();
    bed.vault.open_key(&kept.name, &wrapped).unwrap();
    let other = MasterKey::from_bytes(&[4; 32]);
    assert!(matches!(other.unwrap(&wrapped, b"anything"), Err(ArtifactError::WrongMasterKey)));
    let namesake = bed.write("ten-b", "art-a", bytes(10, 1)).await;
    assert!(matches!(bed.vault.open_key(&namesake.name, &wrapped), Err(ArtifactError::WrongMasterKey)));
}
