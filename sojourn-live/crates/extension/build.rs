//! Identifies the sources of this extension. `BUILD` is the first 16 digits of a SHA-256 over the
//! path, size and content of each Rust file in the repository except tests, and of Cargo.lock.
//! `conftest.py` computes it again from the tree and refuses to test a different build.

use std::path::{Path, PathBuf};
use std::{env, fs};

use sha2::{Digest, Sha256};

fn main() {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = here.join("../../..");
    let mut all: Vec<PathBuf> = ["Cargo.lock", "Cargo.toml"].map(PathBuf::from).into();
    for folder in ["sojourn/crates", "sojourn-live/crates"] {
        collect(&root, Path::new(folder), &mut all);
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
    }
    for path in ["Cargo.lock", "Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    all.sort();
    let mut sum = Sha256::new();
    for path in &all {
        let content = fs::read(root.join(path)).expect("the tree can be read");
        let name = path.to_str().expect("the tree's names are UTF-8");
        sum.update(format!("{name} {}\n", content.len()));
        sum.update(&content);
    }
    let name: String = sum.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=SOJOURN_LIVE_BUILD={name}");
}

/// Adds the Rust sources and manifests below a folder, except its tests.
fn collect(root: &Path, folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root.join(folder)).expect("the tree can be read") {
        let entry = entry.expect("the tree can be read");
        let path = folder.join(entry.file_name());
        if entry.file_type().expect("the tree can be read").is_dir() {
            if entry.file_name() != "tests" {
                collect(root, &path, into);
            }
        } else if path.extension().is_some_and(|end| end == "rs") || path.ends_with("Cargo.toml") {
            into.push(path);
        }
    }
}
