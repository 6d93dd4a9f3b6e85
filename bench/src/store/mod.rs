//! A store after a long life beside one that is almost empty: the same questions, one after the other.
//!
//! The small one has just enough to fill a page of every answer. With nothing in it a list would have nothing to
//! read, and the comparison nothing to say.

mod engines;
mod postgres;
mod questions;

use std::time::Instant;

use serde::Serialize;

use cofferdam_store::Store;
use cofferdam_store::bulk::{Bulk, fill};

use crate::args::Plan;
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::stats::{Statistic, Summary};
use crate::workplace::Workplace;
pub(crate) use engines::Engine;
use engines::Place;
use questions::{Asker, QUESTIONS, TENANT};

pub(crate) const STORE: &str = "store";

/// As good as empty.
const SMALL_JOBS: u64 = 1_000;

/// Of each job: accepted, running, finished, and what was read of it.
const EVENTS_FOR_EACH: u64 = 10;

/// More than a page.
const RARE_JOBS: u64 = 100;

/// Before the clock starts, each question is asked so often.
const WARM_UP: usize = 20;

/// How large a store, and how often it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct StorePlan {
    pub(crate) jobs: u64,
    pub(crate) samples: usize,
}

/// What was found on one engine.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Kept {
    pub(crate) engine: Engine,
    pub(crate) jobs: u64,
    pub(crate) events: u64,
    pub(crate) fill_seconds: f64,
    /// The whole chain of the large one was walked, and holds.
    pub(crate) verified_events: i64,
    pub(crate) rows: Vec<Asked>,
}

/// One question at both.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Asked {
    pub(crate) question: &'static str,
    pub(crate) small: Summary,
    pub(crate) large: Summary,
}

impl Asked {
    pub(crate) fn ratio(&self, statistic: Statistic) -> f64 {
        self.large.get(statistic) as f64 / self.small.get(statistic) as f64
    }
}

impl Kept {
    /// The worst of all questions.
    pub(crate) fn worst(&self, statistic: Statistic) -> Option<f64> {
        self.rows.iter().map(|row| row.ratio(statistic)).reduce(f64::max)
    }
}

pub(crate) fn measure(place: &Workplace, plan: Plan, progress: &mut Progress) -> Result<Vec<Kept>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(error.to_string()))?;
    let mut all = Vec::new();
    for engine in Engine::ALL {
        let place = Place::open(engine, &place.cache(STORE))?;
        all.push(runtime.block_on(one(&place, plan.store, progress))?);
        place.close()?;
    }
    Ok(all)
}

async fn one(place: &Place, plan: StorePlan, progress: &mut Progress) -> Result<Kept> {
    let until = 1_800_000_000_000;
    let bulk = |jobs| Bulk { jobs, events_for_each: EVENTS_FOR_EACH, rare_jobs: RARE_JOBS, until };
    let (small, large) = (bulk(SMALL_JOBS.min(plan.jobs)), bulk(plan.jobs));
    let engine = place.engine();
    let began = Instant::now();
    let mut stores = Vec::new();
    for (name, bulk) in [("small", small), ("large", large)] {
        let location = place.location(name).await?;
        let what = format!("filling {}, {name}", engine.label());
        fill(&location, TENANT, bulk, |done| progress.at(&what, done as usize, bulk.jobs as usize))
            .await
            .map_err(failed)?;
        let store = Store::open(&location).await.map_err(failed)?;
        stores.push(Asker::new(store, bulk));
    }
    let fill_seconds = began.elapsed().as_secs_f64();
    progress.show("walking the chain");
    let verified_events = stores[1].store().verify_audit(TENANT).await.map_err(failed)?;
    let mut rows = Vec::new();
    for question in QUESTIONS {
        let what = format!("{}, {}", engine.label(), question.name());
        let mut samples = [Vec::new(), Vec::new()];
        for round in 0..plan.samples + WARM_UP {
            progress.at(&what, round, plan.samples + WARM_UP);
            // In turn, so that what disturbs the one disturbs the other.
            for at in if round.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
                let took = stores[at].ask(question).await.map_err(failed)?;
                if round >= WARM_UP {
                    samples[at].push(took);
                }
            }
        }
        let [small, large] = samples.map(|samples| Summary::of(&samples));
        let (Some(small), Some(large)) = (small, large) else {
            return Err(Failure::new("no samples of the store"));
        };
        rows.push(Asked { question: question.name(), small, large });
    }
    for asker in stores {
        asker.close().await;
    }
    let events = plan.jobs * EVENTS_FOR_EACH;
    Ok(Kept { engine, jobs: plan.jobs, events, fill_seconds, verified_events, rows })
}

fn failed(error: cofferdam_store::StoreError) -> Failure {
    Failure::new(error.to_string())
}
