//! What a store promises, on SQLite and on PostgreSQL: one list of cases, each with a store of its own. A case that
//! is written and not listed is dead code, and the lints say so.

// A case has nothing better to do with an error than to fail.
#![allow(clippy::unwrap_used)]

mod artifacts;
mod audit;
mod audit_list;
mod bed;
mod delete;
mod files;
mod guards;
mod idempotency;
mod images;
mod jobs;
mod key_use;
mod keys;
mod killed;
mod leases;
mod lifecycle;
mod locks;
mod opening;
mod output;
mod patience;
mod pausing;
mod planes;
mod plans;
mod postgres;
mod restart;
mod retention;
mod sessions;
mod steps;
mod tenants;
mod texts;
mod upgrade;
mod watching;
mod webhooks;
mod workers;
mod writing;

macro_rules! on_both_engines {
    ($($module:ident: $($case:ident),+;)+) => {
        mod on_sqlite {
            $(mod $module { $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    crate::$module::$case(crate::bed::Bed::sqlite()).await;
                }
            )+ })+
        }
        mod on_postgres {
            $(mod $module { $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    crate::$module::$case(crate::bed::Bed::postgres().await).await;
                }
            )+ })+
        }
    };
}

on_both_engines! {
    jobs: an_accepted_job_is_there, a_job_says_when_it_started, an_accepted_job_can_be_claimed_at_once, a_job_of_an_unknown_tenant_is_refused,
        a_claim_is_won_once, pages_have_no_gap_and_no_repetition, lists_are_filtered;
    guards: a_finish_needs_the_last_fence, a_finish_needs_a_running_job, a_finish_is_written_once,
        a_finish_needs_a_final_state, a_finish_needs_the_right_tenant, a_cancelled_queued_job_is_over,
        a_cancelled_running_job_is_marked, whoever_cancels_first_has_cancelled, a_finished_job_is_not_cancelled;
    leases: a_renewed_lease_is_nobody_elses, whoever_was_taken_over_writes_nothing, a_renewal_in_between_wins,
        the_leases_of_a_dead_node_are_over_at_once, a_job_that_is_given_up_is_lost_once,
        a_retried_job_waits_and_is_another_attempt, what_was_not_started_does_not_count,
        a_cancel_is_told_to_the_owner, a_job_waits_no_longer_than_it_may;
    workers: a_worker_is_known_by_its_heartbeats, two_stores_together_never_give_a_worker_too_much,
        cpus_and_memory_are_counted_too, two_stores_together_start_no_more_than_a_tenant_may_have;
    delete: only_finished_jobs_are_deleted, a_deleted_job_leaves_no_output;
    lifecycle: states_only_move_as_allowed;
    idempotency: the_same_request_makes_one_job, another_body_is_told, tenants_and_routes_do_not_share_names,
        duplicates_at_once_make_one_job, duplicates_at_two_stores_make_one_job, a_refused_job_leaves_its_name_free;
    output: output_is_read_from_any_number, output_that_comes_again_is_kept_once, output_needs_the_last_fence,
        a_finish_brings_the_last_output;
    keys: a_key_is_found_by_its_hash, a_revoked_key_says_since_when, keys_of_other_tenants_are_not_found,
        tenants_are_one_for_each_name, the_same_hash_is_refused;
    tenants: a_tenant_is_there_with_its_quotas, tenants_are_listed_in_pages,
        a_deleted_tenant_is_gone_and_its_keys_with_it, a_key_brings_its_tenants_quotas,
        a_queue_takes_exactly_what_it_may, tenants_that_wait_are_found_with_their_oldest,
        the_first_key_of_an_older_store_becomes_an_operators;
    audit: a_chain_holds_what_was_done, a_refused_write_notes_nothing, chains_hold_under_writers_of_one_store,
        chains_hold_under_writers_of_two_stores, edited_entries_are_found, a_removed_entry_is_found,
        a_removed_last_entry_is_found, a_chain_that_was_emptied_is_found;
    audit_list: entries_are_found_by_what_they_are, entries_are_found_by_their_time,
        time_in_a_chain_never_runs_backwards;
    key_use: a_use_is_noted_once_in_a_period, uses_at_once_are_noted_once;
    writing: writes_at_once_are_all_kept, a_failing_write_fails_alone, a_lost_transaction_costs_one_batch,
        what_was_asked_before_closing_is_kept, a_closed_store_says_so;
    locks: a_write_does_not_wait_for_ever;
    opening: reopening_keeps_everything, the_first_version_is_brought_up_to_date, a_newer_store_is_refused, a_new_store_can_be_opened_twice_at_once;
    retention: names_of_requests_are_forgotten, output_goes_and_its_job_says_so,
        half_removed_output_is_not_taken_for_all_of_it, only_jobs_that_ended_long_ago_go,
        a_chain_is_whole_without_its_beginning, a_chain_without_its_beginning_still_tells_on_who_was_at_it,
        a_broken_chain_is_not_cut, jobs_come_in_while_others_go;
    images: a_tenant_sees_its_own_images_and_everybodys, images_are_found_by_their_profile,
        a_name_is_of_one_image_of_an_owner, only_an_owners_image_is_taken_out;
    planes: a_plane_is_there_for_as_long_as_it_says, steps_of_a_gone_plane_are_lost_and_those_of_others_run,
        what_a_gone_plane_had_begun_is_found_once, a_place_is_known_whosever_the_session_is;
    pausing:
        a_pause_is_undone_or_becomes_an_archive,
        steps_are_in_the_way_of_a_pause_or_end,
        an_archive_outlives_its_worker_and_a_frozen_session_does_not,
        a_resume_destroys_the_key_and_its_undoing_does_not,
        the_end_of_a_session_destroys_its_key,
        what_is_paused_at_its_deadline_does_not_end_there,
        a_snapshot_is_its_tenants_and_has_one_name,
        a_secret_is_its_tenants_and_is_replaced;
    sessions: a_session_is_there_with_its_place, a_session_that_is_made_becomes_ready_once,
        the_same_request_makes_one_session, a_deadline_only_moves_away, sessions_end_when_due_and_not_before,
        an_end_is_written_once_and_its_cause_stays, what_a_dead_node_had_is_lost,
        session_lists_are_filtered_and_paged, sessions_and_jobs_share_a_worker_and_a_quota;
    steps: steps_are_numbered_and_queue_by_context, a_named_step_is_made_once, only_a_ready_session_takes_steps,
        steps_end_with_their_session, a_stale_worker_writes_nothing,
        a_step_keeps_its_output_until_its_session_is_cleared, whoever_interrupts_first_has_interrupted,
        a_session_in_use_is_not_idle, old_sessions_go_with_everything;
    upgrade: everything_of_version_1_is_there, a_step_that_fails_has_not_happened;
    killed: a_migration_that_was_killed_is_finished_by_the_next;
    plans: nothing_reads_a_whole_table;
    patience: fewer_than_none_are_refused;
    files: a_restored_store_runs_nothing_twice;
    artifacts: an_artifact_goes_through_its_states, a_hash_that_was_announced_is_the_one,
        only_its_tenant_sees_an_artifact, the_quota_holds_for_all_together, what_grows_stays_within_the_quota,
        a_later_upload_takes_over, deleting_takes_the_key_at_once, a_jobs_artifacts_are_ready_all_at_once,
        a_sessions_artifacts_are_its_own,
        a_deleted_job_takes_its_artifacts, what_is_over_goes, artifacts_of_no_job_go,
        the_same_request_makes_one_artifact, pages_of_artifacts_have_no_gap;
    texts: odd_texts_come_back_as_they_were, texts_with_nul_are_refused, a_nul_is_refused_alone;
    watching: a_sound_store_is_found_sound_and_unchanged, a_busy_store_is_found_sound, commits_and_failures_are_told,
        progress_of_many_is_told_at_once, the_heads_of_many_chains_are_told_at_once;
    webhooks: each_change_is_noted_for_those_who_want_it, a_refused_change_tells_nobody,
        a_delivery_is_taken_once_and_due_again_until_it_has_ended,
        what_has_ended_is_forgotten_and_what_waits_is_not;
}
