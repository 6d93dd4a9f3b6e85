//! The rule that a crate depends only on layers below its own.

use serde_json::Value;

/// Which layer a package is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    Numbered(u8),
    /// Tests and benches, which may use everything.
    Free,
}

/// The layer of a package, by its folder; `None` for a crate that has none yet.
pub fn layer(folder: &str) -> Option<Layer> {
    let number = match folder {
        "crates/core" | "crates/telemetry" | "crates/turns" => 0,
        "crates/api" | "crates/policy" | "crates/proof" | "crates/backend" | "crates/store" => 1,
        "crates/reports" => 1,
        "crates/linux" | "crates/images" | "crates/egress" | "crates/identity" | "crates/artifacts" => 2,
        "crates/webhook" | "crates/kernels" | "crates/guest" => 2,
        "crates/registry" | "crates/linux/early" => 3,
        _ if is_backend(folder) => 3,
        "crates/worker" | "crates/control" => 4,
        "crates/http" | "crates/mcp" | "crates/client" | "crates/remote" => 5,
        "crates/cli" => 6,
        "crates/testkit" | "bench" | "fuzz" => return Some(Layer::Free),
        _ if folder.starts_with("tests/") => return Some(Layer::Free),
        _ => return None,
    };
    Some(Layer::Numbered(number))
}

fn is_backend(folder: &str) -> bool {
    folder.strip_prefix("crates/backends/").is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

/// One package of the workspace.
#[derive(Debug, Clone)]
pub struct Package {
    pub name: String,
    /// From the root of the workspace.
    pub folder: String,
    /// The names of all that it depends on, in tests and builds, too.
    pub needs: Vec<String>,
}

/// The packages in what `cargo metadata --no-deps` printed.
pub fn packages(metadata: &Value) -> Vec<Package> {
    let root = text(&metadata["workspace_root"]);
    let list = metadata["packages"].as_array().expect("metadata has packages");
    list.iter()
        .map(|package| {
            let manifest = text(&package["manifest_path"]);
            let folder = manifest.strip_prefix(&root).unwrap_or(&manifest);
            let folder = folder.trim_start_matches('/').trim_end_matches("Cargo.toml").trim_end_matches('/');
            let needs = package["dependencies"].as_array().expect("a package has dependencies");
            Package {
                name: text(&package["name"]),
                folder: folder.to_owned(),
                needs: needs.iter().map(|need| text(&need["name"])).collect(),
            }
        })
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string of cargo's metadata").to_owned()
}

/// Everything that breaks the rule, in words.
pub fn violations(packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        let Some(own) = layer(&package.folder) else {
            found.push(format!("{} ({}) has no layer: give it one", package.name, package.folder));
            continue;
        };
        for needed in packages.iter().filter(|other| package.needs.contains(&other.name)) {
            found.extend(violation(package, own, needed));
        }
    }
    found
}

fn violation(package: &Package, own: Layer, needed: &Package) -> Option<String> {
    let Layer::Numbered(own) = own else { return None };
    let below = match layer(&needed.folder) {
        Some(Layer::Numbered(number)) => number,
        Some(Layer::Free) => {
            return Some(format!("{} depends on {}, which is for tests", package.name, needed.name));
        }
        // It is told of by itself.
        None => return None,
    };
    if below >= own {
        let what = format!("{} (layer {own}) depends on {} (layer {below})", package.name, needed.name);
        return Some(what);
    }
    if is_backend(&needed.folder) && package.folder != "crates/cli" {
        return Some(format!("{} names the backend {}; only the CLI may", package.name, needed.name));
    }
    None
}
