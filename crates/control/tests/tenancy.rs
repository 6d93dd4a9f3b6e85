//! How the control plane shares a machine between tenants, with a worker that only waits.

#![allow(clippy::unwrap_used)]

#[path = "tenancy/bed.rs"]
mod bed;
#[path = "tenancy/fairness.rs"]
mod fairness;
#[path = "tenancy/quotas.rs"]
mod quotas;
