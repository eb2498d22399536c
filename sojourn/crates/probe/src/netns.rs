//! Network namespaces: to make them, and to do something inside one.
//!
//! A socket belongs for life to the namespace it was made in, so one thread serves any number of
//! them: it steps into a namespace to open a socket and out again. A namespace lives as long as
//! something refers to it: `Namespace` does.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use crate::sys;

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// That of the calling thread.
    pub fn current() -> io::Result<Namespace> {
        File::open("/proc/thread-self/ns/net").map(Namespace)
    }

    /// A new, empty one. The calling thread is in it for a moment, then back.
    pub fn new() -> io::Result<Namespace> {
        let home = Namespace::current()?;
        sys::unshare_network()?;
        let made = Namespace::current();
        home.enter()?;
        made
    }

    /// Puts the calling thread into it, and the programs that it starts.
    pub fn enter(&self) -> io::Result<()> {
        sys::enter_network(self.0.as_fd())
    }

    /// Does `work` inside and comes back to `home`.
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
