//! The numbers of system calls: libc's, and those that it does not name, or not for every architecture.

#![allow(non_upper_case_globals, reason = "spelled as libc spells the others")]

pub(super) use libc::*;

// From 424 on, numbers are the same on all architectures.
pub(super) const SYS_cachestat: c_long = 451;
pub(super) const SYS_fchmodat2: c_long = 452;
pub(super) const SYS_map_shadow_stack: c_long = 453;
pub(super) const SYS_futex_wake: c_long = 454;
pub(super) const SYS_futex_wait: c_long = 455;
pub(super) const SYS_futex_requeue: c_long = 456;
pub(super) const SYS_statmount: c_long = 457;
pub(super) const SYS_listmount: c_long = 458;
pub(super) const SYS_lsm_get_self_attr: c_long = 459;
pub(super) const SYS_lsm_set_self_attr: c_long = 460;
pub(super) const SYS_lsm_list_modules: c_long = 461;
pub(super) const SYS_setxattrat: c_long = 463;
pub(super) const SYS_getxattrat: c_long = 464;
pub(super) const SYS_listxattrat: c_long = 465;
pub(super) const SYS_removexattrat: c_long = 466;
pub(super) const SYS_open_tree_attr: c_long = 467;
pub(super) const SYS_file_getattr: c_long = 468;
pub(super) const SYS_file_setattr: c_long = 469;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use libc::c_long;

    pub(in super::super) const SYS_create_module: c_long = 174;
    pub(in super::super) const SYS_get_kernel_syms: c_long = 177;
    pub(in super::super) const SYS_query_module: c_long = 178;
    pub(in super::super) const SYS_io_pgetevents: c_long = 333;
    pub(in super::super) const SYS_uretprobe: c_long = 335;
    pub(in super::super) const SYS_uprobe: c_long = 336;
}
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{
    SYS_create_module, SYS_get_kernel_syms, SYS_io_pgetevents, SYS_query_module, SYS_uprobe, SYS_uretprobe,
};
