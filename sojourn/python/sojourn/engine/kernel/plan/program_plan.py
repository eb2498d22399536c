"""Programs of the host in the plan: their command lines, the folders that they see, and routes to
the nodes.

The programs of a flow run on hosts of their own (guest_plan.py), other programs on nodes. A node's
addresses on its cables are known only to its neighbours. So a node that runs a program, or that a
program names, gets one more address, and every other node gets a route to that address along the
fewest links. The node's packets have this source address.

The guest's kernel mounts folders of the host by a path below the run's own folder. So the run's
folder has a link to each of them (`lay_out`).
"""

import os
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sojourn.scenario.realised import Program, Realised

FOLDER = "/scenario"
"""The folder of the programs' own files in the guest, a folder for each program in it."""
LINKS = "see"
"""The folder of the links in the run's folder."""
LEAST_MEMORY_MB = 256
"""Memory for programs, in addition to the run's own."""
_PROGRAM_MB = 128

SPIN_S = 10
"""Processor time that a program may compute without a system call, s."""

_PLACE = re.compile(r"\{(link|address):([^{}:]*)\}")
_END = re.compile(r"\{(server|address)\}")
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "USER": "root",
}
_ROOT_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Folders that are links into /usr on a merged system."""
_BESIDE_USR = "/etc/alternatives"
"""The folder to which links in /usr lead on Debian."""

_PROTOCOLS = {
    "ip": 0,
    "icmp": 1,
    "igmp": 2,
    "ipencap": 4,
    "tcp": 6,
    "udp": 17,
    "ipv6": 41,
    "gre": 47,
    "esp": 50,
    "ah": 51,
    "ipv6-icmp": 58,
    "sctp": 132,
    "udplite": 136,
}
_SERVICES = {
    "echo": 7,
    "discard": 9,
    "ftp": 21,
    "ssh": 22,
    "domain": 53,
    "http": 80,
    "ntp": 123,
    "https": 443,
}
_FILES = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nprotocols: files\nservices: files\n",
    "/etc/protocols": "".join(f"{name} {number}\n" for name, number in _PROTOCOLS.items()),
    "/etc/services": "".join(
        f"{name} {port}/{protocol}\n"
        for name, port in _SERVICES.items()
        for protocol in ("tcp", "udp")
    ),
}


def seen(sees: Sequence[str]) -> list[tuple[str, Path]]:
    """The host's folders that programs see: each with its path in the guest. If /usr is among them,
    so are the folders that its programs need."""
    places = list(sees)
    if "/usr" in places:
        beside = [f"/{name}" for name in _ROOT_LINKS if not os.path.islink(f"/{name}")]
        places += [place for place in (*beside, _BESIDE_USR) if os.path.isdir(place)]
    return [(place, Path(os.path.realpath(place))) for place in dict.fromkeys(places)]


def missing(sees: Sequence[str]) -> list[str]:
    """The folders of this list that do not exist on this host."""
    return [place for place in sees if not os.path.isdir(place)]


def absent(realised: Realised) -> list[str]:
    """The programs of a run that do not exist on this host at the paths where the guest looks for
    them."""
    places = [place for place, _ in seen(realised.program_sees)]
    if "/usr" in places:
        places += [f"/{name}" for name in _ROOT_LINKS]
    inside = tuple(f"{place}/" for place in places)
    found: dict[str, None] = {}
    for program in realised.programs:
        name = program.words[0]
        path = dict(program.env).get("PATH", _ENVIRONMENT["PATH"])
        files = [name] if "/" in name else [f"{folder}/{name}" for folder in path.split(":")]
        # A file elsewhere, as in /tmp, may be one that the guest's programs make.
        if all(file.startswith(inside) for file in files) and not any(map(os.path.lexists, files)):
            found[name] = None
    return list(found)


def memory_mb(programs: Sequence[Program]) -> int:
    """Memory for programs, in addition to the run's own."""
    return max(LEAST_MEMORY_MB, _PROGRAM_MB * len(programs)) if programs else 0


def named_nodes(programs: Sequence[Program]) -> list[str]:
    """The nodes that run a program or that a program names, in order."""
    nodes = [program.node for program in programs if program.end is None]
    for program in programs:
        nodes += [
            name
            for word in program.words
            for kind, name in _PLACE.findall(word)
            if kind == "address"
        ]
    return list(dict.fromkeys(nodes))


def routes(ends: Sequence[tuple[str, str]], nodes: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Routes to these nodes along the fewest links, one from each other node that can reach the
    target. A route is the other node, the target, and the number of the other node's link toward
    the target. `ends`: the ends of each link."""
    into: dict[str, list[int]] = {}
    for number, (_, head) in enumerate(ends):
        into.setdefault(head, []).append(number)
    for target in nodes:
        reached = {target}
        waiting = deque([target])
        while waiting:
            for number in into.get(waiting.popleft(), ()):
                tail = ends[number][0]
                if tail not in reached:
                    reached.add(tail)
                    waiting.append(tail)
                    yield tail, target, number


def words(
    program: Program, devices: Mapping[tuple[str, str], str], addresses: Mapping[str, str]
) -> list[str]:
    """A program's command line with its placeholders filled in. `devices`: by node and link."""

    def filled(found: re.Match[str]) -> str:
        kind, name = found.groups()
        return devices[program.node, name] if kind == "link" else addresses[name]

    return [_PLACE.sub(filled, word) for word in program.words]


def words_of_end(program: Program, server: str, own: str) -> list[str]:
    """The command line of a flow's program. `server` and `own`: the addresses that replace its
    placeholders."""
    addresses = {"server": server, "address": own}
    return [_END.sub(lambda found: addresses[found[1]], word) for word in program.words]


def root(realised: Realised) -> dict[str, Any]:
    """What programs see (crates/guest, plan.rs)."""
    places = [place for place, _ in seen(realised.program_sees)]
    links = [
        (f"/{name}", os.readlink(f"/{name}"))
        for name in _ROOT_LINKS
        if "/usr" in places and os.path.islink(f"/{name}")
    ]
    files = dict(_FILES)
    for program in realised.programs:
        files |= {f"{FOLDER}/{program.name}/{name}": text for name, text in program.files}
    return {
        "sees": [(f"/{LINKS}/{number}", place) for number, place in enumerate(places)],
        "links": links,
        "files": list(files.items()),
        "folder": FOLDER,
    }


def arguments(realised: Realised) -> tuple[str, ...]:
    """Arguments of the guest's command line (linux/README.md)."""
    if not realised.programs:
        return ()
    return (
        "processor=guest",
        f"syscall_ns={realised.program_syscall_ns}",
        f"spin_s={SPIN_S}",
    )


def conditions() -> dict[str, str]:
    """The instructions of the host's processor that programs can execute, as a condition of the
    Run."""
    if _faults_cpuid():
        return {"programs": "rdtsc and cpuid are the guest's"}
    return {
        "programs": "rdtsc is the guest's, but this host can't hide rdrand: a program that uses it differs"
        " from run to run"
    }


@cache
def _faults_cpuid() -> bool:
    """Whether this host's processor can be told to fault at cpuid."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return "cpuid_fault" in text.split()


def plan_of(program: Program, namespace: str, argv: Sequence[str]) -> dict[str, Any]:
    """A program (crates/guest, plan.rs)."""
    plan: dict[str, Any] = {
        "name": program.name,
        "namespace": namespace,
        "argv": list(argv),
        "env": _ENVIRONMENT | dict(program.env),
        "start_ns": program.start_ns,
    }
    if program.end is not None:
        _, server, _ = program.end
        # A server starts before the run, so that it is ready before its client.
        plan |= {"start_ns": None} if server else {}
        plan |= {} if program.stop_ns is None else {"stop_ns": program.stop_ns}
    return plan


def lay_out(folder: Path, sees: Sequence[str]) -> None:
    """Makes the links to the host's folders in the run's folder."""
    (folder / LINKS).mkdir()
    for number, (_, target) in enumerate(seen(sees)):
        (folder / LINKS / str(number)).symlink_to(target)
