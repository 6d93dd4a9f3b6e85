use super::*;
use proptest::prelude::*;

fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    proptest::collection::btree_map("[ab]", "[xy]", 0..3)
}

fn capacity(most: u64) -> impl Strategy<Value = Capacity> {
    (0..=most, 0..=most * 1000, 0..=most * 100).prop_map(|(slots, cpus_millis, memory_bytes)| Capacity {
        slots,
        cpus_millis,
        memory_bytes,
    })
}

fn offer() -> impl Strategy<Value = Offer> {
    let backends = proptest::sample::subsequence(vec!["native".to_owned(), "docker".to_owned()], 0..=2);
    let images = proptest::option::of(proptest::collection::btree_set("[ij]", 0..3));
    (labels(), backends, images, capacity(6)).prop_map(|(labels, backends, images, capacity)| Offer {
        labels,
        backends,
        images,
        capacity,
    })
}

fn demand() -> impl Strategy<Value = Demand> {
    let image = proptest::option::of("[ij]");
    (labels(), "native|docker", image, 1..3000u64, 1..300u64).prop_map(
        |(labels, backend, image, cpus_millis, memory_bytes)| Demand {
            labels,
            backend,
            image,
            cpus_millis,
            memory_bytes,
        },
    )
}

fn workers() -> impl Strategy<Value = Vec<(Offer, Capacity, bool)>> {
    proptest::collection::vec((offer(), capacity(6), any::<bool>()), 0..6)
}

fn candidates(workers: &[(Offer, Capacity, bool)]) -> Vec<Candidate<'_>> {
    workers.iter().map(|(offer, used, is_open)| Candidate { offer, used: *used, is_open: *is_open }).collect()
}

/// The rules once more, one by one and without haste.
fn may_have(demand: &Demand, worker: &Candidate<'_>) -> bool {
    let all = worker.offer.capacity;
    let labels = demand.labels.iter().all(|(name, value)| worker.offer.labels.get(name) == Some(value));
    let backend = worker.offer.backends.contains(&demand.backend);
    let image = match (&demand.image, &worker.offer.images) {
        (Some(wanted), Some(there)) => there.contains(wanted),
        _ => true,
    };
    let slots = worker.used.slots < all.slots;
    let cpus = worker.used.cpus_millis + demand.cpus_millis <= all.cpus_millis;
    let memory = worker.used.memory_bytes + demand.memory_bytes <= all.memory_bytes;
    worker.is_open && labels && backend && image && slots && cpus && memory
}

proptest! {
    #[test]
    fn a_job_goes_where_it_may_and_somewhere_if_it_may(demand in demand(), workers in workers()) {
        let workers = candidates(&workers);
        match place(&demand, &workers) {
            Some(at) => prop_assert!(may_have(&demand, &workers[at])),
            None => prop_assert!(!workers.iter().any(|worker| may_have(&demand, worker))),
        }
    }

    /// However many come, in whatever order, nobody has more than it offers.
    #[test]
    fn nobody_is_given_more_than_it_has(
        demands in proptest::collection::vec(demand(), 0..80),
        offers in proptest::collection::vec(offer(), 1..4),
    ) {
        let nothing = Capacity { slots: 0, cpus_millis: 0, memory_bytes: 0 };
        let mut workers: Vec<_> = offers.into_iter().map(|offer| (offer, nothing, true)).collect();
        for demand in demands {
            let Some(at) = place(&demand, &candidates(&workers)) else { continue };
            let used = &mut workers[at].1;
            used.slots += 1;
            used.cpus_millis += demand.cpus_millis;
            used.memory_bytes += demand.memory_bytes;
        }
        for (offer, used, _) in &workers {
            let all = offer.capacity;
            prop_assert!(used.slots <= all.slots);
            prop_assert!(used.cpus_millis <= all.cpus_millis && used.memory_bytes <= all.memory_bytes);
        }
    }

    #[test]
    fn what_can_be_placed_could_be(demand in demand(), workers in workers()) {
        let workers = candidates(&workers);
        if place(&demand, &workers).is_some() {
            prop_assert!(could_place(&demand, &workers));
        }
    }
}

#[test]
fn equals_share_the_work() {
    let capacity = Capacity { slots: 8, cpus_millis: 8000, memory_bytes: 800 };
    let offer =
        Offer { labels: BTreeMap::new(), backends: vec!["native".to_owned()], images: None, capacity };
    let used = |slots| Capacity { slots, cpus_millis: slots * 1000, memory_bytes: slots * 10 };
    let demand =
        Demand { backend: "native".to_owned(), cpus_millis: 1000, memory_bytes: 10, ..Demand::default() };
    let worker = |slots| Candidate { offer: &offer, used: used(slots), is_open: true };
    assert_eq!(place(&demand, &[worker(3), worker(1), worker(2)]), Some(1));
    assert_eq!(place(&demand, &[worker(2), worker(2)]), Some(0));
    assert_eq!(place(&demand, &[worker(8), worker(8)]), None);
}
