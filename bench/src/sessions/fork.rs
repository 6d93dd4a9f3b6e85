//! A fork beside `cp -a` of the same tree. A session's files are in memory, unless it asks for a disk; so the tree is in
//! memory, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;

use super::SessionPlan;
use super::api::Api;
use crate::beside::Beside;
use crate::failure::{Doing, Failure, Result};
use crate::progress::Progress;

/// What is forked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shape {
    OneFile,
    ManyFiles,
}

impl Shape {
    pub(super) const ALL: [Self; 2] = [Self::OneFile, Self::ManyFiles];

    /// How many files, and their bytes together.
    pub(super) fn tree(self, plan: SessionPlan) -> (u64, u64) {
        let files = match self {
            Self::OneFile => 1,
            Self::ManyFiles => plan.tree_files,
        };
        (files, (plan.tree_mib << 20) / files * files)
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::OneFile => "fork, one file",
            Self::ManyFiles => "fork, many files",
        }
    }
}

/// Where every machine has files in memory.
const MEMORY: &str = "/dev/shm";

pub(super) const TTL_SECONDS: u64 = 3600;

/// Makes `files` files of `bytes` bytes together in the current folder, a hundred to a folder.
pub(super) fn script(files: u64, bytes: u64) -> String {
    format!(
        "import os\n\
         for i in range({files}):\n    \
             os.makedirs('tree/%d' % (i // 100), exist_ok=True)\n    \
             with open('tree/%d/%d' % (i // 100, i), 'wb') as file:\n        \
                 left = {each}\n        \
                 while left:\n            \
                     left -= file.write(os.urandom(min(left, 1 << 20)))\n\
         print({files})\n",
        each = bytes / files
    )
}

/// What there is of a tree, for who wants to know whether it is all of it.
pub(super) const COUNT: &str = "import os\n\
    sizes = [os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk('tree') for name in names]\n\
    print(len(sizes), sum(sizes))\n";

/// A tree outside, which goes with the value.
struct Tree(PathBuf);

impl Tree {
    fn make(script: &str) -> Result<Self> {
        let folder = Path::new(MEMORY).join(format!("cofferdam-bench-{}", std::process::id()));
        fs::create_dir(&folder).doing(format_args!("making {}", folder.display()))?;
        let tree = Self(folder);
        let mut command = Command::new("/usr/bin/python3");
        let output = command.args(["-c", script]).current_dir(&tree.0).output().doing("making a tree")?;
        match output.status.success() {
            true => Ok(tree),
            false => Err(Failure::new(format!("making a tree: {}", String::from_utf8_lossy(&output.stderr)))),
        }
    }

    fn copy(&self) -> Result<Duration> {
        let (from, to) = (self.0.join("tree"), self.0.join("copy"));
        let start = Instant::now();
        let status = Command::new("/bin/cp").arg("-a").args([&from, &to]).status().doing("copying a tree")?;
        let took = start.elapsed();
        fs::remove_dir_all(&to).doing("removing a copy")?;
        if status.success() { Ok(took) } else { Err(Failure::new(format!("cp ended with {status}"))) }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn measure(api: &Api, plan: SessionPlan, progress: &mut Progress) -> Result<Vec<Beside<Shape>>> {
    let shapes = Shape::ALL.into_iter();
    shapes.map(|shape| one(api, shape, plan, progress)).collect()
}

fn one(api: &Api, shape: Shape, plan: SessionPlan, progress: &mut Progress) -> Result<Beside<Shape>> {
    let (files, bytes) = shape.tree(plan);
    progress.show("making a tree");
    let script = script(files, bytes);
    let tree = Tree::make(&script)?;
    let parent = api.create(TTL_SECONDS, json!({}))?.id;
    api.python(&parent, &script, &format!("{files}\n"))?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // The first of each does not count: files come into caches, and the child is looked at.
    for round in 0..=plan.forks {
        progress.at(shape.label(), round, plan.forks);
        let copied = tree.copy()?;
        let (children, forked) = api.fork(&parent)?;
        for child in &children {
            if round == 0 {
                api.python(child, COUNT, &format!("{files} {bytes}\n"))?;
            }
            api.delete(child)?;
        }
        if round > 0 {
            theirs.push(copied);
            ours.push(forked);
        }
    }
    api.delete(&parent)?;
    Beside::new(shape, "cp -a", &ours, &theirs)
}
