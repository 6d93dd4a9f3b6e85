//! Kernels in sandboxes of the native backend.

#[path = "kernels/bash.rs"]
mod bash;
#[path = "kernels/node.rs"]
mod node;
#[path = "kernels/python.rs"]
mod python;
#[path = "kernels/support.rs"]
mod support;
#[path = "kernels/warm.rs"]
mod warm;
