use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;

use super::assemble::Verdict;
use super::compile::compile;
use super::eval::{Data, run};
use super::naive::{self, OwnedRule};
use super::rules::{self, Rule, Sense, Test};
use super::table::{self, Action, Call, Entry, table};
use super::{Profile, describe, nr};

/// Every way in which one test may follow another: the same argument or a different one, whole or masked.
static MIXED: Rule = Rule {
    text: "",
    sense: Sense::AllowIf,
    clauses: &[
        &[
            Test { arg: 1, mask: 0xf0, values: &[0x10, 0x30] },
            Test { arg: 1, mask: u32::MAX, values: &[0x11, 0x31, 0x51] },
        ],
        &[Test { arg: 1, mask: 0x0f, values: &[3, 5] }, Test { arg: 1, mask: 0x70, values: &[0] }],
        &[Test { arg: 1, mask: 0xf00, values: &[0] }, Test { arg: 1, mask: 0x0f, values: &[7] }],
        &[Test { arg: 1, mask: u32::MAX, values: &[0x40, 0x41, 0x43] }],
        &[
            Test { arg: 0, mask: u32::MAX, values: &[u32::MAX] },
            Test { arg: 1, mask: u32::MAX, values: &[1] },
        ],
    ],
};

const ACTIONS: [Action; 7] = [
    Action::Allow,
    Action::Eperm,
    Action::Enosys,
    Action::Rule(&rules::SOCKET),
    Action::Rule(&rules::PRCTL),
    Action::Rule(&rules::MKNOD),
    Action::Rule(&MIXED),
];

/// Numbers at which a comparison may be off by one, beside all the small ones.
fn numbers() -> impl Iterator<Item = u32> {
    let edges = [1 << 10, 1 << 15, 1 << 16, 1 << 29, 1 << 30, 1 << 31, u32::MAX];
    (0..1024)
        .chain((0..1024).map(|nr| nr | 0x4000_0000))
        .chain((0..1024).map(|nr| nr | 0x8000_0000))
        .chain(edges.into_iter().flat_map(|edge: u32| [edge.wrapping_sub(1), edge, edge.wrapping_add(1)]))
}

fn rules(table: &[Entry]) -> impl Iterator<Item = (u32, OwnedRule)> {
    table.iter().filter_map(|entry| match entry.action {
        Action::Rule(rule) => Some((entry.call.nr, OwnedRule::from(rule))),
        _ => None,
    })
}

#[test]
fn the_program_answers_as_the_table_says_for_every_number() {
    for profile in Profile::ALL {
        let (table, code) = (table(profile), profile.program().as_slice());
        for nr in numbers() {
            for args in [[0; 6], [1; 6], [u64::MAX; 6]] {
                let answer = run(code, &Data::native(nr, args)).0;
                assert_eq!(answer, naive::verdict(&table, nr, &args), "{profile:?} {nr} {args:x?}");
            }
        }
    }
}

#[test]
fn the_program_answers_as_the_table_says_for_all_arguments_that_may_matter() {
    for profile in Profile::ALL {
        let (table, code) = (table(profile), profile.program().as_slice());
        for (nr, rule) in rules(&table) {
            for args in rule.interesting_args() {
                let answer = run(code, &Data::native(nr, args)).0;
                assert_eq!(answer, rule.verdict(&args), "{profile:?} {nr} {args:x?}");
            }
        }
    }
}

#[test]
fn tests_on_one_argument_do_not_disturb_each_other() {
    let program = compile(&[Entry { call: Call { constant: "", nr: 0 }, action: Action::Rule(&MIXED) }]);
    for first in [0, u64::from(u32::MAX)] {
        for second in 0..0x1000 {
            let args = [first, second, 0, 0, 0, 0];
            let answer = run(program.as_slice(), &Data::native(0, args)).0;
            assert_eq!(answer, OwnedRule::from(&MIXED).verdict(&args), "{args:x?}");
        }
    }
}

#[test]
fn another_architecture_is_killed() {
    // i386, arm, aarch64, nothing, and one bit off.
    for arch in [0x4000_0003, 0x4000_0028, 0xc000_00b7, 0, 0xc000_003f, 0x8000_003e, u32::MAX] {
        for profile in Profile::ALL {
            for nr in numbers() {
                let answer = run(profile.program().as_slice(), &Data { nr, arch, args: [0; 6] }).0;
                assert_eq!(answer, Verdict::Kill, "{profile:?} {arch:#x} {nr}");
            }
        }
    }
}

proptest! {
    #[test]
    fn the_program_answers_as_the_table_says(
        nr in prop_oneof![0u32..500, any::<u32>()],
        args in prop::array::uniform6(prop_oneof![0u64..300, any::<u32>().prop_map(u64::from), any::<u64>()]),
    ) {
        for profile in Profile::ALL {
            let answer = run(profile.program().as_slice(), &Data::native(nr, args)).0;
            prop_assert_eq!(answer, naive::verdict(&table(profile), nr, &args));
        }
    }

    /// Our own tables are too small for the jumps that need help to go far.
    #[test]
    fn any_table_is_compiled_right(
        actions in prop::collection::vec(0..ACTIONS.len(), 1..1500),
        probe in 0u64..300,
    ) {
        let table: Vec<Entry> = (0..)
            .zip(&actions)
            .map(|(nr, action)| Entry { call: Call { constant: "", nr }, action: ACTIONS[*action] })
            .collect();
        let program = compile(&table);
        for nr in 0..=actions.len() as u32 {
            for args in [[0; 6], [1; 6], [probe; 6]] {
                let answer = run(program.as_slice(), &Data::native(nr, args)).0;
                prop_assert_eq!(answer, naive::verdict(&table[nr as usize..], nr, &args));
            }
        }
    }

    /// Filters stack, so what PID 1's refuses the payload cannot have.
    #[test]
    fn init_allows_whatever_a_payload_may_do(
        nr in 0u32..500,
        args in prop::array::uniform6(prop_oneof![0u64..300, any::<u64>()]),
    ) {
        assert_init_allows_it_too(nr, args);
    }
}

#[test]
fn init_allows_whatever_a_payload_may_do_at_the_edges() {
    for profile in Profile::ALL {
        for nr in numbers() {
            assert_init_allows_it_too(nr, [0; 6]);
        }
        for (nr, rule) in rules(&table(profile)) {
            for args in rule.interesting_args() {
                assert_init_allows_it_too(nr, args);
            }
        }
    }
}

fn assert_init_allows_it_too(nr: u32, args: [u64; 6]) {
    let answer = |profile: Profile| run(profile.program().as_slice(), &Data::native(nr, args)).0;
    for payload in [Profile::Payload, Profile::PayloadOneId] {
        if answer(payload) == Verdict::Allow {
            assert_eq!(answer(Profile::Init), Verdict::Allow, "{payload:?} {nr} {args:x?}");
        }
    }
}

/// Not tested against the rules as they are written, but against what they are for.
#[test]
fn the_known_ways_out_are_shut() {
    for profile in [Profile::Payload, Profile::PayloadOneId] {
        let answer = |nr: libc::c_long, args: [u64; 3]| {
            let [a, b, c] = args;
            run(profile.program().as_slice(), &Data::native(nr as u32, [a, b, c, 0, 0, 0])).0
        };
        // NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
        for bit in [17, 25, 26, 27, 28, 29, 30] {
            assert_eq!(answer(nr::SYS_clone, [1 << bit | 17, 0, 0]), Verdict::Eperm, "{profile:?} {bit}");
        }
        for (nr, args) in [
            (nr::SYS_clone, [0xffff_ffff_1000_0011, 0, 0]),
            (nr::SYS_unshare, [0x1000_0000, 0, 0]),
            (nr::SYS_ioctl, [0, 0x5412, 0]),
            (nr::SYS_ioctl, [0, 0x1_0000_5412, 0]),
            (nr::SYS_socket, [17, 3, 0x300]),
            (nr::SYS_socket, [2, 3, 1]),
            (nr::SYS_socket, [2, 3 | 0x80000, 6]),
            (nr::SYS_socket, [40, 1, 0]),
            (nr::SYS_socket, [38, 5, 0]),
            (nr::SYS_socket, [16, 3, 12]),
            (nr::SYS_socket, [2, 1, 262]),
            (nr::SYS_setsockopt, [3, 6, 31]),
            (nr::SYS_personality, [0x0004_0000, 0, 0]),
            (nr::SYS_mknodat, [0, 0, 0o020_666]),
            (nr::SYS_mknodat, [0, 0, 0o060_666]),
            (nr::SYS_prctl, [35, 0, 0]),
            (nr::SYS_seccomp, [1, 8, 0]),
            (nr::SYS_mount, [0; 3]),
            (nr::SYS_ptrace, [0; 3]),
        ] {
            assert_eq!(answer(nr, args), Verdict::Eperm, "{profile:?} {nr} {args:x?}");
        }
        for nr in [nr::SYS_clone3, nr::SYS_io_uring_setup, nr::SYS_bpf, nr::SYS_keyctl, nr::SYS_userfaultfd] {
            assert_eq!(answer(nr, [0; 3]), Verdict::Enosys, "{profile:?} {nr}");
        }
    }
}

#[test]
fn every_call_of_the_kernel_is_in_the_table_once() {
    let mut seen = BTreeMap::new();
    for entry in table(Profile::Payload) {
        let before = seen.insert(entry.call.nr, entry.call.name());
        assert_eq!(before, None, "{} is in the table twice", entry.call.name());
    }
    let numbers: BTreeSet<u32> = seen.into_keys().collect();
    assert_eq!(numbers, (0..=336).chain(424..=469).collect());
}

#[test]
fn every_difference_between_profiles_is_one() {
    let base = table(Profile::Payload);
    for (groups, profile) in [(table::INIT, Profile::Init), (table::ONE_ID, Profile::PayloadOneId)] {
        let changed = table(profile).iter().zip(&base).filter(|(a, b)| a.action != b.action).count();
        assert_eq!(changed, table::entries(groups).count(), "{profile:?}");
    }
}

/// A part of a rule without which it says the same for all arguments is a part that does not do what it was
/// written for.
#[test]
fn no_part_of_a_rule_is_redundant() {
    for profile in Profile::ALL {
        for (nr, rule) in rules(&table(profile)) {
            let args = rule.interesting_args();
            for simpler in rule.simplified() {
                let differs = args.iter().any(|args| rule.verdict(args) != simpler.verdict(args));
                assert!(differs, "{profile:?} {nr}: {rule:?} says no more than {simpler:?}");
            }
        }
    }
}

#[test]
fn programs_are_short_and_shallow() {
    for profile in Profile::ALL {
        let code = profile.program().as_slice();
        let depth = numbers().map(|nr| run(code, &Data::native(nr, [0; 6])).1).max();
        assert!(code.len() <= 256, "{profile:?}: {} instructions", code.len());
        assert!(depth <= Some(24), "{profile:?}: {depth:?} deep");
    }
}

/// The golden file shows in a review what a change of the table opens or closes. COFFERDAM_BLESS=1 rewrites
/// it.
#[test]
fn the_table_is_the_golden_one() {
    let payload = describe(Profile::Payload);
    let mut text = format!("# Payload\n{payload}");
    for profile in [Profile::PayloadOneId, Profile::Init] {
        text += &format!("\n# {profile:?}: the same but for\n");
        let table = describe(profile);
        let different = table.lines().filter(|line| !payload.lines().any(|known| known == *line));
        text.extend(different.map(|line| format!("{line}\n")));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/seccomp/golden.txt");
    if std::env::var_os("COFFERDAM_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert!(golden == text, "golden.txt differs; run with COFFERDAM_BLESS=1 and look at the difference");
}

/// The compiled filters are those of the table. COFFERDAM_BLESS=1 rewrites them.
#[test]
fn the_compiled_filters_are_up_to_date() {
    let mut text = String::from(
        "//! The filters as BPF, made from the table by a test (`COFFERDAM_BLESS=1`); not to be edited.\n\n\
         use super::program::Program;\nuse libc::sock_filter;\n\n\
         const fn op(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {\n    sock_filter { code, jt, jf, k }\n}\n",
    );
    let names = ["PAYLOAD", "PAYLOAD_ONE_ID", "INIT"];
    for (profile, name) in Profile::ALL.into_iter().zip(names) {
        text += &format!("\n#[rustfmt::skip]\npub(super) static {name}: Program = Program::compiled(&[\n");
        for f in profile.compile().as_slice() {
            text += &format!("    op({:#04x}, {}, {}, {:#x}),\n", f.code, f.jt, f.jf, f.k);
        }
        text += "]);\n";
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/seccomp/compiled.rs");
    if std::env::var_os("COFFERDAM_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let compiled = std::fs::read_to_string(&path).unwrap();
    assert!(compiled == text, "compiled.rs is not what the table says; run with COFFERDAM_BLESS=1");
}
