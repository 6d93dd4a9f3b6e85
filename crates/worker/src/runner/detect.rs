//! Which tool a project is for, told from the names of its files.

use super::tool::{TOOLS, Tool};
use cofferdam_backend::{BackendError, EntryKind, Sandbox};
use cofferdam_core::{GuestPath, JobKind};
use tokio::io::AsyncReadExt;

/// A project's top folder has fewer; what lies beyond is not looked at.
const MAX_ENTRIES: usize = 10_000;

/// Enough of a package.json to find out what it is for.
const MAX_PACKAGE: u64 = 256 << 10;

/// A tool, and the file that speaks for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Detected {
    pub(super) tool: &'static Tool,
    pub(super) by: String,
    /// For the tool's own command.
    pub(super) args: Vec<String>,
}

/// What speaks for a tool: a file of a name, files of an ending, or files like that in a folder.
enum Sign {
    Name(&'static str),
    /// Begin and end of a name.
    Like(&'static str, &'static str),
    /// The same in a folder, and what the tool has to be told of it.
    In(&'static str, &'static str, &'static str, &'static [&'static str]),
    /// A package.json that names it.
    Package(&'static str),
}

use Sign::{In, Like, Name, Package};

/// The first that fits is taken.
const TEST: [(&str, Sign); 12] = [
    ("cargo", Name("Cargo.toml")),
    ("go", Name("go.mod")),
    ("jest", Package("\"jest\"")),
    ("node", Name("package.json")),
    ("pytest", Name("pytest.ini")),
    ("pytest", Name("conftest.py")),
    ("tap", In("t", "", ".t", &[])),
    ("unittest", Like("test_", ".py")),
    ("unittest", In("tests", "test_", ".py", &["-s", "tests"])),
    ("node", Like("", ".test.js")),
    ("node", Like("", ".test.mjs")),
    ("node", Like("", ".test.cjs")),
];

const BUILD: [(&str, Sign); 9] = [
    ("cargo", Name("Cargo.toml")),
    ("go", Name("go.mod")),
    ("tsc", Name("tsconfig.json")),
    ("make", Name("Makefile")),
    ("make", Name("makefile")),
    ("make", Name("GNUmakefile")),
    ("cc", Like("", ".c")),
    ("javac", Like("", ".java")),
    ("javac", In("src", "", ".java", &[])),
];

/// Looks at the top of a project; none where nothing speaks for a tool.
pub(super) async fn detect(
    sandbox: &dyn Sandbox,
    folder: &GuestPath,
    kind: JobKind,
) -> Result<Option<Detected>, BackendError> {
    let signs: &[(&str, Sign)] = if kind == JobKind::Build { &BUILD } else { &TEST };
    let top = names(sandbox, folder).await?;
    for (tool, sign) in signs {
        let found = match sign {
            Name(name) => top.iter().find(|file| file == name).cloned().map(|by| (by, &[][..])),
            Like(begin, end) => like(&top, begin, end).map(|by| (by, &[][..])),
            In(inner, begin, end, args) => {
                let Ok(path) = folder.join(inner) else { continue };
                let inside = match names(sandbox, &path).await {
                    Ok(inside) => inside,
                    Err(BackendError::NotFound { .. } | BackendError::NotPermitted { .. }) => continue,
                    Err(error) => return Err(error),
                };
                like(&inside, begin, end).map(|name| (format!("{inner}/{name}"), *args))
            }
            Package(word) if top.iter().any(|file| file == "package.json") => {
                let is_named = package(sandbox, folder).await?.contains(word);
                is_named.then(|| ("package.json".to_owned(), &[][..]))
            }
            Package(_) => None,
        };
        if let Some((by, args)) = found
            && let Some(tool) = TOOLS.iter().find(|known| known.name == *tool)
        {
            let args = args.iter().map(|arg| (*arg).to_owned()).collect();
            return Ok(Some(Detected { tool, by, args }));
        }
    }
    Ok(None)
}

/// The plain files of a folder, sorted, as far as their names are text.
async fn names(sandbox: &dyn Sandbox, folder: &GuestPath) -> Result<Vec<String>, BackendError> {
    let entries = sandbox.list_files(folder, MAX_ENTRIES).await?;
    let files = entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
    let mut names: Vec<String> = files.filter_map(|entry| String::from_utf8(entry.name).ok()).collect();
    names.sort();
    Ok(names)
}

fn like(names: &[String], begin: &str, end: &str) -> Option<String> {
    names.iter().find(|name| name.starts_with(begin) && name.ends_with(end)).cloned()
}

async fn package(sandbox: &dyn Sandbox, folder: &GuestPath) -> Result<String, BackendError> {
    let Ok(path) = folder.join("package.json") else { return Ok(String::new()) };
    let mut bytes = Vec::new();
    let read = sandbox.read_file(&path).await?.take(MAX_PACKAGE).read_to_end(&mut bytes).await;
    read.map_err(|error| BackendError::failed(format!("reading {path}"), error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
