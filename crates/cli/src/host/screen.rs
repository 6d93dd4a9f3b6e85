//! What a sandbox writes, on its way to the user's own terminal.
//!
//! A terminal does what it is told: it renames its window, fills the clipboard, prints, and answers questions as if the
//! user had typed. So only what draws is let through: text, and sequences that are known to move, colour or clear.
//! Everything else is dropped whole, from its first byte, and nothing is passed on before it is whole: what reaches the
//! terminal never leaves it in the middle of something.

mod sequences;

use std::collections::BTreeSet;
use std::io::{self, Write};

/// Sequences that draw are shorter. A longer one is dropped.
const MAX_SEQUENCE: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and some of 0x20 to 0x2f.
    Designate,
    /// After ESC [.
    Control,
    /// In what has no length of its own: OSC, DCS, APC, PM, SOS and titles. All of it is dropped.
    String,
    /// After ESC in such.
    StringEscape,
}

/// Takes bytes as they come, in any pieces, and gives those that may be shown.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    state: State,
    /// The sequence, or the letter of several bytes, that is not whole yet.
    held: Vec<u8>,
    /// The bytes that a letter still wants.
    wanted: usize,
    is_too_long: bool,
    /// Modes that were set and not reset: what is left of them at the end is reset.
    modes: BTreeSet<u16>,
    is_changed: bool,
}

impl Screen {
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.take(*byte, &mut out);
        }
        out
    }

    /// What brings the terminal back to how programs expect it. Empty if nothing changed it.
    pub(crate) fn restore(&mut self) -> Vec<u8> {
        *self =
            Self { modes: std::mem::take(&mut self.modes), is_changed: self.is_changed, ..Self::default() };
        if !std::mem::take(&mut self.is_changed) {
            return Vec::new();
        }
        let mut out = Vec::new();
        for mode in std::mem::take(&mut self.modes) {
            // Reset is the usual state of all of these but two.
            let letter = if sequences::IS_USUALLY_SET.contains(&mode) { 'h' } else { 'l' };
            out.extend_from_slice(format!("\x1b[?{mode}{letter}").as_bytes());
        }
        // Colours, the character set, the keypad, inserting; and the scrolling region without moving the cursor.
        out.extend_from_slice(b"\x1b[m\x0f\x1b(B\x1b>\x1b[4l\x1b7\x1b[r\x1b8");
        out
    }

    fn take(&mut self, byte: u8, out: &mut Vec<u8>) {
        // These end whatever there was.
        match byte {
            0x18 | 0x1a => return self.reset(),
            0x1b if matches!(self.state, State::String) => return self.state = State::StringEscape,
            0x1b => {
                self.cut_letter(out);
                self.reset();
                return self.state = State::Escape;
            }
            _ => {}
        }
        match self.state {
            State::Text => self.text(byte, out),
            State::Escape => self.escape(byte, out),
            State::Designate => self.designate(byte, out),
            State::Control => self.control(byte, out),
            State::String => {
                // BEL ends it; the end in one byte is not looked for: in UTF-8 it is a part of letters.
                if byte == 0x07 {
                    self.reset();
                }
            }
            State::StringEscape => match byte {
                b'\\' => self.reset(),
                _ => {
                    self.reset();
                    self.state = State::Escape;
                    self.escape(byte, out);
                }
            },
        }
    }

    fn reset(&mut self) {
        (self.state, self.wanted, self.is_too_long) = (State::Text, 0, false);
        self.held.clear();
    }

    fn text(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.wanted > 0 {
            if byte & 0xc0 == 0x80 {
                self.held.push(byte);
                self.wanted -= 1;
                if self.wanted == 0 {
                    self.letter(out);
                }
                return;
            }
            self.cut_letter(out);
        }
        match byte {
            // BEL, backspace, tab, the ends of lines, and the two that change character sets.
            0x07..=0x0f | 0x20..=0x7e => out.push(byte),
            // Others that control, among them ENQ, which is answered; and DEL.
            0x00..=0x1f | 0x7f => {}
            0xc2..=0xf4 => {
                self.wanted = if byte < 0xe0 { 1 } else { 2 + usize::from(byte >= 0xf0) };
                self.held.push(byte);
            }
            _ => out.extend_from_slice(REPLACEMENT),
        }
    }

    /// A letter of several bytes is whole. In UTF-8, too, there are some that control.
    fn letter(&mut self, out: &mut Vec<u8>) {
        match std::str::from_utf8(&self.held).ok().and_then(|text| text.chars().next()) {
            Some(c) if c.is_control() => {}
            Some(_) => out.extend_from_slice(&self.held),
            None => out.extend_from_slice(REPLACEMENT),
        }
        self.held.clear();
    }

    fn cut_letter(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.wanted) > 0 {
            out.extend_from_slice(REPLACEMENT);
            self.held.clear();
        }
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'[' => self.state = State::Control,
            b']' | b'P' | b'X' | b'^' | b'_' | b'k' => self.state = State::String,
            0x20..=0x2f => {
                self.held.push(byte);
                self.state = State::Designate;
            }
            _ => {
                self.reset();
                if sequences::is_plain_escape(byte) {
                    self.is_changed = true;
                    out.extend_from_slice(&[0x1b, byte]);
                } else if byte >= 0x80 {
                    self.text(byte, out);
                }
            }
        }
    }

    fn designate(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            0x20..=0x2f => self.hold(byte),
            0x30..=0x7e => {
                if !self.is_too_long && sequences::is_designation(&self.held, byte) {
                    self.is_changed = true;
                    out.push(0x1b);
                    out.extend_from_slice(&self.held);
                    out.push(byte);
                }
                self.reset();
            }
            _ => self.reset(),
        }
    }

    fn control(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            0x20..=0x3f => self.hold(byte),
            0x40..=0x7e => {
                let held = std::mem::take(&mut self.held);
                if !self.is_too_long && sequences::is_drawing(&held, byte) {
                    self.is_changed = true;
                    self.note_modes(&held, byte);
                    out.extend_from_slice(b"\x1b[");
                    out.extend_from_slice(&held);
                    out.push(byte);
                }
                self.reset();
            }
            // What a terminal would do in the middle of a sequence is not done.
            0x00..=0x1f | 0x7f => {}
            _ => {
                self.reset();
                self.text(byte, out);
            }
        }
    }

    fn hold(&mut self, byte: u8) {
        if self.held.len() < MAX_SEQUENCE {
            self.held.push(byte);
        } else {
            self.is_too_long = true;
        }
    }

    fn note_modes(&mut self, held: &[u8], last: u8) {
        for mode in sequences::modes(held) {
            let is_usual = sequences::IS_USUALLY_SET.contains(&mode) == (last == b'h');
            match last {
                b'h' | b'l' if is_usual => drop(self.modes.remove(&mode)),
                b'h' | b'l' => drop(self.modes.insert(mode)),
                _ => {}
            }
        }
    }
}

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Writes what may be shown, and brings the terminal back when it goes.
pub(crate) struct Screened<W: Write> {
    inner: W,
    screen: Screen,
}

impl<W: Write> Screened<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, screen: Screen::default() }
    }

    pub(crate) fn restore(&mut self) -> io::Result<()> {
        let last = self.screen.restore();
        self.inner.write_all(&last)?;
        self.inner.flush()
    }
}

impl<W: Write> Write for Screened<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let shown = self.screen.pass(bytes);
        self.inner.write_all(&shown)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Drop for Screened<W> {
    fn drop(&mut self) {
        // A terminal that is gone has nothing to be restored.
        let _ = self.restore();
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
