//! How a file differs from what was expected, as a unified diff that a person can read, and bounded in every way: both
//! sides may be hostile.

use crate::lines::{clean, cut};
use std::fmt::Write;

/// Edits that are looked for before two texts are said to differ as a whole. The work grows with its square.
const MAX_EDITS: usize = 1000;

const CONTEXT: usize = 3;

/// Of the whole diff, and of one line of it.
const MAX_DIFF: usize = 32 << 10;
const MAX_LINE: usize = 400;

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub diff: String,
    pub is_truncated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep,
    Remove,
    Add,
}

/// The difference from what was expected to what is there; none where they are the same bytes.
pub fn difference(path: &str, expected: &[u8], found: &[u8]) -> Option<Difference> {
    if expected == found {
        return None;
    }
    let (Ok(old), Ok(new)) = (std::str::from_utf8(expected), std::str::from_utf8(found)) else {
        let at = expected.iter().zip(found).take_while(|(a, b)| a == b).count();
        let (a, b) = (expected.len(), found.len());
        let diff = format!(
            "they are not text: {a} bytes were expected, {b} are there, and byte {at} is the first that differs\n"
        );
        return Some(Difference { diff, is_truncated: false });
    };
    let (old, new) = (split(old), split(new));
    let path = clean(path, MAX_LINE);
    let mut text = format!("--- expected/{path}\n+++ found/{path}\n");
    let is_truncated = write(&mut text, &old, &new);
    Some(Difference { diff: text, is_truncated })
}

/// The lines with their ends, so that a missing last one is seen.
fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Whether it had to stop before the end.
fn write(text: &mut String, old: &[&str], new: &[&str]) -> bool {
    let edits = edits(old, new);
    let changed: Vec<usize> = (0..edits.len()).filter(|&i| edits[i] != Edit::Keep).collect();
    // Where each edit stands in the two texts.
    let mut places = Vec::with_capacity(edits.len() + 1);
    let (mut a, mut b) = (0, 0);
    for edit in &edits {
        places.push((a, b));
        a += usize::from(*edit != Edit::Add);
        b += usize::from(*edit != Edit::Remove);
    }
    places.push((a, b));
    let mut at = 0;
    while at < changed.len() {
        let begin = changed[at].saturating_sub(CONTEXT);
        while at + 1 < changed.len() && changed[at + 1] - changed[at] <= 2 * CONTEXT {
            at += 1;
        }
        let end = (changed[at] + CONTEXT + 1).min(edits.len());
        at += 1;
        let ((a, b), (c, d)) = (places[begin], places[end]);
        let _ = writeln!(text, "@@ -{} +{} @@", range(a, c), range(b, d));
        for i in begin..end {
            let (mark, line) = match edits[i] {
                Edit::Keep => (' ', old[places[i].0]),
                Edit::Remove => ('-', old[places[i].0]),
                Edit::Add => ('+', new[places[i].1]),
            };
            if text.len() > MAX_DIFF {
                return true;
            }
            push_line(text, mark, line);
        }
    }
    false
}

fn range(from: usize, to: usize) -> String {
    let first = if to > from { from + 1 } else { from };
    format!("{first},{}", to - from)
}

fn push_line(text: &mut String, mark: char, line: &str) {
    let (body, has_end) = line.strip_suffix('\n').map_or((line, false), |body| (body, true));
    let (body, is_carriage) = body.strip_suffix('\r').map_or((body, false), |body| (body, true));
    text.push(mark);
    // Spaces at the end of a line are a difference like any other.
    for c in cut(body, MAX_LINE).chars() {
        text.push(if c.is_control() && c != '\t' { '\u{fffd}' } else { c });
    }
    text.push_str(if body.len() > MAX_LINE { " …" } else { "" });
    text.push_str(if is_carriage { "\\r" } else { "" });
    text.push('\n');
    if !has_end {
        text.push_str("\\ No newline at end of file\n");
    }
}

/// The shortest way from one to the other, where it is short; else everything in between goes and comes.
fn edits(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (rest_old, rest_new) = (&old[head..], &new[head..]);
    let tail = rest_old.iter().rev().zip(rest_new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (middle_old, middle_new) = (&rest_old[..rest_old.len() - tail], &rest_new[..rest_new.len() - tail]);
    let middle = shortest(middle_old, middle_new).unwrap_or_else(|| {
        let mut all = vec![Edit::Remove; middle_old.len()];
        all.resize(middle_old.len() + middle_new.len(), Edit::Add);
        all
    });
    let mut all = vec![Edit::Keep; head];
    all.extend(middle);
    all.resize(all.len() + tail, Edit::Keep);
    all
}

/// Myers' algorithm, for as many edits as are looked for.
fn shortest(old: &[&str], new: &[&str]) -> Option<Vec<Edit>> {
    let most = (old.len() + new.len()).min(MAX_EDITS);
    let zero = most + 1;
    let mut reach = vec![0_usize; 2 * most + 3];
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for count in 0..=most {
        trace.push(reach[zero - count..=zero + count].to_vec());
        for k in (0..=2 * count).step_by(2) {
            let at = zero - count + k;
            let is_down = k == 0 || (k != 2 * count && reach[at - 1] < reach[at + 1]);
            let mut x = if is_down { reach[at + 1] } else { reach[at - 1] + 1 };
            let mut y = (x + zero).checked_sub(at)?;
            while x < old.len() && y < new.len() && old[x] == new[y] {
                x += 1;
                y += 1;
            }
            reach[at] = x;
            if x >= old.len() && y >= new.len() {
                return Some(walk_back(&trace, old.len(), new.len()));
            }
        }
    }
    None
}

/// From the end to the begin, by what could be reached with one edit less each time.
fn walk_back(trace: &[Vec<usize>], old: usize, new: usize) -> Vec<Edit> {
    let (mut x, mut y) = (old as isize, new as isize);
    let mut edits = Vec::new();
    for (count, reach) in trace.iter().enumerate().rev() {
        let (k, count) = (x - y, count as isize);
        let at = |k: isize| reach.get((k + count) as usize).copied().unwrap_or(0) as isize;
        let is_down = k == -count || (k != count && at(k - 1) < at(k + 1));
        let before = if is_down { k + 1 } else { k - 1 };
        let (from_x, from_y) = match count {
            0 => (0, 0),
            _ => (at(before), at(before) - before),
        };
        while x > from_x && y > from_y {
            edits.push(Edit::Keep);
            x -= 1;
            y -= 1;
        }
        if count > 0 {
            edits.push(if is_down { Edit::Add } else { Edit::Remove });
            (x, y) = (from_x, from_y);
        }
    }
    edits.reverse();
    edits
}
