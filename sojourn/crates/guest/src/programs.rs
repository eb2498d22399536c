//! Programs of the host, in namespaces of the run.
//!
//! They see a root of their own: folders of the host, read-only, and everything else in memory. They
//! keep ten capabilities, and no file gives them more (`sys::confine`). What they print is a file of
//! the archive. At their stop, or at the end of the run, they get SIGTERM, and before the archive is
//! written SIGKILL.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::{Value, json};

use crate::context::Context;
use crate::plan::{Plan, Program, ProgramRoot};
use crate::results::Archive;
use crate::sys;

/// The root of the programs.
const ROOT: &str = "/programs";
/// The files that they print into; no program sees the folder.
const OUTPUT: &str = "/run/programs";
/// All that programs may print, bytes; more is refused to them (ENOSPC).
pub const MOST_OUTPUT: u64 = 16 << 20;
/// What was read of the host's files (the guest's kernel).
const READ: &str = "/proc/hostfs_read";

/// Character devices: name, major, minor.
const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// The programs of a run.
pub struct Programs {
    children: Vec<Option<Running>>,
}

struct Running {
    child: Child,
    /// On the kernel's monotonic clock, ns: some start before the run's clock.
    started: i64,
    status: Option<ExitStatus>,
}

impl Programs {
    /// Prepares their root.
    pub fn prepare(plan: &Plan) -> Result<Programs, String> {
        if let Some(root) = &plan.program_root {
            make_root(root).map_err(|e| format!("the programs' root: {e}"))?;
        }
        Ok(Programs { children: plan.programs.iter().map(|_| None).collect() })
    }

    /// Starts a program.
    pub fn start(&mut self, context: &Context<'_>, index: usize) -> Result<(), String> {
        let spec = &context.plan.programs[index];
        let place = &context.plan.program_root.as_ref().expect("the plan was checked").folder;
        let child = context
            .world
            .inside(Some(&spec.namespace), || spawn(spec, place))
            .map_err(|e| format!("program '{}': {e}", spec.name))?;
        let started = context.clock.monotonic(context.clock.now());
        self.children[index] = Some(Running { child, started, status: None });
        Ok(())
    }

    /// Starts those that have to be ready when the run begins.
    pub fn start_early(&mut self, context: &Context<'_>) -> Result<(), String> {
        for (index, program) in context.plan.programs.iter().enumerate() {
            if program.start_ns.is_none() {
                self.start(context, index)?;
            }
        }
        Ok(())
    }

    /// Asks a program to end.
    pub fn stop(&mut self, index: usize) -> io::Result<()> {
        if let Some(running) = &mut self.children[index] {
            running.status = running.child.try_wait()?;
            if running.status.is_none() {
                sys::signal_group(running.child.id(), libc::SIGTERM);
            }
        }
        Ok(())
    }

    /// Asks all to end.
    pub fn stop_all(&mut self) -> io::Result<()> {
        (0..self.children.len()).try_for_each(|index| self.stop(index))
    }

    /// Ends all, and whatever they have started.
    pub fn kill(&mut self) -> io::Result<()> {
        if self.children.is_empty() {
            return Ok(());
        }
        for running in self.children.iter_mut().flatten() {
            running.status = running.child.try_wait()?;
        }
        sys::kill_all_others();
        Ok(())
    }

    /// Writes what they printed and what they read of the host; returns how they ended. `zero`:
    /// the run's time 0 on the monotonic clock, ns.
    pub fn write<W: Write>(
        self,
        plan: &Plan,
        zero: i64,
        archive: &mut Archive<W>,
    ) -> io::Result<Value> {
        let mut about = Vec::new();
        for (spec, running) in plan.programs.iter().zip(&self.children) {
            let printed = match running {
                Some(_) => fs::read(Path::new(OUTPUT).join(&spec.name))?,
                None => Vec::new(),
            };
            archive.file(&format!("programs/{}", spec.name), &printed)?;
            let status = running.as_ref().and_then(|running| running.status);
            about.push(json!({
                "name": spec.name,
                "started_ns": running.as_ref().map(|running| running.started - zero),
                "status": status.and_then(|status| status.code()),
                "signal": status.and_then(|status| status.signal()),
            }));
        }
        archive.file("hostfs_read", &fs::read(READ)?)?;
        Ok(json!(about))
    }
}

fn make_root(spec: &ProgramRoot) -> io::Result<()> {
    let root = Path::new(ROOT);
    let at = |path: &str| root.join(path.trim_start_matches('/'));
    let folder = |path: &str| fs::create_dir_all(at(path));
    let mounted = |kind: &str, path: &str, flags: sys::MountFlags, options: &str| {
        folder(path)?;
        sys::mount_with("none", &at(path), kind, flags, options)
            .map_err(|e| io::Error::other(format!("{kind} at {path}: {e}")))
    };
    // The kernel's log is not theirs.
    fs::write("/proc/sys/kernel/dmesg_restrict", "1")?;
    fs::create_dir_all(OUTPUT)?;
    sys::mount("none", Path::new(OUTPUT), "tmpfs", &format!("size={MOST_OUTPUT}"))?;
    fs::create_dir_all(root)?;
    sys::mount("none", root, "tmpfs", "mode=0755")?;
    for path in ["/sys", "/run", "/root", "/home", "/etc", "/var"] {
        folder(path)?;
    }
    for path in ["/tmp", "/var/tmp"] {
        folder(path)?;
        fs::set_permissions(at(path), fs::Permissions::from_mode(0o1777))?;
    }
    // Read-only: /proc/sys/kernel/core_pattern would name a program that runs outside of this root.
    mounted("proc", "/proc", sys::READ_ONLY, "")?;
    folder("/dev/pts")?;
    folder("/dev/shm")?;
    for (name, major, minor) in DEVICES {
        sys::make_device(&at("/dev").join(name), major, minor)?;
    }
    for (link, target) in [
        ("/dev/ptmx", "pts/ptmx"),
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
        ("/var/run", "/run"),
    ] {
        symlink(target, at(link))?;
    }
    sys::make_read_only(&at("/dev"))?;
    mounted("devpts", "/dev/pts", sys::PLAIN, "ptmxmode=0666")?;
    mounted("tmpfs", "/dev/shm", sys::PLAIN, "mode=1777")?;
    for (option, place) in &spec.sees {
        mounted("hostfs", place, sys::READ_ONLY, option)?;
    }
    for (link, target) in &spec.links {
        symlink(target, at(link))?;
    }
    for (path, text) in &spec.files {
        if let Some(parent) = at(path).parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(at(path), text)?;
        fs::set_permissions(at(path), fs::Permissions::from_mode(0o755))?;
    }
    fs::create_dir_all(at(&spec.folder))?;
    sys::make_read_only(&at(&spec.folder))
}

/// Runs inside the program's network namespace.
fn spawn(spec: &Program, folder: &str) -> io::Result<Child> {
    let output = File::create(Path::new(OUTPUT).join(&spec.name))?;
    let mut command = Command::new(&spec.argv[0]);
    command
        .args(&spec.argv[1..])
        .env_clear()
        .envs(&spec.env)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    let own = format!("{folder}/{}", spec.name);
    let folder =
        if Path::new(ROOT).join(own.trim_start_matches('/')).is_dir() { &own } else { "/tmp" };
    sys::confine(&mut command, ROOT, folder)?;
    command.spawn().map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => {
            io::Error::other(format!("there is no program {} in what it sees", spec.argv[0]))
        }
        _ => e,
    })
}
