//! A made-up machine on which jobs begin and end as the choice says.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, Clone)]
struct Job {
    id: String,
    memory: u64,
    ticks: u64,
}

struct Machine {
    capacity: Amount,
    used: Amount,
    fairness: Fairness,
    queues: BTreeMap<String, VecDeque<Job>>,
    running: Vec<(String, Job, Ticket, u64)>,
    now: u64,
    /// When each job began.
    began: HashMap<String, u64>,
    starts: u64,
}

impl Machine {
    fn new(slots: u64, memory: u64) -> Self {
        Self {
            capacity: Amount { slots, cpus_millis: 0, memory_bytes: memory },
            used: Amount::default(),
            fairness: Fairness::default(),
            queues: BTreeMap::new(),
            running: Vec::new(),
            now: 0,
            began: HashMap::new(),
            starts: 0,
        }
    }

    fn submit(&mut self, tenant: &str, memory: u64, ticks: u64) -> String {
        let queue = self.queues.entry(tenant.to_owned()).or_default();
        let id = format!("{tenant}-{}-{}", self.now, queue.len());
        queue.push_back(Job { id: id.clone(), memory, ticks });
        id
    }

    fn waiting(&self) -> Vec<Waiting> {
        let heads = self.queues.iter().filter_map(|(tenant, queue)| Some((tenant, queue.front()?)));
        heads
            .map(|(tenant, job)| Waiting {
                tenant: tenant.clone(),
                job: job.id.clone(),
                needs: Amount::job(0, job.memory),
                running: self
                    .running
                    .iter()
                    .filter(|(owner, ..)| owner == tenant)
                    .fold(Amount::default(), |sum, (_, job, ..)| sum.plus(Amount::job(0, job.memory))),
            })
            .collect()
    }

    /// Starts what can be started.
    fn dispatch(&mut self) {
        loop {
            let waiting = self.waiting();
            self.fairness.keep_only(&waiting);
            let mut passed = Vec::new();
            let mut started = false;
            for at in self.fairness.order(self.capacity, &waiting) {
                let next = &waiting[at];
                let has_room = self.used.plus(next.needs).fits(self.capacity);
                if has_room && self.fairness.may_start(self.capacity, &next.job, next.needs) {
                    let job = self.queues.get_mut(&next.tenant).and_then(VecDeque::pop_front).unwrap();
                    let ticket = self.fairness.started(&next.tenant, &next.job, next.needs);
                    self.used = self.used.plus(next.needs);
                    self.began.insert(job.id.clone(), self.now);
                    self.starts += 1;
                    self.running.push((next.tenant.clone(), job.clone(), ticket, self.now + job.ticks));
                    started = true;
                    break;
                }
                passed.push(next.clone());
            }
            if !started {
                return;
            }
            passed.iter().for_each(|job| self.fairness.passed_over(job));
        }
    }

    fn tick(&mut self) {
        self.dispatch();
        assert!(self.used.fits(self.capacity), "{:?} of {:?}", self.used, self.capacity);
        self.now += 1;
        let (ended, running) =
            std::mem::take(&mut self.running).into_iter().partition(|(.., end)| *end <= self.now);
        self.running = running;
        let ended: Vec<(String, Job, Ticket, u64)> = ended;
        for (_, job, ticket, _) in ended {
            self.used = self.used.minus(Amount::job(0, job.memory));
            self.fairness.ended(ticket);
        }
        self.dispatch();
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.queues.values().all(VecDeque::is_empty)
    }
}

#[test]
fn thousands_of_one_tenant_delay_another_by_one_job() {
    let mut machine = Machine::new(4, 1000);
    for _ in 0..5000 {
        machine.submit("many", 10, 10);
    }
    for _ in 0..25 {
        machine.tick();
    }
    let at = machine.now;
    let job = machine.submit("one", 10, 10);
    while !machine.began.contains_key(&job) {
        machine.tick();
    }
    assert!(machine.began[&job] - at <= 10, "it waited for {} ticks", machine.began[&job] - at);
}

#[test]
fn tenants_that_all_want_everything_have_the_same() {
    let mut machine = Machine::new(6, 1000);
    for tenant in ["a", "b", "c"] {
        for _ in 0..1000 {
            machine.submit(tenant, 1, 7);
        }
    }
    for _ in 0..200 {
        machine.tick();
    }
    let left: Vec<usize> = machine.queues.values().map(VecDeque::len).collect();
    let (least, most) = (left.iter().min().unwrap(), left.iter().max().unwrap());
    assert!(most - least <= 2, "{left:?}");
}

/// A job that needs the whole machine, while small ones keep coming.
#[test]
fn a_large_job_starts_though_small_ones_never_stop() {
    let mut machine = Machine::new(8, 100);
    for _ in 0..2 {
        for tenant in ["a", "b", "c"] {
            for _ in 0..20 {
                machine.submit(tenant, 10, 3);
            }
        }
        machine.tick();
    }
    let large = machine.submit("large", 100, 5);
    let mut ticks = 0;
    while !machine.began.contains_key(&large) {
        machine.submit("a", 10, 3);
        machine.submit("b", 10, 3);
        machine.submit("c", 10, 3);
        machine.tick();
        ticks += 1;
        assert!(ticks < 50, "it starves");
    }
}

/// A job that needs most of the machine leaves the rest to others meanwhile.
#[test]
fn a_large_job_does_not_block_small_ones_of_others() {
    let mut machine = Machine::new(8, 100);
    // Half of the memory is taken for long, so the large one cannot start.
    machine.submit("long", 50, 1000);
    machine.tick();
    machine.submit("large", 80, 5);
    for _ in 0..200 {
        machine.submit("small", 10, 2);
    }
    for _ in 0..300 {
        machine.tick();
    }
    let left = machine.queues["small"].len();
    assert!(left < 20, "{left} of 200 small ones still wait");
    assert_eq!(machine.queues["large"].len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever comes, nothing is overfilled (asserted at each tick), everything starts, and in its tenant's order.
    #[test]
    fn everything_starts_in_the_end(
        jobs in proptest::collection::vec((0u8..5, 1u64..=100, 1u64..20, 0u64..3), 1..120),
        slots in 1u64..6,
    ) {
        let mut machine = Machine::new(slots, 100);
        let mut ids: HashMap<String, Vec<String>> = HashMap::new();
        for (tenant, memory, ticks, pause) in &jobs {
            let tenant = format!("t{tenant}");
            let id = machine.submit(&tenant, *memory, *ticks);
            ids.entry(tenant).or_default().push(id);
            for _ in 0..*pause {
                machine.tick();
            }
        }
        let total: u64 = jobs.iter().map(|(_, _, ticks, _)| ticks + 1).sum();
        for _ in 0..=total {
            machine.tick();
        }
        prop_assert!(machine.is_idle(), "{} wait", machine.queues.values().map(VecDeque::len).sum::<usize>());
        for ids in ids.values() {
            for pair in ids.windows(2) {
                prop_assert!(machine.began[&pair[0]] <= machine.began[&pair[1]]);
            }
        }
    }

    /// With jobs of one size, whoever has nothing running is next when anything ends.
    #[test]
    fn a_first_job_waits_for_one_end(
        others in proptest::collection::vec((1usize..40, 1u64..10), 1..6),
        slots in 1u64..5,
        after in 0u64..30,
    ) {
        let mut machine = Machine::new(slots, 1000);
        for (at, (count, ticks)) in others.iter().enumerate() {
            for _ in 0..*count {
                machine.submit(&format!("t{at}"), 1, *ticks);
            }
        }
        for _ in 0..after {
            machine.tick();
        }
        let first = machine.submit("new", 1, 1);
        let (at, before) = (machine.now, machine.starts);
        while !machine.began.contains_key(&first) {
            machine.tick();
            prop_assert!(machine.now - at <= 10, "it waits");
        }
        // Others with nothing running may be as near to their turn, but each only once; and in its own tick the
        // slots are filled twice, before and after what ends in it.
        prop_assert!(machine.starts - before <= others.len() as u64 + 2 * slots);
    }
}
