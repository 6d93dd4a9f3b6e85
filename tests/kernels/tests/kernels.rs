//! Kernels in sandboxes of the native backend.

#[path = "kernels/python.rs"]
mod python;
#[path = "kernels/support.rs"]
mod support;
