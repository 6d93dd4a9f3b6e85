//! What goes, what stays, and what a listing shows.

use crate::bed::{Bed, bytes};
use cofferdam_artifacts::{Found, Name, SEGMENT_BYTES};

async fn listed(bed: &Bed) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut list = bed.vault.list();
    while let Some(Found { tenant, id, .. }) = list.recv().await.transpose().unwrap() {
        found.push((tenant, id));
    }
    found.sort();
    found.dedup();
    found
}

/// Names that begin alike are different names: `t1` is not `t10`.
pub(crate) async fn removal_leaves_nothing_and_takes_nothing_else(bed: Bed) {
    for (tenant, id) in [("t1", "art-a"), ("t10", "art-a"), ("t1", "art-aa"), ("t1", "art-b")] {
        bed.write(tenant, id, bytes(SEGMENT_BYTES + 1, 1)).await;
    }
    bed.vault.remove("t1", "art-a", None).await.unwrap();
    let left = [("t1", "art-aa"), ("t1", "art-b"), ("t10", "art-a")];
    assert_eq!(listed(&bed).await, left.map(|(tenant, id)| (tenant.to_owned(), id.to_owned())));
    assert_eq!(bed.objects().await.len(), 6);
    // Again, and of what was never there.
    bed.vault.remove("t1", "art-a", None).await.unwrap();
    bed.vault.remove("t2", "art-a", None).await.unwrap();
    for (tenant, id) in
        [("..", "art-a"), ("t1", "../t10"), ("", "art-a"), ("t1", ""), ("t1", "a/b"), ("T1", "a")]
    {
        bed.vault.remove(tenant, id, None).await.unwrap_err();
        Name::new(tenant, id, "a").unwrap_err();
    }
    assert_eq!(bed.objects().await.len(), 6);
}

pub(crate) async fn an_attempt_can_be_kept(bed: Bed) {
    let _earlier = bed.write("ten-a", "art-a", bytes(10, 1)).await;
    let kept = bed.write("ten-a", "art-a", bytes(10, 2)).await;
    assert_eq!(bed.objects().await.len(), 2);
    bed.vault.remove("ten-a", "art-a", Some(kept.name.attempt())).await.unwrap();
    assert_eq!(bed.objects().await.len(), 1);
    assert_eq!(bed.read_all(&kept).await.unwrap(), kept.plain);
}

/// A writing that is dropped half-way, as by a death, leaves whole objects that can be found and removed.
pub(crate) async fn what_was_not_finished_is_listed(bed: Bed) {
    let name = Name::draw("ten-a", "art-a").unwrap();
    let (key, _) = bed.vault.new_key(&name).unwrap();
    let mut writing = bed.vault.write(name.clone(), key);
    writing.write(&bytes(SEGMENT_BYTES + 100_000, 1)).await.unwrap();
    drop(writing);
    assert_eq!(listed(&bed).await, [("ten-a".to_owned(), "art-a".to_owned())]);
    bed.vault.remove_attempt(&name).await.unwrap();
    assert_eq!(listed(&bed).await, []);
}

pub(crate) async fn whole_is_what_has_all_its_bytes(bed: Bed) {
    let size = SEGMENT_BYTES + 10;
    let kept = bed.write("ten-a", "art-a", bytes(size, 1)).await;
    assert!(bed.vault.is_whole(&kept.name, size).await.unwrap());
    assert!(!bed.vault.is_whole(&kept.name, size + 1).await.unwrap());
    let (key, sealed) = bed.objects().await.remove(1);
    bed.overwrite(&key, sealed[1..].to_vec()).await;
    assert!(!bed.vault.is_whole(&kept.name, size).await.unwrap());
    bed.lose(&key).await;
    assert!(!bed.vault.is_whole(&kept.name, size).await.unwrap());
}

pub(crate) async fn a_place_is_marked_once(bed: Bed) {
    bed.vault.check().await.unwrap();
    assert!(!bed.vault.is_marked().await.unwrap());
    bed.vault.mark().await.unwrap();
    assert!(bed.vault.is_marked().await.unwrap());
    assert_eq!(listed(&bed).await, [], "the mark is no artifact");
}
