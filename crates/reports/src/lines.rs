//! Text of a sandbox, made fit to be kept and shown.

use std::borrow::Cow;

pub(crate) const MAX_NAME: usize = 512;
pub(crate) const MAX_MESSAGE: usize = 2048;
pub(crate) const MAX_REASON: usize = 512;

/// Longer lines are nothing that a tool writes for a reader.
pub(crate) const MAX_LINE: usize = 64 << 10;

/// Without the sequences that colour a terminal.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if c != '\x1b' {
            out.push(c);
        } else if characters.peek() == Some(&'[') {
            characters.next();
            // A sequence that has no end is cut at its line's.
            while let Some(&next) = characters.peek() {
                if next == '\n' {
                    break;
                }
                characters.next();
                if ('@'..='~').contains(&next) {
                    break;
                }
            }
        }
    }
    Cow::Owned(out)
}

/// The lines of a text without their ends; of one that is too long, the first of it.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|line| cut(line, MAX_LINE))
}

/// The first bytes of a text, to the end of a character.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let end = (0..=max).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    &text[..end]
}

/// A text of at most so many bytes, without what would move a cursor. Lines stay lines.
pub(crate) fn clean(text: &str, max: usize) -> String {
    const MORE: &str = " …";
    let text = text.trim_end();
    let kept = if text.len() <= max { text } else { cut(text, max - MORE.len()) };
    let hostile = |c: char| c.is_control() && c != '\n' && c != '\t';
    let mut out: String = kept.chars().map(|c| if hostile(c) { '\u{fffd}' } else { c }).collect();
    if kept.len() < text.len() {
        out.push_str(MORE);
    }
    out
}

/// The text between two marks at its ends.
pub(crate) fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    text.strip_prefix(before)?.strip_suffix(after)
}

/// Lines of a message, kept up to what of a message is kept.
#[derive(Debug, Default)]
pub(crate) struct Message(String);

impl Message {
    pub(crate) fn line(&mut self, line: &str) {
        if self.0.len() <= MAX_MESSAGE {
            if !self.0.is_empty() {
                self.0.push('\n');
            }
            self.0.push_str(cut(line, MAX_MESSAGE));
        }
    }

    /// More of the same line.
    pub(crate) fn piece(&mut self, text: &str) {
        if self.0.len() <= MAX_MESSAGE {
            self.0.push_str(cut(text, MAX_MESSAGE));
        }
    }

    pub(crate) fn take(&mut self) -> Option<String> {
        let text = std::mem::take(&mut self.0);
        (!text.trim().is_empty()).then(|| text.trim_matches('\n').to_owned())
    }
}
