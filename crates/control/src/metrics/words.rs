//! Counters by a word. The words are this program's or its operator's, and still there is an end to them.

use cofferdam_telemetry::Counter;
use std::sync::{PoisonError, RwLock};

/// More than there are rules; what comes after is counted as `other`.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Words(RwLock<Vec<(String, Counter)>>);

impl Words {
    pub(crate) fn one(&self, word: &str) {
        let count = |words: &[(String, Counter)], word: &str| {
            let known = words.iter().find(|(known, _)| known == word);
            known.map(|(_, counter)| counter.one()).is_some()
        };
        if count(&self.0.read().unwrap_or_else(PoisonError::into_inner), word) {
            return;
        }
        let mut words = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let word = if words.len() + 1 < MOST { word } else { "other" };
        if !count(&words, word) {
            words.push((word.to_owned(), Counter::default()));
            count(&words, word);
        }
    }

    /// Each word with its count, in order.
    pub(crate) fn read(&self) -> Vec<(String, u64)> {
        let words = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut read: Vec<_> = words.iter().map(|(word, counter)| (word.clone(), counter.get())).collect();
        read.sort();
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_end_to_words() {
        let words = Words::default();
        for i in 0..1000 {
            words.one(&format!("word {i}"));
        }
        let read = words.read();
        assert_eq!(read.len(), MOST);
        assert_eq!(read.iter().map(|(_, count)| count).sum::<u64>(), 1000);
        assert!(read.contains(&("other".to_owned(), 1000 - MOST as u64 + 1)));
    }
}
