"""Attempts actions that a program in the guest must not be able to do. Prints a line for each
attempt: "NAME ok ERROR" if it was refused, "NAME DONE" if it succeeded."""

import ctypes
import os
import signal
import socket

libc = ctypes.CDLL(None, use_errno=True)


def call(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def mount(source, target, kind, flags=0, data=None):
    os.makedirs(target, exist_ok=True)
    call(libc.mount(source.encode(), target.encode(), kind.encode(), flags, data and data.encode()))


def syscall(number, *arguments):
    call(libc.syscall(number, *arguments))


def read(path):
    with open(path, "rb") as file:
        file.read(1)


def write(path, text="1"):
    with open(path, "w") as file:
        file.write(text)


def device(path, major, minor, kind=0o020000):
    os.mknod(path, kind | 0o600, os.makedev(major, minor))
    read(path)


MS_REMOUNT, MS_BIND = 32, 4096
ATTEMPTS = {
    "mount hostfs at the host's root": lambda: mount("none", "/tmp/m", "hostfs", 0, "/../../../.."),
    "mount hostfs at the run's folder": lambda: mount("none", "/tmp/m", "hostfs", 0, ""),
    "mount hostfs at see": lambda: mount("none", "/tmp/m", "hostfs", 0, "/see/0"),
    "mount hostfs by fsopen": lambda: syscall(430, b"hostfs", 0),
    "remount /usr for writing": lambda: mount("none", "/usr", "", MS_REMOUNT | MS_BIND),
    "bind /proc/1/root": lambda: mount("/proc/1/root", "/tmp/m", "", MS_BIND),
    "mount tmpfs": lambda: mount("none", "/tmp/m", "tmpfs"),
    "mount proc": lambda: mount("none", "/tmp/m", "proc"),
    "mount tracefs": lambda: mount("none", "/tmp/m", "tracefs"),
    "mount devtmpfs": lambda: mount("none", "/tmp/m", "devtmpfs"),
    "unmount /proc": lambda: call(libc.umount2(b"/proc", 2)),
    "pivot_root": lambda: syscall(155, b"/tmp", b"/tmp"),
    "a mount namespace": lambda: call(libc.unshare(0x00020000)),
    "a user namespace": lambda: call(libc.unshare(0x10000000)),
    "a network namespace": lambda: call(libc.unshare(0x40000000)),
    "chroot": lambda: os.chroot("/tmp"),
    "write below /usr": lambda: write("/usr/bin/escaped"),
    "chmod below /usr": lambda: os.chmod("/usr/bin/env", 0o777),
    "write its own files": lambda: write("hostile.py"),
    "/dev/simlog": lambda: read("/dev/simlog"),
    "a node of simlog": lambda: device("/tmp/simlog", 10, 126),
    "a node of /dev/mem": lambda: device("/tmp/mem", 1, 1),
    "a node of kmsg": lambda: device("/tmp/kmsg", 1, 11),
    "/dev/mem": lambda: read("/dev/mem"),
    "/dev/kmsg": lambda: write("/dev/kmsg", "@END\n"),
    "the console": lambda: write("/dev/console", "@END\n"),
    "syslog": lambda: call(libc.klogctl(3, ctypes.create_string_buffer(100), 100)),
    "core_pattern": lambda: write("/proc/sys/kernel/core_pattern", "|/bin/true"),
    "a sysctl of the network": lambda: write("/proc/sys/net/ipv4/tcp_rmem", "4096 4096 4096"),
    "the rate of a card": lambda: write("/sys/class/net/lo/mtu", "100"),
    "sysrq": lambda: write("/proc/sysrq-trigger", "b"),
    "UML's exit code": lambda: write("/proc/exitcode", "0"),
    "ptrace init": lambda: call(libc.ptrace(16, 1, 0, 0)),
    "init's memory": lambda: read("/proc/1/mem"),
    "init's files": lambda: read("/proc/1/fd/1"),
    "init's root": lambda: os.listdir("/proc/1/root"),
    "a kernel thread's root": lambda: os.listdir("/proc/2/root"),
    "init's network": lambda: read("/proc/1/ns/net"),
    "power off": lambda: call(libc.reboot(0x4321FEDC)),
    "set the clock": lambda: __import__("time").clock_settime(0, 0),
    "load a module": lambda: syscall(175, b"", 0, b""),
    "kexec": lambda: syscall(246, 0, 0, 0, 0),
    "bpf": lambda: syscall(321, 0, ctypes.create_string_buffer(128), 128),
    "perf": lambda: syscall(298, ctypes.create_string_buffer(128), 0, -1, -1, 0),
    "swap": lambda: call(libc.swapon(b"/tmp/m", 0)),
    "io ports": lambda: syscall(172, 3),
    "the host name": lambda: socket.sethostname("x"),
    "more open files": lambda: __import__("resource").setrlimit(7, (1 << 19, 1 << 19)),
    "open by handle": lambda: syscall(304, -100, ctypes.create_string_buffer(200), 0),
    "the host's home": lambda: os.listdir("/host"),
}

for name, attempt in ATTEMPTS.items():
    try:
        attempt()
        print(f"{name} DONE", flush=True)
    except (OSError, ValueError, AttributeError) as error:
        print(f"{name} ok {error}", flush=True)
for number in (signal.SIGALRM, signal.SIGSEGV, signal.SIGKILL, signal.SIGSTOP):
    os.kill(1, number)
print("still here", flush=True)
