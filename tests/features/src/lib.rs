//! What the scenarios of features/ are run with: a service for each of them, and the words of their steps.

pub mod service;
pub mod tags;
pub mod world;
