//! Hashes the sources of this extension, so that a Run can record which engine it ran in.
//!
//! There is a hash for each of the lists below, and `BUILD` for all crates. Each includes
//! Cargo.lock and the workspace's manifest. A hash is the first 16 digits of a SHA-256 over each
//! file's path, size and content, in the order of the paths. The manifest and the lock file are at
//! the top of the repository, the crates in its folder `sojourn`. `conftest.py` computes `BUILD`
//! from the tree and refuses to test another build.

use std::path::{Path, PathBuf};
use std::{env, fs};

use sha2::{Digest, Sha256};

/// The crates that decide the bytes of a simulation's tables.
const ENGINE: &[&str] = &["link", "qdisc", "sim", "tables", "tcp", "traffic", "units"];
/// The crates that parse tc's syntax and have the records of disciplines and congestion controls.
const TC: &[&str] = &["link", "qdisc", "tc", "tcp", "units"];
/// The crates that write a table's file.
const FILES: &[&str] = &["files", "tables"];
/// The crates that compute numbers from tables.
const METRICS: &[&str] = &["metrics", "tables", "traffic", "units"];

/// The repository's own files.
const WORKSPACE: [&str; 2] = ["Cargo.lock", "Cargo.toml"];

/// The folders of the files.
struct Root {
    core: PathBuf,
    workspace: PathBuf,
}

impl Root {
    fn of(&self, path: &Path) -> PathBuf {
        let is_workspace = WORKSPACE.iter().any(|name| Path::new(name) == path);
        if is_workspace { &self.workspace } else { &self.core }.join(path)
    }
}

fn main() {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = Root { core: here.join("../.."), workspace: here.join("../../..") };
    let mut all: Vec<PathBuf> = WORKSPACE.map(PathBuf::from).into();
    collect(&root.core, Path::new("crates"), &mut all);
    all.sort();
    let of = |crates: &'static [&str]| {
        all.iter().filter(move |path| {
            let mut parts =
                path.iter().map(|part| part.to_str().expect("the tree's names are UTF-8"));
            match (parts.next(), parts.next()) {
                (Some("crates"), Some(name)) => crates.contains(&name),
                _ => true,
            }
        })
    };
    println!("cargo::rustc-env=SOJOURN_ENGINE={}", digest(&root, of(ENGINE)));
    println!("cargo::rustc-env=SOJOURN_TC={}", digest(&root, of(TC)));
    println!("cargo::rustc-env=SOJOURN_FILES={}", digest(&root, of(FILES)));
    println!("cargo::rustc-env=SOJOURN_METRICS={}", digest(&root, of(METRICS)));
    println!("cargo::rustc-env=SOJOURN_BUILD={}", digest(&root, all.iter()));
    for path in [&WORKSPACE[..], &["crates"]].concat() {
        println!("cargo::rerun-if-changed={}", root.of(Path::new(path)).display());
    }
}

/// Adds the Rust sources and manifests below a folder, without its tests.
fn collect(root: &Path, folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root.join(folder)).expect("the tree can be read") {
        let entry = entry.expect("the tree can be read");
        let path = folder.join(entry.file_name());
        if entry.file_type().expect("the tree can be read").is_dir() {
            if entry.file_name() == "tests" {
                continue;
            }
            collect(root, &path, into);
        } else if path.extension().is_some_and(|end| end == "rs") || path.ends_with("Cargo.toml") {
            into.push(path);
        }
    }
}

fn digest<'a>(root: &Root, files: impl Iterator<Item = &'a PathBuf>) -> String {
    let mut sum = Sha256::new();
    for path in files {
        let content = fs::read(root.of(path)).expect("the tree can be read");
        sum.update(format!(
            "{} {}\n",
            path.to_str().expect("the tree's names are UTF-8"),
            content.len()
        ));
        sum.update(&content);
    }
    sum.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
