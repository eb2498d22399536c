//! System calls that the first process needs beyond sockets, and the only `unsafe` code of this
//! crate.
//!
//! Each block is sound because its pointers refer to strings and structs that live for the call,
//! and because the signal handler makes only system calls.
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
    // SAFETY: four live strings; the last is the file system's data, which is a string for all file
    // systems used here.
    check(libc::c_long::from(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast())
    }))
}

/// Makes a file visible at a second path.
pub fn bind_mount(source: &str, target: &Path) -> io::Result<()> {
    let (source, target) = (text(source)?, text(&target.to_string_lossy())?);
    // SAFETY: two live strings; null means no type and no data, which a bind mount does not need.
    check(libc::c_long::from(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), ptr::null(), libc::MS_BIND, ptr::null())
    }))
}

/// Makes later mounts private to this process; they disappear when it ends.
pub fn unshare_mounts() -> io::Result<()> {
    let root = text("/")?;
    // SAFETY: no pointers in the first call; a live string and nulls, as in `bind_mount`, in the
    // second.
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

/// Loads a module from its file. A module that is already loaded is no error.
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

/// Raises the limit of open files as far as permitted; a first process may raise the hard limit
/// too.
pub fn allow_many_files(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live struct, filled in.
    check(libc::c_long::from(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }))?;
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    let raised = libc::rlimit { rlim_cur: wanted, rlim_max: limit.rlim_max.max(wanted) };
    // SAFETY: a live struct, only read.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
        return Ok(wanted);
    }
    let allowed = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: as above.
    check(libc::c_long::from(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const allowed) }))?;
    Ok(allowed.rlim_cur)
}

/// Returns the ticks per second of /proc/stat.
pub fn ticks_per_second() -> i64 {
    // SAFETY: no pointers.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }
}

/// Whether this is the first process of a machine; its end ends the machine.
pub fn is_first() -> bool {
    std::process::id() == 1
}

/// Whether this process is root in its user namespace.
pub fn is_root() -> bool {
    // SAFETY: no pointers.
    unsafe { libc::geteuid() == 0 }
}

/// Powers the machine off.
pub fn power_off() -> ! {
    // SAFETY: no pointers. A kernel that can't power off restarts or halts. If the call returns,
    // `_exit` makes the kernel panic.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
        libc::_exit(0)
    }
}

static FIRST: AtomicBool = AtomicBool::new(false);

/// Ends everything `after_ns` from now on the kernel's clock, even if the program hangs in a system
/// call.
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
    // SAFETY: the handler has the type that signal(2) requires and is a static function. The
    // timer's struct is live; null means that the old value is not wanted.
    unsafe {
        libc::signal(libc::SIGALRM, handler as *const () as libc::sighandler_t);
        check(libc::c_long::from(libc::setitimer(
            libc::ITIMER_REAL,
            &raw const period,
            ptr::null_mut(),
        )))
    }
}

/// Makes only system calls, because a signal may interrupt any code.
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

/// Ends this process when its parent ends for any reason, so no process remains on a host.
pub fn end_with_parent() -> io::Result<()> {
    // SAFETY: no pointers.
    check(libc::c_long::from(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }))
}
