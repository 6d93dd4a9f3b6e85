//! The filesystem of a disk is gone with its sandbox, so it does nothing for the sake of a crash.

use cofferdam_backend::Backend;
use cofferdam_backend::conformance::run_case;
use cofferdam_backend::conformance::support::{MIB, sandbox_on_disk, sh_ok};

/// What takes time and would only be of use afterwards.
const LEFT_OUT: [&str; 2] = ["nobarrier", "noauto_da_alloc"];

#[test]
fn nothing_is_written_out_for_the_time_after_a_crash() {
    run_case("after_a_crash", &[], crate::make_backend, async |backend: &dyn Backend| {
        let Some(sandbox) = sandbox_on_disk(backend, 64 * MIB, 64 * MIB).await else { return };
        let mount = sh_ok(&*sandbox, "grep ' /workspace ' /proc/self/mounts").await;
        let options: Vec<_> = mount.split([' ', ',']).collect();
        assert!(LEFT_OUT.iter().all(|option| options.contains(option)), "{mount}");
    });
}
