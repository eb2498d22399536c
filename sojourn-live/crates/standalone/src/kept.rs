//! A session as a file that `sojourn import` makes a Run of: the plan, the facts and the tables that
//! `live` hands over, as JSON. A real number that is none is null.

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

/// How such a file begins.
const FORMAT: &str = "sojourn-probe 1";

#[derive(Serialize)]
struct Kept<'a> {
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

/// The file that a session is kept in. From the start no other process of ours writes it.
pub struct Place {
    /// As it was asked for.
    asked: PathBuf,
    how: How,
}

enum How {
    /// A file, replaced whole by one that is written beside it: whatever ends this process, one of
    /// the two is there.
    Replaced {
        file: PathBuf,
        half: PathBuf,
        /// Open and locked. The lock ends with this process.
        locked: File,
        /// Whether it was not there before.
        made: bool,
    },
    /// A pipe or a device, written once.
    InPlace,
}

impl Place {
    /// Takes the file before anything is measured. `force`: what is in it may be replaced.
    ///
    /// # Errors
    ///
    /// It can't be written, has content, or another process is measuring into it.
    pub fn take(asked: &Path, force: bool) -> Result<Place, Failure> {
        let refused = |error: io::Error| {
            Failure::new(format!("can't write {}: {error}", asked.display()), "choose another file")
        };
        let asked = asked.to_path_buf();
        match fs::metadata(&asked) {
            Ok(found) if found.is_dir() => {
                return Err(Failure::new(
                    format!("{} is a folder", asked.display()),
                    "name a file in it",
                ));
            }
            Ok(found) if !found.is_file() => return Ok(Place { asked, how: How::InPlace }),
            _ => {}
        }
        let made = !asked.exists();
        let mut options = OpenOptions::new();
        let locked =
            options.write(true).create(true).truncate(false).open(&asked).map_err(refused)?;
        // Not through a symbolic link, which would be replaced itself.
        let file = fs::canonicalize(&asked).map_err(refused)?;
        let taken = lock_file(&locked).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        let (found, named) = (locked.metadata(), fs::metadata(&file));
        let (found, named) = (found.map_err(refused)?, named.map_err(refused)?);
        // Some file systems have no locks. Whoever has just replaced the file has locked the new.
        if taken || found.ino() != named.ino() {
            return Err(Failure::new(
                format!("another process is measuring into {}", asked.display()),
                "choose another file with -o, or wait until that one has ended",
            ));
        }
        if !force && named.len() > 0 {
            return Err(Failure::new(
                format!("there is something in {} already", asked.display()),
                "choose another file with -o, or replace it with --force",
            ));
        }
        let mut name = OsString::from(".");
        name.push(file.file_name().expect("a file has a name"));
        name.push(".half");
        let half = file.with_file_name(name);
        let how = How::Replaced { file, half: half.clone(), locked, made };
        let place = Place { asked, how };
        // A folder may refuse a file beside this one: better said now than after a minute.
        fresh(&half).and_then(|_| fs::remove_file(&half)).map_err(refused)?;
        Ok(place)
    }

    /// Whether what is written can be written again later.
    pub fn grows(&self) -> bool {
        matches!(self.how, How::Replaced { .. })
    }

    /// Writes a session, in the place of what was written before.
    ///
    /// # Errors
    ///
    /// It can't be written; what was written before is still there.
    pub fn write(&mut self, plan: &Plan, measured: &Measured) -> Result<(), Failure> {
        let text = text_of(plan, measured);
        let written = match &mut self.how {
            How::InPlace => fs::write(&self.asked, text),
            How::Replaced { file, half, locked, .. } => {
                replace(file, half, text.as_bytes()).map(|new| *locked = new).inspect_err(|_| {
                    let _ = fs::remove_file(half);
                })
            }
        };
        written.map_err(|error| {
            Failure::new(format!("can't write {}: {error}", self.asked.display()), "")
        })
    }
}

/// Nothing is left of a file that nothing was written to.
impl Drop for Place {
    fn drop(&mut self) {
        if let How::Replaced { file, locked, made: true, .. } = &self.how
            && locked.metadata().is_ok_and(|found| found.len() == 0)
        {
            let _ = fs::remove_file(file);
        }
    }
}

/// Puts a new file with this content in a file's place; the new one, open and locked.
fn replace(file: &Path, half: &Path, content: &[u8]) -> io::Result<File> {
    let mut new = fresh(half)?;
    // Before it has the name: nobody else may take it.
    let _ = lock_file(&new);
    new.write_all(content)?;
    fs::rename(half, file)?;
    Ok(new)
}

/// A new file, in the place of what a killed process left.
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
    let kept = Kept { format: FORMAT, plan, facts: &measured.facts, tables: tables.collect() };
    serde_json::to_string(&kept).expect("a session is plain values")
}
