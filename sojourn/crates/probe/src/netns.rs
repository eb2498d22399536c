//! Network namespaces: creates them, and runs code inside one.
//!
//! A socket stays in the namespace in which it was created, so one thread can serve many
//! namespaces: it enters a namespace to open a socket, and returns. A namespace exists as long as
//! something refers to it; a `Namespace` is such a reference.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use crate::sys;

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Returns the calling thread's namespace.
    pub fn current() -> io::Result<Namespace> {
        File::open("/proc/thread-self/ns/net").map(Namespace)
    }

    /// Creates an empty namespace. The calling thread enters it for a moment and returns.
    pub fn new() -> io::Result<Namespace> {
        let home = Namespace::current()?;
        sys::unshare_network()?;
        let namespace = Namespace::current();
        home.enter()?;
        namespace
    }

    /// Moves the calling thread, and the programs that it starts, into this namespace.
    pub fn enter(&self) -> io::Result<()> {
        sys::enter_network(self.0.as_fd())
    }

    /// Runs `work` inside this namespace, then returns to `home`.
    pub fn inside<T>(
        &self,
        home: &Namespace,
        work: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.enter()?;
        let result = work();
        home.enter()?;
        result
    }
}
