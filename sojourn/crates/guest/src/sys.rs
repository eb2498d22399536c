//! What a first process needs of the kernel beyond sockets, and the only `unsafe` of this crate.
//!
//! Each block is sound because its pointers are to strings and structs that live for the call, and
//! because the signal handler does nothing but system calls.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Error, ErrorKind};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

fn text(value: &str) -> io::Result<CString> {
    CString::new(value).map_err(|_| Error::from(ErrorKind::InvalidInput))
}

/// Mounts a file system.
pub fn mount(source: &str, target: &Path, kind: &str, options: &str) -> io::Result<()> {
    let (source, kind, options) = (text(source)?, text(kind)?, text(options)?);
    let target = text(&target.to_string_lossy())?;
    // SAFETY: four live strings; the last one is the file system's data, which is a string for all
    // that are used here.
    check(libc::c_long::from(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast())
    }))
}

/// Shows a file at another place too.
pub fn bind_mount(source: &str, target: &Path) -> io::Result<()> {
    let (source, target) = (text(source)?, text(&target.to_string_lossy())?);
    // SAFETY: two live strings; null means no type and no data, which a bind mount has not.
    check(libc::c_long::from(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), ptr::null(), libc::MS_BIND, ptr::null())
    }))
}

/// Mounts made from now on are this process's alone, and end with it.
pub fn unshare_mounts() -> io::Result<()> {
    let root = text("/")?;
    // SAFETY: no pointers in the first; a live string and nulls, as in `bind_mount`, in the second.
    unsafe {
        check(libc::c_long::from(libc::unshare(libc::CLONE_NEWNS)))?;
        check(libc::c_long::from(libc::mount(
            ptr::null(),
            root.as_ptr(),
            ptr::null(),
            libc::MS_REC | libc::MS_PRIVATE,
            ptr::null(),
        )))
    }
}

/// Loads a module from its file; one that is there already is fine.
pub fn load_module(path: &str) -> io::Result<()> {
    let file = File::open(path)?;
    let none = text("")?;
    // SAFETY: an open file and a live, empty string of parameters.
    let result =
        check(unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), none.as_ptr(), 0) });
    match result {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        other => other,
    }
}

/// Raises the number of files that may be open to what is allowed; a first process may allow itself
/// more.
pub fn allow_many_files(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live struct, filled in.
    check(libc::c_long::from(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }))?;
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    let raised = libc::rlimit { rlim_cur: wanted, rlim_max: limit.rlim_max.max(wanted) };
    // SAFETY: a live struct, read.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
        return Ok(wanted);
    }
    let allowed = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: as above.
    check(libc::c_long::from(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const allowed) }))?;
    Ok(allowed.rlim_cur)
}

/// Ticks a second of /proc/stat.
pub fn ticks_per_second() -> i64 {
    // SAFETY: no pointers.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }
}

/// Whether this is the first process of a machine, whose end is the machine's.
pub fn is_first() -> bool {
    std::process::id() == 1
}

/// Whether this process is root in its user namespace.
pub fn is_root() -> bool {
    // SAFETY: no pointers.
    unsafe { libc::geteuid() == 0 }
}

/// Ends the machine.
pub fn power_off() -> ! {
    // SAFETY: no pointers. A kernel that can't power off restarts or halts; one that returns gets a
    // plain exit, of which it makes a panic.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
        libc::_exit(0)
    }
}

static FIRST: AtomicBool = AtomicBool::new(false);

/// Ends everything, be it stuck in whatever system call, `after_ns` from now on the clock of the
/// kernel.
pub fn set_deadline(after_ns: u64) -> io::Result<()> {
    FIRST.store(is_first(), Ordering::Relaxed);
    let handler = on_deadline as extern "C" fn(libc::c_int);
    let period = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval {
            tv_sec: (after_ns / 1_000_000_000) as libc::time_t,
            tv_usec: (after_ns % 1_000_000_000 / 1000).max(1) as libc::suseconds_t,
        },
    };
    // SAFETY: the handler has the type that signal(2) wants and lives for ever; a live struct for
    // the timer, and null for the old value, which is not asked for.
    unsafe {
        libc::signal(libc::SIGALRM, handler as *const () as libc::sighandler_t);
        check(libc::c_long::from(libc::setitimer(
            libc::ITIMER_REAL,
            &raw const period,
            ptr::null_mut(),
        )))
    }
}

/// Only system calls: a signal may come at any point.
extern "C" fn on_deadline(_: libc::c_int) {
    const TEXT: &[u8] = b"@FAIL deadline: the run did not end by itself\n";
    // SAFETY: a live slice and its length; the other calls have no pointers.
    unsafe {
        libc::write(1, TEXT.as_ptr().cast(), TEXT.len());
        if FIRST.load(Ordering::Relaxed) {
            libc::reboot(libc::RB_POWER_OFF);
        }
        libc::_exit(1);
    }
}

/// Ends this process when the one that started it ends, however that was: on a host nothing is left
/// behind.
pub fn end_with_parent() -> io::Result<()> {
    // SAFETY: no pointers.
    check(libc::c_long::from(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }))
}
