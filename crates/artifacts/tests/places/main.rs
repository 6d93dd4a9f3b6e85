//! What a place promises, in a folder and in a bucket: one list of cases, each with a place of its own.

// A case has nothing better to do with an error than to fail.
#![allow(clippy::unwrap_used)]

mod bed;
mod bytes;
mod harm;
mod only_here;
mod removal;
mod s3;

macro_rules! in_both_places {
    ($($module:ident: $($case:ident),+;)+) => {
        mod in_a_folder {
            $(mod $module { $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    crate::$module::$case(crate::bed::Bed::folder().await).await;
                }
            )+ })+
        }
        mod in_a_bucket {
            $(mod $module { $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    crate::$module::$case(crate::bed::Bed::bucket().await).await;
                }
            )+ })+
        }
    };
}

in_both_places! {
    bytes: what_is_written_comes_back, any_part_comes_back, a_reader_reads_the_same,
        nothing_plain_lies_in_the_place, the_same_bytes_never_look_the_same;
    harm: a_changed_byte_is_found, a_cut_end_is_found, a_missing_segment_is_found, moved_segments_are_found,
        another_artifacts_bytes_are_found, an_earlier_writing_is_found, another_master_key_opens_nothing;
    removal: removal_leaves_nothing_and_takes_nothing_else, an_attempt_can_be_kept, what_was_not_finished_is_listed,
        whole_is_what_has_all_its_bytes, a_place_is_marked_once;
}
