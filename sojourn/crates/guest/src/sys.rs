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

/// Flags of a mount.
#[derive(Clone, Copy)]
pub struct MountFlags(libc::c_ulong);

/// A mount that programs may write to.
pub const PLAIN: MountFlags = MountFlags(libc::MS_NOSUID);
/// A mount that nobody writes to.
pub const READ_ONLY: MountFlags =
    MountFlags(libc::MS_NOSUID | libc::MS_NODEV | libc::MS_RDONLY | libc::MS_NOATIME);

/// Mounts a file system with flags.
pub fn mount_with(
    source: &str,
    target: &Path,
    kind: &str,
    flags: MountFlags,
    options: &str,
) -> io::Result<()> {
    let (source, kind, options) = (text(source)?, text(kind)?, text(options)?);
    let target = text(&target.to_string_lossy())?;
    // SAFETY: as in `mount`.
    check(libc::c_long::from(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags.0,
            options.as_ptr().cast(),
        )
    }))
}

/// Makes a folder read-only, with all that is in it.
pub fn make_read_only(folder: &Path) -> io::Result<()> {
    let folder_here = folder.to_string_lossy().into_owned();
    bind_mount(&folder_here, folder)?;
    let target = text(&folder_here)?;
    let flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | libc::MS_NOSUID;
    // SAFETY: a live string; a bind mount's remount takes neither source, type nor data.
    check(libc::c_long::from(unsafe {
        libc::mount(ptr::null(), target.as_ptr(), ptr::null(), flags, ptr::null())
    }))
}

/// Makes a character device that everybody may read and write.
pub fn make_device(path: &Path, major: u32, minor: u32) -> io::Result<()> {
    let name = text(&path.to_string_lossy())?;
    // SAFETY: a live string.
    unsafe {
        check(libc::c_long::from(libc::mknod(
            name.as_ptr(),
            libc::S_IFCHR | 0o666,
            libc::makedev(major, minor),
        )))?;
        check(libc::c_long::from(libc::chmod(name.as_ptr(), 0o666)))
    }
}

/// The capabilities that programs keep: CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID,
/// NET_BIND_SERVICE, NET_ADMIN, NET_RAW, SYS_NICE. Above all not SYS_ADMIN: whoever mounts a hostfs
/// chooses what of the host it shows, and may write to it.
const KEPT: [libc::c_int; 10] = [0, 1, 3, 5, 6, 7, 10, 12, 13, 23];

/// Has a command run with this root, in a session and a mount namespace of its own, without rights
/// beyond `KEPT`. Its `/sys` shows the devices of the network namespace that it starts in.
pub fn confine(command: &mut std::process::Command, root: &str, folder: &str) -> io::Result<()> {
    use std::os::unix::process::CommandExt;
    let sys = text(&format!("{root}/sys"))?;
    let (root, folder, sysfs) = (text(root)?, text(folder)?, text("sysfs")?);
    let step = move || {
        // SAFETY: system calls only, with strings that live in the closure.
        unsafe {
            libc::setsid();
            // Whatever the first process has open, the program gets its three descriptors only.
            check(libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            ))?;
            check(libc::c_long::from(libc::unshare(libc::CLONE_NEWNS)))?;
            check(libc::c_long::from(libc::mount(
                sysfs.as_ptr(),
                sys.as_ptr(),
                sysfs.as_ptr(),
                READ_ONLY.0,
                ptr::null(),
            )))?;
            check(libc::c_long::from(libc::chroot(root.as_ptr())))?;
            check(libc::c_long::from(libc::chdir(folder.as_ptr())))?;
            for capability in (0..64).filter(|one| !KEPT.contains(one)) {
                // The first number that the kernel does not know ends the list.
                if libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 {
                    break;
                }
            }
            check(libc::c_long::from(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
        }
    };
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(step) };
    Ok(())
}

/// Sends a signal to a process group.
pub fn signal_group(leader: u32, signal: libc::c_int) {
    // SAFETY: no pointers. A group that has ended is no error.
    unsafe { libc::kill(-(leader as libc::pid_t), signal) };
}

/// Kills every process but the first, which must be this one.
pub fn kill_all_others() {
    // SAFETY: no pointers. That there is none is no error.
    unsafe { libc::kill(-1, libc::SIGKILL) };
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

/// The sender of a signal is the kernel.
const SI_KERNEL: libc::c_int = 0x80;

static FIRST: AtomicBool = AtomicBool::new(false);

/// Ends everything `after_ns` from now on the kernel's clock, even if the program hangs in a system
/// call.
pub fn set_deadline(after_ns: u64) -> io::Result<()> {
    FIRST.store(is_first(), Ordering::Relaxed);
    let handler =
        on_deadline as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    let period = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval {
            tv_sec: (after_ns / 1_000_000_000) as libc::time_t,
            tv_usec: (after_ns % 1_000_000_000 / 1000).max(1) as libc::suseconds_t,
        },
    };
    // SAFETY: the handler has the type that SA_SIGINFO requires and is a static function; the action
    // is zero elsewhere, which is valid. The structs are live; null means that the old value is not
    // wanted.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        check(libc::c_long::from(libc::sigaction(
            libc::SIGALRM,
            &raw const action,
            ptr::null_mut(),
        )))?;
        check(libc::c_long::from(libc::setitimer(
            libc::ITIMER_REAL,
            &raw const period,
            ptr::null_mut(),
        )))
    }
}

/// Makes only system calls, because a signal may interrupt any code.
extern "C" fn on_deadline(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // The timer's signal is the kernel's; a program of the run may send the same one.
    // SAFETY: the kernel hands over a valid struct.
    if unsafe { (*info).si_code } != SI_KERNEL {
        return;
    }
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
