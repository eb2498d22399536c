//! The environment of a run: namespaces, set-up commands, and the guest's file systems.
//!
//! As the first process of a guest, the program mounts the file systems that Linux programs need,
//! and powers the machine off at the end. On a host it first creates a mount namespace with an
//! empty `/run/netns`. So its network namespaces have no names outside, collide with no others, and
//! disappear with the program, however it ends: no cleanup is needed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use probe::netlink::{Netlink, NewQdisc};
use probe::netns::Namespace;

use crate::plan::Step;
use crate::sys;

const NETNS: &str = "/run/netns";
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// The namespaces by name.
pub struct World {
    home: Namespace,
    spaces: HashMap<String, Namespace>,
}

/// Mounts the file systems that programs in a guest expect.
pub fn mount_all() -> Result<(), String> {
    for (kind, target) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run")]
    {
        let result =
            fs::create_dir_all(target).and_then(|()| sys::mount(kind, Path::new(target), kind, ""));
        match result {
            // The kernel may have mounted it already.
            Err(error) if error.raw_os_error() != Some(libc::EBUSY) => {
                return Err(format!("mounting {kind} on {target}: {error}"));
            }
            _ => {}
        }
    }
    if !Path::new("/var/run").exists() {
        fs::create_dir_all("/var")
            .and_then(|()| symlink("/run", "/var/run"))
            .map_err(|e| format!("/var/run: {e}"))?;
    }
    Ok(())
}

impl World {
    /// Creates the namespaces, with their loopback devices up.
    pub fn new(names: &[String], first: bool) -> Result<World, String> {
        if !first {
            sys::unshare_mounts().map_err(|e| format!("a mount namespace of its own: {e}"))?;
        }
        fs::create_dir_all(NETNS)
            .and_then(|()| sys::mount("none", Path::new(NETNS), "tmpfs", ""))
            .map_err(|e| format!("{NETNS}: {e}"))?;
        let home = Namespace::current().map_err(|e| format!("this network namespace: {e}"))?;
        let mut world = World { home, spaces: HashMap::new() };
        for name in names {
            let namespace =
                world.make(name).map_err(|e| format!("network namespace {name}: {e}"))?;
            world.spaces.insert(name.clone(), namespace);
        }
        Ok(world)
    }

    fn make(&self, name: &str) -> io::Result<Namespace> {
        let space = Namespace::new()?;
        let file = Path::new(NETNS).join(name);
        File::create(&file)?;
        let sys_here = sysfs_of(name);
        fs::create_dir_all(&sys_here)?;
        space.inside(&self.home, || {
            sys::bind_mount("/proc/thread-self/ns/net", &file)?;
            // A sysfs shows the devices of the namespace in which it was mounted.
            sys::mount("sysfs", &sys_here, "sysfs", "")?;
            Netlink::new()?.set_up(probe::sys::device_index("lo")?)
        })?;
        Ok(space)
    }

    /// Runs `work` inside a namespace; without a name, in the program's own.
    pub fn inside<T>(
        &self,
        name: Option<&str>,
        work: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        match name {
            None => work(),
            // `Plan::check` has verified that every name is one of the plan's namespaces.
            Some(name) => self.spaces[name].inside(&self.home, work),
        }
    }

    /// Does a step; the error names the command or file.
    pub fn step(&self, step: &Step) -> Result<(), String> {
        match step {
            Step::Run { namespace, argv, stdin } => {
                let place = namespace.as_deref().map_or(String::new(), |n| format!(" in {n}"));
                self.inside(namespace.as_deref(), || run(argv, stdin.as_deref()))
                    .map_err(|e| format!("`{}`{place}: {e}", argv.join(" ")))
            }
            Step::Write { namespace, path, text } => {
                let path_here = self.path(namespace.as_deref(), path);
                self.inside(namespace.as_deref(), || {
                    // The file is not created: writing must not create a missing sysctl or
                    // attribute.
                    let mut file = File::options().write(true).open(&path_here)?;
                    io::Write::write_all(&mut file, text.as_bytes())
                })
                .map_err(|e| {
                    let place = namespace.as_deref().map_or(String::new(), |n| format!(" in {n}"));
                    format!("writing '{}' to {path}{place}: {e}", text.trim_end())
                })
            }
            Step::Qdisc { namespace, device, parent, handle, kind, overhead, options } => self
                .inside(Some(namespace), || {
                    let device = probe::sys::device_index(device)?;
                    let (parent, handle, overhead) = (*parent, *handle, *overhead);
                    let qdisc = NewQdisc { device, handle, parent, kind, overhead, options };
                    Netlink::new()?.add_qdisc(&qdisc)
                })
                .map_err(|e| format!("the discipline {kind} of {device} in {namespace}: {e}")),
        }
    }

    /// Returns the path at which this program opens a file of a namespace. The `/sys` of each
    /// namespace is mounted below `NETNS`.
    pub fn path(&self, namespace: Option<&str>, path: &str) -> PathBuf {
        match (namespace, path.strip_prefix("/sys/")) {
            (Some(name), Some(rest)) => sysfs_of(name).join(rest),
            _ => PathBuf::from(path),
        }
    }
}

fn sysfs_of(namespace: &str) -> PathBuf {
    Path::new(NETNS).join(".sys").join(namespace)
}

/// Runs a program to its end; the error contains the program's output.
fn run(argv: &[String], stdin: Option<&str>) -> io::Result<()> {
    let input = match stdin {
        None => Stdio::null(),
        Some(text) => {
            // A file, not a pipe: a pipe would need a writer while the program reads.
            let path = Path::new(NETNS).join(".stdin");
            fs::write(&path, text)?;
            File::open(&path)?.into()
        }
    };
    let path = std::env::var("PATH").unwrap_or_else(|_| PATH.into());
    let output = Command::new(&argv[0])
        .args(&argv[1..])
        .env("PATH", format!("{path}:{PATH}"))
        .stdin(input)
        .output()
        .map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => io::Error::other(format!("there is no program {}", argv[0])),
            _ => e,
        })?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stderr, output.stdout].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Err(io::Error::other(format!("{}: {}", output.status, lines.join("; "))))
}
