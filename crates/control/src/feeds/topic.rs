//! What many follow at once: the last of it in memory, so that a thousand followers cost the store one read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// So much is kept for followers that are a little late; those that are later read the store.
const RING: usize = 256;

/// How far a topic is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) seq: i64,
    pub(crate) is_ended: bool,
    /// Grows with everything that happens to it.
    changes: u64,
}

/// Something with numbered entries, without gaps in the numbers.
#[derive(Debug)]
pub(crate) struct Topic<T> {
    ring: Mutex<VecDeque<(i64, Arc<T>)>>,
    head: watch::Sender<Head>,
}

impl<T> Topic<T> {
    /// A topic of which everything up to a number lies in the store.
    pub(crate) fn new(seq: i64) -> Self {
        let head = Head { seq, ..Head::default() };
        Self { ring: Mutex::default(), head: watch::Sender::new(head) }
    }

    pub(crate) fn head(&self) -> Head {
        *self.head.borrow()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Head> {
        self.head.subscribe()
    }

    /// Adds entries that are on the disk, in order. Those that are known already are left out.
    pub(crate) fn publish(&self, entries: impl IntoIterator<Item = (i64, T)>) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last = self.head().seq;
        for (seq, entry) in entries {
            if seq <= last {
                continue;
            }
            if seq != last + 1 {
                // What is between is in the store, and followers have to look there.
                ring.clear();
            }
            last = seq;
            ring.push_back((seq, Arc::new(entry)));
            if ring.len() > RING {
                ring.pop_front();
            }
        }
        // The ring first, the news afterwards; both under the lock, so that none goes back.
        self.head.send_modify(|head| {
            head.seq = last;
            head.changes += 1;
        });
    }

    /// Says that nothing more will come.
    pub(crate) fn end(&self) {
        self.head.send_modify(|head| {
            head.is_ended = true;
            head.changes += 1;
        });
    }

    /// The entries after a number. None where they have to be read from the store.
    pub(crate) fn after(&self, seq: i64) -> Option<Vec<Arc<T>>> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let first = ring.front()?.0;
        if first > seq + 1 {
            return None;
        }
        Some(ring.iter().skip((seq + 1 - first) as usize).map(|(_, entry)| Arc::clone(entry)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(topic: &Topic<i64>, after: i64) -> Option<Vec<i64>> {
        topic.after(after).map(|entries| entries.iter().map(|entry| **entry).collect())
    }

    #[test]
    fn entries_are_had_once_and_in_order_or_from_the_store() {
        let topic = Topic::new(10);
        assert_eq!(read(&topic, 10), None, "nothing is known yet");
        topic.publish((9..=12).map(|seq| (seq, seq)));
        assert_eq!(read(&topic, 10), Some(vec![11, 12]));
        assert_eq!(read(&topic, 11), Some(vec![12]));
        assert_eq!(read(&topic, 12), Some(vec![]));
        assert_eq!(read(&topic, 9), None, "10 was never here");
        topic.publish([(20, 20)]);
        assert_eq!(read(&topic, 12), None, "13 to 19 are in the store");
        assert_eq!(read(&topic, 19), Some(vec![20]));
        topic.publish((21..=20 + RING as i64).map(|seq| (seq, seq)));
        assert_eq!(read(&topic, 19), None, "it is too long ago");
        assert_eq!(read(&topic, 20).map(|all| all.len()), Some(RING));
        assert_eq!(topic.head().seq, 20 + RING as i64);
    }
}
