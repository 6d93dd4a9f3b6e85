//! The room that each session takes of its worker, for as long as it lives.

use crate::dispatch::Room;
use crate::output_log::MAX_BYTES;
use cofferdam_artifacts::ObjectKey;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(crate) struct Rooms {
    taken: Mutex<HashMap<String, Taken>>,
}

struct Taken {
    room: Room,
    /// How much of each stream of a step is kept.
    output_bytes: usize,
    /// Of what its steps are and write.
    key: Option<ObjectKey>,
}

impl Rooms {
    fn taken(&self) -> MutexGuard<'_, HashMap<String, Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, id: &str, room: Room, output_bytes: Option<u64>) {
        let output_bytes = output_bytes.map_or(MAX_BYTES, |bytes| MAX_BYTES.min(bytes as usize));
        self.taken().insert(id.to_owned(), Taken { room, output_bytes, key: None });
    }

    pub(crate) fn put_key(&self, id: &str, key: ObjectKey) {
        if let Some(taken) = self.taken().get_mut(id) {
            taken.key = Some(key);
        }
    }

    pub(crate) fn key(&self, id: &str) -> Option<ObjectKey> {
        self.taken().get(id).and_then(|taken| taken.key.clone())
    }

    pub(crate) fn output_bytes(&self, id: &str) -> Option<usize> {
        self.taken().get(id).map(|taken| taken.output_bytes)
    }

    /// Gives a session's room back.
    pub(crate) fn free(&self, id: &str) {
        // Dropped outside of the lock: it tells others that there is room.
        let taken = self.taken().remove(id);
        drop(taken.map(|taken| taken.room));
    }

    /// Gives a session's room on one worker back.
    pub(crate) fn free_of(&self, id: &str, worker: &str) {
        let taken = {
            let mut all = self.taken();
            let is_there = all.get(id).is_some_and(|taken| taken.room.at.worker_id == worker);
            if is_there { all.remove(id) } else { None }
        };
        drop(taken.map(|taken| taken.room));
    }

    /// The sessions that were placed by this process, each with its worker.
    pub(crate) fn places(&self) -> Vec<(String, String)> {
        let place = |(id, taken): (&String, &Taken)| (id.clone(), taken.room.at.worker_id.clone());
        self.taken().iter().map(place).collect()
    }
}
