//! A session as a file for `sojourn import`: the plan, the facts and the tables of `live`, as JSON.
//! A real number without a value is null.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use live::Failure;
use live::session::facts::Facts;
use live::session::{Measured, Plan};
use probe::sys::lock_file;
use serde::Serialize;
use tables::Column;

/// Value of the key `format`.
const FORMAT: &str = "sojourn-probe 1";

#[derive(Serialize)]
struct SessionFile<'a> {
    format: &'static str,
    /// Without the secret.
    plan: &'a Plan,
    facts: &'a Facts,
    tables: BTreeMap<&'static str, BTreeMap<&'static str, Values<'a>>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Values<'a> {
    U8(&'a [u8]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    I64(&'a [i64]),
    F64(&'a [f64]),
}

impl Values<'_> {
    fn of(column: &Column) -> Values<'_> {
        match column {
            Column::U8(values) => Values::U8(values),
            Column::U32(values) => Values::U32(values),
            Column::U64(values) => Values::U64(values),
            Column::I64(values) => Values::I64(values),
            Column::F64(values) => Values::F64(values),
        }
    }
}

/// The output file of a session. From the start, no other process of this program can write it.
pub struct Output {
    /// The path as given by the user.
    path: PathBuf,
    kind: Kind,
}

enum Kind {
    /// A regular file. Each write creates a new file beside it and renames that, so a complete file
    /// always exists, however this process ends.
    Replaced {
        file: PathBuf,
        temporary: PathBuf,
        /// Open and locked; the lock ends with this process.
        locked: File,
        /// Whether this process created the file.
        created: bool,
    },
    /// A pipe or a device, written once.
    InPlace,
}

impl Output {
    /// Opens the file before the measurement. `force`: existing content may be replaced.
    ///
    /// # Errors
    ///
    /// If it can't be written, has content, or another process is measuring into it.
    pub fn take(path: &Path, force: bool) -> Result<Output, Failure> {
        let refused = |error: io::Error| {
            Failure::new(format!("can't write {}: {error}", path.display()), "choose another file")
        };
        let path = path.to_path_buf();
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(Failure::new(
                    format!("{} is a folder", path.display()),
                    "give a file in it",
                ));
            }
            Ok(metadata) if !metadata.is_file() => return Ok(Output { path, kind: Kind::InPlace }),
            _ => {}
        }
        let created = !path.exists();
        let mut options = OpenOptions::new();
        let locked =
            options.write(true).create(true).truncate(false).open(&path).map_err(refused)?;
        // A symbolic link is followed; otherwise the rename would replace the link.
        let file = fs::canonicalize(&path).map_err(refused)?;
        let taken = lock_file(&locked).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        let (metadata, current) = (locked.metadata(), fs::metadata(&file));
        let (metadata, current) = (metadata.map_err(refused)?, current.map_err(refused)?);
        // Some file systems have no locks. A process that has just replaced the file has locked the
        // new one.
        if taken || metadata.ino() != current.ino() {
            return Err(Failure::new(
                format!("another process is measuring into {}", path.display()),
                "choose another file with -o, or wait until that one has ended",
            ));
        }
        if !force && current.len() > 0 {
            return Err(Failure::new(
                format!("{} is not empty", path.display()),
                "choose another file with -o, or replace it with --force",
            ));
        }
        let mut name = OsString::from(".");
        name.push(file.file_name().expect("a file has a name"));
        name.push(".half");
        let temporary = file.with_file_name(name);
        let kind = Kind::Replaced { file, temporary: temporary.clone(), locked, created };
        let output = Output { path, kind };
        // A folder may not allow a file beside this one: report it now, not after the measurement.
        fresh(&temporary).and_then(|_| fs::remove_file(&temporary)).map_err(refused)?;
        Ok(output)
    }

    /// Whether the file can be written again later.
    pub fn grows(&self) -> bool {
        matches!(self.kind, Kind::Replaced { .. })
    }

    /// Writes a session and replaces what was written before.
    ///
    /// # Errors
    ///
    /// If it can't be written; the earlier content still exists.
    pub fn write(&mut self, plan: &Plan, measured: &Measured) -> Result<(), Failure> {
        let text = text_of(plan, measured);
        let written = match &mut self.kind {
            Kind::InPlace => fs::write(&self.path, text),
            Kind::Replaced { file, temporary, locked, .. } => {
                replace(file, temporary, text.as_bytes()).map(|new| *locked = new).inspect_err(
                    |_| {
                        let _ = fs::remove_file(temporary);
                    },
                )
            }
        };
        written.map_err(|error| {
            Failure::new(format!("can't write {}: {error}", self.path.display()), "")
        })
    }
}

/// Removes the file if this process created it and wrote nothing.
impl Drop for Output {
    fn drop(&mut self) {
        if let Kind::Replaced { file, locked, created: true, .. } = &self.kind
            && locked.metadata().is_ok_and(|metadata| metadata.len() == 0)
        {
            let _ = fs::remove_file(file);
        }
    }
}

/// Replaces a file by a new one with this content; returns the new one, open and locked.
fn replace(file: &Path, temporary: &Path, content: &[u8]) -> io::Result<File> {
    let mut new = fresh(temporary)?;
    // The new file is locked before it has the name: no other process can lock it first.
    let _ = lock_file(&new);
    new.write_all(content)?;
    fs::rename(temporary, file)?;
    Ok(new)
}

/// Creates a file, and replaces a leftover of a killed process.
fn fresh(file: &Path) -> io::Result<File> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => File::create_new(file),
    }
}

fn text_of(plan: &Plan, measured: &Measured) -> String {
    let tables = measured.tables.iter().map(|table| {
        let columns = table.columns.iter().map(|(name, column)| (*name, Values::of(column)));
        (table.name, columns.collect())
    });
    let session =
        SessionFile { format: FORMAT, plan, facts: &measured.facts, tables: tables.collect() };
    serde_json::to_string(&session).expect("a session is plain values")
}
