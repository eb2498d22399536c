"""Tries each feature of Linux that programs of a distribution rely on. Prints a line for each:
"NAME found" or "NAME ERROR"."""

import ctypes
import os
import select
import socket
import subprocess
import time

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def script():
    with open("/tmp/script", "w") as file:
        file.write("#!/bin/sh\necho hello\n")
    os.chmod("/tmp/script", 0o755)
    assert subprocess.run(["/tmp/script"], capture_output=True).stdout == b"hello\n"


def pseudo_terminal():
    near, far = os.openpty()
    os.write(far, b"x")
    assert os.read(near, 1) == b"x"


def inotify():
    watch = call(294, 0)
    call(254, watch, b"/tmp", 0x100)
    open("/tmp/made", "w").close()
    assert len(os.read(watch, 4096)) > 16


def dual_stack():
    server = socket.create_server(("::", 7000), family=socket.AF_INET6, dualstack_ipv6=True)
    client = socket.create_connection(("127.0.0.1", 7000))
    client.send(b"x")
    assert server.accept()[0].recv(1) == b"x"


def sleeps():
    began = time.monotonic()
    time.sleep(0.5)
    assert 0.5 <= time.monotonic() - began < 0.502


def epoll():
    poll = select.epoll()
    here, there = socket.socketpair()
    poll.register(here, select.EPOLLIN)
    there.send(b"x")
    assert poll.poll(1)


def names():
    assert socket.getprotobyname("ipv6-icmp") == 58
    assert socket.getservbyname("https") == 443


TRIED = {
    "a script with #!": script,
    "a pseudo-terminal": pseudo_terminal,
    "inotify": inotify,
    "memfd": lambda: call(319, b"x", 0),
    "System V shared memory": lambda: call(29, 0, 4096, 0o1600),
    "a POSIX message queue": lambda: call(240, b"q", 0o102, 0o600, None),
    "asynchronous I/O": lambda: call(206, 8, ctypes.byref(ctypes.c_ulong(0))),
    "io_uring": lambda: call(425, 8, ctypes.create_string_buffer(120)),
    "a socket for both IPs": dual_stack,
    "no address of IPv6": lambda: call_fails(("::1", 7001)),
    "sleep": sleeps,
    "epoll": epoll,
    "protocols and services": names,
    "/dev/shm": lambda: open("/dev/shm/x", "w").close(),
    "/tmp": lambda: open("/tmp/x", "w").close(),
}


def call_fails(address):
    try:
        socket.create_server(address, family=socket.AF_INET6)
    except OSError:
        return
    raise AssertionError("IPv6 is on")


for name, attempt in TRIED.items():
    try:
        attempt()
        print(f"{name}: found", flush=True)
    except (OSError, AssertionError) as error:
        print(f"{name}: {type(error).__name__} {error}", flush=True)
