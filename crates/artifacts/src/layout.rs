//! Where in the place a byte of an artifact lies. Pure arithmetic.
//!
//! An artifact is a row of chunks, each sealed by itself so that a part can be read without the rest. Chunks lie in
//! segments, each an object of its own: what a death leaves behind is a whole object that a listing shows, which the
//! unfinished uploads of an S3 store are not.

/// Plain bytes of a chunk; the last one may have fewer. Small enough that a short read costs little, large enough
/// that the tag of each costs nothing.
pub const CHUNK_BYTES: u64 = 64 << 10;

/// What sealing adds to a chunk.
pub(crate) const TAG_BYTES: u64 = 16;

pub(crate) const SEALED_BYTES: u64 = CHUNK_BYTES + TAG_BYTES;

/// As much as is held in memory of an upload.
pub(crate) const SEGMENT_CHUNKS: u64 = 128;

/// Plain bytes of a segment; the last one may have fewer.
pub const SEGMENT_BYTES: u64 = SEGMENT_CHUNKS * CHUNK_BYTES;

/// How many chunks an artifact has. An empty one has one, so that its end is proven, too.
pub(crate) fn chunks(size: u64) -> u64 {
    size.div_ceil(CHUNK_BYTES).max(1)
}

pub(crate) fn segments(size: u64) -> u64 {
    chunks(size).div_ceil(SEGMENT_CHUNKS)
}

/// The bytes that a segment has in the place.
pub(crate) fn segment_sealed_bytes(size: u64, segment: u64) -> u64 {
    let first = segment * SEGMENT_CHUNKS;
    let count = (chunks(size) - first).min(SEGMENT_CHUNKS);
    let plain = (size - first * CHUNK_BYTES).min(SEGMENT_BYTES);
    plain + count * TAG_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges_fall_where_they_should() {
        for (size, chunk_count, segment_count) in [
            (0, 1, 1),
            (1, 1, 1),
            (CHUNK_BYTES, 1, 1),
            (CHUNK_BYTES + 1, 2, 1),
            (SEGMENT_BYTES, 128, 1),
            (SEGMENT_BYTES + 1, 129, 2),
        ] {
            assert_eq!((chunks(size), segments(size)), (chunk_count, segment_count), "{size}");
        }
        assert_eq!(segment_sealed_bytes(0, 0), TAG_BYTES);
        assert_eq!(segment_sealed_bytes(SEGMENT_BYTES + 1, 1), 1 + TAG_BYTES);
    }

    proptest! {
        #[test]
        fn segments_add_up(size in 0..(1u64 << 40)) {
            let count = segments(size);
            // The first, the last and the sum by formula: a terabyte has too many to walk.
            let last = segment_sealed_bytes(size, count - 1);
            let before = (count - 1) * SEGMENT_CHUNKS * SEALED_BYTES;
            prop_assert_eq!(before + last, size + chunks(size) * TAG_BYTES);
        }
    }
}
