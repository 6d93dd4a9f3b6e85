//! What the traits promise to a user, as tests that every backend runs.
//!
//! A backend's tests call `cofferdam_backend::conformance!(make_backend)` once, where `make_backend` is an
//! `async fn() -> Arc<dyn Backend>`; it becomes one `#[test]` per case. An ability that the backend says it
//! lacks is tested, too: asking for it must answer `Unsupported`. Nothing is skipped.
//!
//! Where a backend is known to differ, its tests say so, case by case and with the reason:
//! `conformance!(make_backend, differs: DIFFERS)`. Such a case is run, too, and has to fail: one that holds after
//! all must leave the list. It says `differs` and why, and with COFFERDAM_CONFORMANCE=FILE every case adds a line
//! to that file: the backend's name for itself, the case, `passed` or `differs`, the reason.
//!
//! Cases use `/bin/sh`, coreutils, `grep`, `setsid`, and for sockets perl or else python3, from the image
//! `host`. Disks are kept in TMPDIR, or else in `/var/tmp`. Cases look at a sandbox through the traits alone,
//! never at the machine behind it: how a backend keeps its promises is for its own tests.

pub mod files;
pub mod isolation;
pub mod lifecycle;
pub mod limits;
pub mod ports;
pub mod process;
mod runner;
pub mod stdio;
pub mod support;
pub mod terminal;

pub use runner::run_case;

/// Makes a `#[test]` of every case, in modules `conformance::<topic>`.
///
/// ```text
/// async fn make_backend() -> Arc<dyn Backend> { ... }
/// cofferdam_backend::conformance!(make_backend);
/// ```
#[macro_export]
macro_rules! conformance {
    ($make_backend:expr) => {
        $crate::conformance_cases! { conformance_tests $make_backend, &[] }
    };
    ($make_backend:expr, differs: $differs:expr) => {
        $crate::conformance_cases! { conformance_tests $make_backend, $differs }
    };
}

/// Every case, by topic. A `pub async fn` of a topic that is not listed here fails `every_case_is_listed`.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ($emit:ident $($arguments:tt)*) => {
        $crate::$emit! {
            [$($arguments)*]
            process:
                exit_codes_come_back,
                signals_come_back,
                missing_programs_are_not_found,
                files_without_permission_are_not_run,
                scripts_without_a_first_line_are_not_run,
                scripts_in_the_workspace_run,
                names_are_looked_up_in_the_given_path,
                impossible_requests_are_invalid,
                arguments_arrive_exactly,
                long_arguments_arrive,
                environment_is_exact,
                working_directory_is_the_given_one,
                working_directory_is_no_link_to_a_descriptor,
                working_directory_is_made_where_asked,
                working_directory_is_not_made_on_a_read_only_root,
                signal_state_is_the_default,
                wait_answers_the_same_again,
                attach_gives_the_same_process,
                signals_reach_the_whole_group,
                children_outlive_their_parent,
                orphans_are_reaped,
                processes_share_files,
                the_first_process_is_like_the_next;
            stdio:
                stdin_arrives_and_ends,
                stdin_is_at_its_end_unless_asked_for,
                stdout_and_stderr_are_separate,
                dev_stdout_and_dev_stderr_open,
                output_is_binary_safe,
                large_output_is_complete,
                output_waits_for_its_reader,
                a_closed_reader_is_a_broken_pipe,
                a_closed_stdin_is_an_error_to_its_writer;
            terminal:
                terminals_are_terminals,
                terminals_have_the_asked_size,
                terminals_resize,
                ctrl_c_reaches_the_foreground_group,
                typed_lines_and_end_of_file_arrive,
                dev_tty_is_the_terminal,
                terminals_are_refused_where_not_asked_for,
                pipes_come_without_a_terminal;
            files:
                written_files_read_the_same,
                files_move_between_host_and_process,
                parents_are_made,
                modes_are_kept,
                restored_files_are_as_they_were,
                writing_replaces,
                big_files_are_whole,
                empty_files_are_files,
                missing_files_are_not_found,
                lists_show_kinds_and_sizes,
                lists_stop_at_their_limit,
                only_plain_files_are_read,
                writing_never_follows_a_link,
                writing_to_a_fifo_does_not_block,
                links_in_a_path_are_refused,
                read_only_root_is_not_written,
                folders_are_made,
                written_files_belong_to_the_sandbox_user,
                private_files_are_readable_by_the_host,
                files_of_the_root_are_readable,
                stat_tells_what_a_path_is,
                removed_files_are_gone,
                renamed_files_replace_others,
                modes_are_set_without_their_special_bits,
                links_are_made_and_read_but_not_followed,
                files_are_read_from_a_byte_on,
                files_are_handed_from_one_to_another,
                only_plain_files_are_handed_over,
                secrets_have_a_place_in_memory,
                changes_are_watched_in_order,
                a_watch_ends_with_its_sandbox;
            ports:
                connect_reaches_a_listener_inside,
                connect_reaches_an_ipv6_listener_inside,
                connect_to_a_closed_port_fails_promptly,
                listen_accepts_from_inside,
                a_port_is_listened_on_once,
                sandboxes_have_ports_of_their_own,
                the_network_is_loopback_only,
                the_hosts_loopback_is_out_of_reach;
            limits:
                impossible_limits_are_invalid,
                processes_are_limited_and_counted,
                out_of_memory_ends_the_sandbox,
                out_of_memory_ends_one_process,
                a_full_disk_is_no_space_left,
                tmp_shares_the_disk_limit,
                shared_memory_is_bounded,
                inodes_are_bounded,
                a_file_larger_than_the_disk_is_refused,
                a_disk_on_disk_is_bounded,
                a_file_takes_no_more_of_a_disk_than_it_has,
                files_on_disk_do_not_run_out_of_memory,
                a_disk_is_as_large_as_asked_for,
                inodes_on_disk_are_bounded,
                impossible_disks_are_invalid,
                a_disk_needs_a_folder,
                cpu_time_is_limited,
                limits_can_change,
                stats_are_measured;
            lifecycle:
                a_backend_is_healthy,
                a_missing_image_is_an_error,
                paused_processes_stand_still,
                files_can_be_read_while_paused,
                nothing_is_started_while_paused,
                what_was_stopped_stays_stopped,
                paused_sandboxes_can_be_destroyed,
                destroy_ends_everything,
                destroy_ends_what_is_waited_for,
                destroy_is_idempotent,
                destroyed_sandboxes_are_gone,
                dropped_sandboxes_are_destroyed,
                sandboxes_are_made_in_parallel;
            isolation:
                the_report_is_complete,
                mandatory_controls_are_enforced,
                best_effort_is_reported_as_such,
                processes_are_unprivileged,
                only_stdio_is_open,
                only_own_processes_are_seen,
                devices_are_the_harmless_ones,
                the_hostname_is_not_the_hosts,
                the_user_has_a_name,
                the_root_is_read_only,
                a_writable_root_is_gone_afterwards,
                a_writable_root_is_the_users,
                a_writable_root_keeps_the_other_walls,
                a_writable_root_counts_as_disk,
                a_writable_root_on_disk_counts_as_disk,
                sandboxes_start_empty,
                sandboxes_do_not_see_each_others_files,
                mounts_show_no_host_paths,
                a_disk_is_proven_and_out_of_reach,
                disks_start_empty_and_apart,
                cgroups_show_no_host_paths;
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ([$make_backend:expr, $differs:expr] $($topic:ident: $($case:ident),+;)+) => {
        mod conformance {
            #[allow(unused_imports)]
            use super::*;
            $(
                mod $topic {
                    #[allow(unused_imports)]
                    use super::*;
                    $(
                        #[test]
                        fn $case() {
                            let name = concat!(stringify!($topic), "::", stringify!($case));
                            $crate::conformance::run_case(
                                name,
                                $differs,
                                $make_backend,
                                $crate::conformance::$topic::$case,
                            );
                        }
                    )+
                }
            )+
        }
    };
}

/// The source of each topic with the names of its listed cases.
#[cfg(test)]
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_names {
    ([] $($topic:ident: $($case:ident),+;)+) => {
        [$((include_str!(concat!(stringify!($topic), ".rs")), vec![$(stringify!($case)),+])),+]
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_case_is_listed() {
        for (source, listed) in crate::conformance_cases!(conformance_names) {
            let written = source.lines().filter_map(|line| line.strip_prefix("pub async fn "));
            let written: BTreeSet<&str> = written.filter_map(|rest| rest.split('(').next()).collect();
            assert_eq!(written, listed.into_iter().collect());
        }
    }
}
