//! Where a job goes. Pure: what is known of the workers goes in, the place of one of them comes out.

use crate::worker::{Capacity, Offer};
use std::collections::BTreeMap;

/// What a job wants of a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) backend: String,
    /// The image of a worker's store that it needs, by its digest.
    pub(crate) image: Option<String>,
    pub(crate) cpus_millis: u64,
    pub(crate) memory_bytes: u64,
}

/// A worker, as far as it matters here.
#[derive(Debug, Clone)]
pub(crate) struct Candidate<'w> {
    pub(crate) offer: &'w Offer,
    /// What is given out of its capacity.
    pub(crate) used: Capacity,
    /// Whether it takes new work now.
    pub(crate) is_open: bool,
}

impl Candidate<'_> {
    /// Whether it could ever run the job: by its labels, its backends, its images and all that it has.
    fn suits(&self, demand: &Demand) -> bool {
        let Offer { labels, backends, images, capacity } = self.offer;
        let has_image = |image: &String| images.as_ref().is_none_or(|images| images.contains(image));
        let has_label = |(name, value): (&String, &String)| labels.get(name) == Some(value);
        demand.labels.iter().all(has_label)
            && backends.contains(&demand.backend)
            && demand.image.as_ref().is_none_or(has_image)
            && capacity.slots > 0
            && demand.cpus_millis <= capacity.cpus_millis
            && demand.memory_bytes <= capacity.memory_bytes
    }

    /// Whether what is left of it is enough now.
    fn has_room(&self, demand: &Demand) -> bool {
        let (all, used) = (self.offer.capacity, self.used);
        used.slots < all.slots
            && used.cpus_millis.saturating_add(demand.cpus_millis) <= all.cpus_millis
            && used.memory_bytes.saturating_add(demand.memory_bytes) <= all.memory_bytes
    }

    /// How full it would be with the job, by whatever would be fullest, in thousandths.
    fn fullness(&self, demand: &Demand) -> u128 {
        let part = |used: u64, more: u64, all: u64| {
            (u128::from(used) + u128::from(more)) * 1000 / u128::from(all).max(1)
        };
        let (all, used) = (self.offer.capacity, self.used);
        part(used.slots, 1, all.slots)
            .max(part(used.cpus_millis, demand.cpus_millis, all.cpus_millis))
            .max(part(used.memory_bytes, demand.memory_bytes, all.memory_bytes))
    }
}

/// The worker that a job goes to: of those that suit and have room, the one that it leaves emptiest, the first of
/// equals.
pub(crate) fn place(demand: &Demand, workers: &[Candidate<'_>]) -> Option<usize> {
    let fit = |worker: &Candidate<'_>| worker.is_open && worker.suits(demand) && worker.has_room(demand);
    let places = workers.iter().enumerate().filter(|(_, worker)| fit(worker));
    places.min_by_key(|(_, worker)| worker.fullness(demand)).map(|(at, _)| at)
}

/// Whether any of the workers could ever run a job, if it had nothing else to do.
pub(crate) fn could_place(demand: &Demand, workers: &[Candidate<'_>]) -> bool {
    workers.iter().any(|worker| worker.suits(demand))
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
