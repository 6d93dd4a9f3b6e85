//! Searching the files of a session, by name and by content, for a bounded time and to a bounded count.

use super::{SessionError, Sessions};
use cofferdam_backend::{Entry, EntryKind, Sandbox};
use cofferdam_core::{GuestPath, InvalidValue, SessionId};
use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

/// A search that takes longer has found what it has found.
const MAX_TIME: Duration = Duration::from_secs(10);

/// So many entries are looked at.
const MAX_ENTRIES: usize = 200_000;

const MAX_DEPTH: usize = 64;

/// So much of one file is searched: more is data, and not text.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A line that is longer is searched in pieces.
const MAX_LINE_BYTES: usize = 8 << 10;

/// So much of a line is shown.
const MAX_SHOWN_CHARS: usize = 300;

const PIECE_BYTES: usize = 64 << 10;

/// What a pattern may become. It bounds how long one line can take.
const MAX_PATTERN_BYTES: usize = 256 << 10;

const MAX_PATTERN_TEXT: usize = 1024;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Search {
    name: Option<GlobMatcher>,
    /// A pattern with a slash is of the path, and one without of the last name.
    is_path: bool,
    content: Option<Regex>,
    limit: usize,
}

impl Search {
    pub fn new(
        name: Option<&str>,
        content: Option<&str>,
        ignores_case: bool,
        limit: usize,
    ) -> Result<Self, InvalidValue> {
        if name.is_none() && content.is_none() {
            return Err(InvalidValue::new("name", "", "give name, content, or both"));
        }
        let short = |field, text: &str| match text.len() > MAX_PATTERN_TEXT || text.is_empty() {
            true => Err(InvalidValue::new(field, text, "it must have 1 to 1024 bytes")),
            false => Ok(()),
        };
        let glob = |text: &str| {
            short("name", text)?;
            let glob = GlobBuilder::new(text).literal_separator(true).case_insensitive(ignores_case).build();
            let wrong = |error: globset::Error| InvalidValue::new("name", text, error.kind().to_string());
            glob.map(|glob| glob.compile_matcher()).map_err(wrong)
        };
        let regex = |text: &str| {
            short("content", text)?;
            let mut builder = RegexBuilder::new(text);
            builder
                .case_insensitive(ignores_case)
                .size_limit(MAX_PATTERN_BYTES)
                .dfa_size_limit(MAX_PATTERN_BYTES);
            builder.build().map_err(|error| {
                let error = error.to_string();
                let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                InvalidValue::new("content", text, why)
            })
        };
        Ok(Self {
            name: name.map(glob).transpose()?,
            is_path: name.is_some_and(|text| text.contains('/')),
            content: content.map(regex).transpose()?,
            limit,
        })
    }

    fn has_name(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.name.as_ref().is_none_or(|glob| glob.is_match(if self.is_path { path } else { name }))
    }
}

/// One find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Below the folder that was asked for.
    pub path: String,
    pub kind: EntryKind,
    pub size_bytes: u64,
    /// Its number, from 1, and its text, where content was looked for.
    pub line: Option<(u64, String)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matches {
    pub found: Vec<Match>,
    /// Whether there may be more.
    pub is_cut: bool,
}

impl Sessions {
    pub async fn search_files(
        &self,
        id: &SessionId,
        generation: i64,
        path: &GuestPath,
        search: Search,
    ) -> Result<Matches, SessionError> {
        let live = self.find(id, generation)?;
        let _permit = self.heavy()?;
        let mut run = Run {
            sandbox: &*live.sandbox,
            search: &search,
            deadline: Instant::now() + MAX_TIME,
            matches: Matches::default(),
        };
        run.all(path).await?;
        run.matches.found.sort_by(|a, b| (&a.path, &a.line).cmp(&(&b.path, &b.line)));
        Ok(run.matches)
    }
}

struct Run<'s> {
    sandbox: &'s dyn Sandbox,
    search: &'s Search,
    deadline: Instant,
    matches: Matches,
}

impl Run<'_> {
    fn is_over(&mut self) -> bool {
        self.matches.is_cut |=
            self.matches.found.len() >= self.search.limit || Instant::now() >= self.deadline;
        self.matches.is_cut
    }

    async fn all(&mut self, root: &GuestPath) -> Result<(), SessionError> {
        let mut left = MAX_ENTRIES;
        let mut waiting = vec![(root.clone(), String::new(), 0)];
        while let Some((folder, above, depth)) = waiting.pop() {
            let entries = match self.sandbox.list_files(&folder, left + 1).await {
                Ok(entries) => entries,
                // One that has gone meanwhile, or cannot be looked into, has nothing to be found.
                Err(_) if depth > 0 => continue,
                Err(error) => return Err(error.into()),
            };
            for Entry { name, kind, size_bytes } in entries {
                if self.is_over() {
                    return Ok(());
                }
                let Some(rest) = left.checked_sub(1) else {
                    self.matches.is_cut = true;
                    return Ok(());
                };
                left = rest;
                let name = String::from_utf8_lossy(&name).into_owned();
                let path = if above.is_empty() { name.clone() } else { format!("{above}/{name}") };
                let Ok(inner) = folder.join(&name) else { continue };
                if self.search.has_name(&path) {
                    match &self.search.content {
                        None => self.matches.found.push(Match {
                            path: path.clone(),
                            kind,
                            size_bytes,
                            line: None,
                        }),
                        Some(content) if kind == EntryKind::File => {
                            self.look(&inner, &path, size_bytes, content).await;
                        }
                        Some(_) => {}
                    }
                }
                if kind == EntryKind::Folder && depth < MAX_DEPTH {
                    waiting.push((inner, path, depth + 1));
                }
            }
        }
        Ok(())
    }

    /// Searches one file. What is no text, and what cannot be read, has nothing to be found.
    async fn look(&mut self, file: &GuestPath, path: &str, size_bytes: u64, content: &Regex) {
        let Ok(reader) = self.sandbox.read_file(file).await else { return };
        self.matches.is_cut |= size_bytes > MAX_FILE_BYTES;
        let mut reader = reader.take(MAX_FILE_BYTES);
        let (mut rest, mut number, mut is_first) = (Vec::new(), 1, true);
        loop {
            let mut piece = std::mem::take(&mut rest);
            let read = (&mut reader).take(PIECE_BYTES as u64).read_to_end(&mut piece).await;
            let Ok(read) = read else { return };
            if is_first && piece.iter().take(8 << 10).any(|byte| *byte == 0) {
                return;
            }
            is_first = false;
            let (pattern, most) = (content.clone(), self.search.limit - self.matches.found.len());
            let (deadline, is_last) = (self.deadline, read == 0);
            let found =
                tokio::task::spawn_blocking(move || lines(piece, number, is_last, &pattern, most, deadline));
            let Ok(found) = found.await else { return };
            (rest, number) = (found.rest, found.number);
            let kind = EntryKind::File;
            let found = found.lines.into_iter().map(|line| Match {
                path: path.to_owned(),
                kind,
                size_bytes,
                line: Some(line),
            });
            self.matches.found.extend(found);
            if is_last || self.is_over() {
                return;
            }
        }
    }
}

struct Lines {
    lines: Vec<(u64, String)>,
    /// What may be the beginning of a line.
    rest: Vec<u8>,
    number: u64,
}

fn lines(
    piece: Vec<u8>,
    mut number: u64,
    is_last: bool,
    pattern: &Regex,
    most: usize,
    deadline: Instant,
) -> Lines {
    let mut found = Vec::new();
    let mut left = piece.as_slice();
    while found.len() < most && Instant::now() < deadline {
        let end = left.iter().take(MAX_LINE_BYTES).position(|byte| *byte == b'\n');
        let (line, next, is_whole) = match end {
            Some(end) => (&left[..end], end + 1, true),
            None if left.len() >= MAX_LINE_BYTES => (&left[..MAX_LINE_BYTES], MAX_LINE_BYTES, false),
            None if is_last && !left.is_empty() => (left, left.len(), true),
            None => break,
        };
        if pattern.is_match(line) {
            let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
            found.push((number, text.chars().take(MAX_SHOWN_CHARS).collect()));
        }
        left = &left[next..];
        number += u64::from(is_whole);
    }
    Lines { lines: found, rest: left.to_vec(), number }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, pattern: &str) -> Vec<(u64, String)> {
        let search = Search::new(None, Some(pattern), false, 10).expect("a search");
        let deadline = Instant::now() + MAX_TIME;
        lines(text.as_bytes().to_vec(), 1, true, &search.content.expect("a pattern"), 10, deadline).lines
    }

    #[test]
    fn lines_are_numbered_from_one() {
        assert_eq!(found("a\nb\r\nab", "b"), [(2, "b".to_owned()), (3, "ab".to_owned())]);
        assert_eq!(found("a\n", "^$"), []);
        let long = format!("{}needle\nneedle", "x".repeat(3 * MAX_LINE_BYTES));
        assert_eq!(found(&long, "needle").iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn names_are_globs_of_the_last_name_or_of_the_path() {
        let search = |name: &str| Search::new(Some(name), None, false, 10).expect("a search");
        assert!(search("*.py").has_name("a/b/c.py") && !search("*.py").has_name("a.pyc"));
        assert!(search("a/*.py").has_name("a/c.py") && !search("a/*.py").has_name("a/b/c.py"));
        assert!(search("**/b/*").has_name("a/b/c.py") && search("[ab]?").has_name("b1"));
    }

    #[test]
    fn what_cannot_be_looked_for_is_refused_by_its_field() {
        let wrong = |name: Option<&str>, content: Option<&str>| {
            Search::new(name, content, false, 10).map(drop).expect_err("a refusal").field
        };
        assert_eq!(wrong(None, None), "name");
        assert_eq!(wrong(Some("a[b"), None), "name");
        assert_eq!(wrong(None, Some("a(b")), "content");
        assert_eq!(wrong(None, Some("(a{1,1000}){1,1000}")), "content");
        assert_eq!(wrong(None, Some("")), "content");
    }
}
