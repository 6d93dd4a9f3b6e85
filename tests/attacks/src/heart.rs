//! A neighbour whose heartbeat is watched while others are attacked.

use crate::lab::{Cell, Lab, Wish};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::task::JoinHandle;

/// How often it beats, at most.
const BEAT: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Heart {
    cell: Cell,
    pauses: Arc<Mutex<Pauses>>,
    reader: JoinHandle<()>,
}

#[derive(Debug)]
struct Pauses {
    last: Instant,
    longest: Duration,
}

impl Heart {
    pub(crate) async fn start(lab: &mut Lab) -> Result<Self, String> {
        let cell = lab.cell(&Wish::default()).await.map_err(|e| format!("the neighbour: {e}"))?;
        let process = lab.start(&cell, &["--beat", &BEAT.as_millis().to_string()]).await?;
        let mut stdout = process.take_stdout().ok_or("the neighbour has no stdout")?;
        let pauses = Arc::new(Mutex::new(Pauses { last: Instant::now(), longest: Duration::ZERO }));
        let noted = Arc::clone(&pauses);
        let reader = tokio::spawn(async move {
            let _alive = process;
            let mut buffer = [0; 4096];
            while let Ok(beats @ 1..) = stdout.read(&mut buffer).await {
                let mut pauses = noted.lock().unwrap_or_else(PoisonError::into_inner);
                // Beats that waited in the pipe were made while this program itself was busy.
                let still = pauses.last.elapsed().saturating_sub(BEAT * beats as u32);
                pauses.longest = pauses.longest.max(still);
                pauses.last = Instant::now();
            }
        });
        Ok(Self { cell, pauses, reader })
    }

    pub(crate) fn slot(&self) -> u32 {
        self.cell.slot
    }

    /// The longest pause since it was last asked, up to now; beats that wait to be read are read first.
    pub(crate) async fn longest_pause(&self) -> Duration {
        tokio::time::sleep(BEAT * 2).await;
        let mut pauses = self.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = pauses.longest.max(pauses.last.elapsed());
        pauses.longest = Duration::ZERO;
        longest
    }

    /// Ends the neighbour; the longest pause that there was.
    pub(crate) async fn stop(self) -> Result<Duration, String> {
        let longest = self.longest_pause().await;
        if self.reader.is_finished() {
            return Err("the neighbour died".to_owned());
        }
        self.cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
        let _ = self.reader.await;
        Ok(longest)
    }
}
