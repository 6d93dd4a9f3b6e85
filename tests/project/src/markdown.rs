//! As much of Markdown as the tests of the documents need.

/// A fenced block of code.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    pub language: String,
    /// The line of its first fence, counted from 1.
    pub line: usize,
    pub text: String,
}

/// The fenced blocks of a document. One that is not closed ends with it.
pub fn blocks(document: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (i, line) in document.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(language)) => {
                let language = language.trim().to_owned();
                open = Some(Block { language, line: i + 1, text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks.extend(open);
    blocks
}

/// The lines outside of fenced blocks, with their numbers.
pub fn prose(document: &str) -> Vec<(usize, &str)> {
    let mut inside = false;
    let mut lines = Vec::new();
    for (i, line) in document.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            lines.push((i + 1, line));
        }
    }
    lines
}

/// The spans of a line that stand between backticks.
pub fn spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// The targets of the links of a line. What stands between backticks is no link.
pub fn links(line: &str) -> Vec<String> {
    let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
    let mut targets = Vec::new();
    for rest in plain.split("](").skip(1) {
        if let Some((target, _)) = rest.split_once(')') {
            targets.push(target.trim().to_owned());
        }
    }
    if let Some((label, target)) = plain.split_once("]: ")
        && label.starts_with('[')
    {
        targets.push(target.trim().to_owned());
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_language_and_line() {
        let found = blocks("a\n```sh\necho 1\n\necho 2\n```\n```text\nx\n```\n```\nopen");
        let seen: Vec<_> = found.iter().map(|b| (b.language.as_str(), b.line, b.text.as_str())).collect();
        assert_eq!(seen, [("sh", 2, "echo 1\n\necho 2\n"), ("text", 7, "x\n"), ("", 10, "open\n")]);
    }

    #[test]
    fn links_and_spans_are_told_apart() {
        assert_eq!(links("see [a](b.md#c) and `[d](e)` and [f](g)"), ["b.md#c", "g"]);
        assert_eq!(links("[x]: y.md"), ["y.md"]);
        assert_eq!(spans("`a` b `c d`"), ["a", "c d"]);
        assert_eq!(prose("a\n```\nb\n```\nc"), [(1, "a"), (5, "c")]);
    }
}
