//! Programs that are killed while they bring a store up to date: the next one does the rest.

use crate::bed::{Bed, new_job};
use crate::upgrade::{TENANT, job, version_1};
use cofferdam_store::{Location, NewJob, Store};
use sqlx::Row;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Tells the other process which store to open.
const WHICH: &str = "COFFERDAM_TEST_OPEN_STORE";

/// Kills at as many moments of a migration, at least.
const KILLS: u32 = 12;

fn address(location: &Location) -> String {
    match location {
        Location::Sqlite(path) => path.display().to_string(),
        Location::Postgres(address) => address.clone(),
    }
}

/// The other process: this program again, with this test alone. By itself it has nothing to open.
#[test]
fn the_other_process() {
    let Ok(address) = std::env::var(WHICH) else { return };
    let location = match address.starts_with("postgres:") {
        true => Location::Postgres(address),
        false => Location::Sqlite(address.into()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    println!("\nbegins");
    let store = runtime.block_on(Store::open(&location)).unwrap();
    println!("\nended");
    runtime.block_on(store.close());
}

/// Starts it, and waits until it begins.
fn start(bed: &Bed) -> (Child, BufReader<impl Read>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed::the_other_process", "--nocapture"]).env(WHICH, address(&bed.location));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    wait_for(&mut lines, "begins");
    (child, lines)
}

fn wait_for(lines: &mut impl BufRead, word: &str) {
    let mut line = String::new();
    while line.trim() != word {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "it ended before it said {word:?}");
    }
}

/// The steps that were taken.
async fn steps(bed: &Bed) -> Vec<i64> {
    let mut raw = bed.raw().await;
    let rows =
        sqlx::query("SELECT version FROM schema_version ORDER BY 1").fetch_all(&mut raw).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn another(bed: &Bed) -> Bed {
    match &bed.location {
        Location::Sqlite(_) => Bed::sqlite(),
        Location::Postgres(_) => Bed::postgres().await,
    }
}

pub(crate) async fn a_migration_that_was_killed_is_finished_by_the_next(bed: Bed) {
    version_1(&bed).await;
    let began = Instant::now();
    let (mut child, mut lines) = start(&bed);
    wait_for(&mut lines, "ended");
    let whole = began.elapsed();
    assert!(child.wait().unwrap().success());
    let all = steps(&bed).await;
    let (mut kills, mut halfway) = (0, 0);
    // On a machine that is busy the moments differ: then there are more of them.
    while kills < KILLS || (halfway == 0 && kills < 10 * KILLS) {
        let bed = another(&bed).await;
        version_1(&bed).await;
        let (mut child, _lines) = start(&bed);
        tokio::time::sleep(
            whole.mul_f64(f64::from(kills % KILLS) / f64::from(KILLS)).min(Duration::from_secs(2)),
        )
        .await;
        child.kill().unwrap();
        child.wait().unwrap();
        let taken = steps(&bed).await;
        assert!(all.starts_with(&taken), "{taken:?} are not the first of {all:?}");
        halfway += u32::from(taken.len() > 1 && taken.len() < all.len());
        let store = Store::open(&bed.location).await.unwrap();
        assert!(store.job(TENANT, &job('a')).await.unwrap().is_some(), "what was there is there");
        let new = NewJob { tenant: TENANT.to_owned(), ..new_job("job-after") };
        store.accept(new, None, None, Vec::new()).await.unwrap();
        store.close().await;
        assert_eq!(steps(&bed).await, all);
        kills += 1;
    }
    assert!(halfway > 0, "no kill came between two steps");
}
