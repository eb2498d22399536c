//! What the kernel itself says it did, event by event: its tracepoints, in its own words.
//!
//! A drop leaves no packet that a tap could see. The kernel's event for it (`skb/kfree_skb`) says when, where in the kernel
//! and why; together with those at the queue's two sides it says which packet. The text goes into the archive as it is.
//!
//! Source: Documentation/trace/ftrace.rst, events.rst.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::plan;
use crate::results::Archive;
use crate::sys;

const TRACEFS: &str = "/sys/kernel/tracing";
/// Its text in the archive.
const TEXT: &str = "trace/text";

/// A trace that is being taken.
pub struct Trace(());

fn write(file: &str, text: &str) -> Result<(), String> {
    let path = PathBuf::from(TRACEFS).join(file);
    fs::write(&path, text).map_err(|e| format!("writing '{text}' to {}: {e}", path.display()))
}

impl Trace {
    /// Begins with the events of the plan, on the clock that the run has.
    pub fn begin(spec: &plan::Trace) -> Result<Trace, String> {
        match sys::mount("tracefs", Path::new(TRACEFS), "tracefs", "") {
            Err(error) if error.raw_os_error() != Some(libc::EBUSY) => {
                return Err(format!("mounting tracefs on {TRACEFS}: {error}"));
            }
            _ => {}
        }
        write("trace_clock", "mono")?;
        write("buffer_size_kb", &spec.buffer_kb.to_string())?;
        for event in &spec.events {
            let folder = format!("events/{}", event.name);
            if let Some(filter) = &event.filter {
                write(&format!("{folder}/filter"), filter)?;
            }
            write(&format!("{folder}/enable"), "1")?;
        }
        Ok(Trace(()))
    }

    /// Ends it and writes it into the archive; what is to be said of it.
    pub fn write<W: Write>(self, archive: &mut Archive<W>) -> io::Result<Value> {
        fs::write(Path::new(TRACEFS).join("tracing_on"), "0")?;
        let text = fs::read(Path::new(TRACEFS).join("trace"))?;
        archive.file(TEXT, &text)?;
        let mut lost = 0;
        for entry in fs::read_dir(Path::new(TRACEFS).join("per_cpu"))? {
            lost += lost_of(&fs::read_to_string(entry?.path().join("stats"))?);
        }
        Ok(json!({"file": TEXT, "lost_events": lost}))
    }
}

/// Events that were overwritten or not taken, by one processor's statistics.
fn lost_of(stats: &str) -> u64 {
    let number = |line: &str| {
        let (name, value) = line.split_once(':')?;
        matches!(name, "overrun" | "commit overrun" | "dropped events")
            .then(|| value.trim().parse::<u64>().ok())?
    };
    stats.lines().filter_map(number).sum()
}

#[cfg(test)]
mod tests {
    use super::lost_of;

    #[test]
    fn what_was_lost_is_counted_and_nothing_else() {
        let stats = "entries: 7\noverrun: 3\ncommit overrun: 1\nbytes: 400\noldest event ts: 12.5\nnow ts: 13.5\n\
                     dropped events: 2\nread events: 9\n";
        assert_eq!(lost_of(stats), 6);
        assert_eq!(lost_of("entries: 7\n"), 0);
    }
}
