//! Tables that fit a terminal. What is in them came from elsewhere: nothing in it may move a cursor.

use crate::host::colour::Colours;

/// Fits the narrowest terminal that people still use for tables like this.
const WIDTH: usize = 100;

const GAP: &str = "  ";

/// How a cell is coloured, by what it says.
pub(in crate::commands) type Paint = fn(Colours, &str) -> String;

/// Rows under a heading. The last column gives way when there is too little room, and ends in an ellipsis.
pub(in crate::commands) fn table(
    head: &[&str],
    rows: &[Vec<String>],
    colours: Colours,
    paint: Paint,
) -> String {
    let plain: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
    let widths = widths(head, &plain);
    let mut text = String::new();
    let cells: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    line(&mut text, &cells, &widths, |cell| colours.bold(cell));
    for row in &plain {
        line(&mut text, row, &widths, |cell| paint(colours, cell));
    }
    text
}

fn widths(head: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..head.len()).map(widest).collect();
    if let Some((last, before)) = widths.split_last_mut() {
        let taken: usize = before.iter().map(|width| width + GAP.len()).sum();
        *last = (*last).min(WIDTH.saturating_sub(taken).max(8));
    }
    widths
}

fn line(text: &mut String, cells: &[String], widths: &[usize], paint: impl Fn(&str) -> String) {
    let mut written = String::new();
    for (i, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        let cell = cut(cell, width);
        let rest = width.saturating_sub(cell.chars().count());
        written.push_str(&paint(&cell));
        if i + 1 < cells.len() {
            written.push_str(&" ".repeat(rest));
            written.push_str(GAP);
        }
    }
    text.push_str(written.trim_end());
    text.push('\n');
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Control characters as they would be typed.
pub(in crate::commands) fn one_line(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// The name of a state in its colour.
pub(in crate::commands) fn by_state(colours: Colours, text: &str) -> String {
    match text {
        "succeeded" => colours.green(text),
        "failed" | "errored" | "lost" | "denied" => colours.red(text),
        "timed_out" | "cancelled" | "expired" | "revoked" => colours.yellow(text),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_a_terminal_and_nothing_hostile_is_printed() {
        let rows =
            vec![vec!["job-1".to_owned(), "failed".to_owned(), "a\n\x1b[2J".to_owned() + &"x".repeat(300)]];
        let text = table(&["ID", "STATE", "MESSAGE"], &rows, Colours::none(), by_state);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("a\\n\\u{1b}[2J") && text.ends_with("x…\n"), "{text}");
    }
}
