//! Colours: only on a terminal, and not where NO_COLOR asks for none.

use std::io::IsTerminal;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Colours {
    on: bool,
}

impl Colours {
    pub(crate) fn for_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self { on: !unwanted && !dumb && std::io::stdout().is_terminal() }
    }

    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { on: false }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_escape_codes_or_nothing() {
        assert_eq!(Colours { on: true }.red("x"), "\x1b[31mx\x1b[0m");
        assert_eq!(Colours::none().bold("x"), "x");
    }
}
