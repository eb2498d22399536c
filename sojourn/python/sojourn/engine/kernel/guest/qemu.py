"""The stock guest: Debian's own kernel, nothing compiled, in QEMU, which counts instructions.

Under `-icount` virtual time advances by one nanosecond per instruction. So computing in the guest
takes virtual time, the same in every run. It is slower than the built guest (a start takes some CPU
seconds) and has no simulated cards: its links are veth pairs with htb.

It is repeatable because it has a fixed CPU without host features, a clock and a seed of its own,
and no device that the host writes to. Its virtio does not use ioeventfd, whose notifications race
with the virtual CPU. Results are written only after the measurement, and QEMU runs with
`rr=record`.

Why `rr=record`: when the virtual CPU sleeps, QEMU's main thread advances virtual time to the next
timer. The main thread may see the CPU asleep before the CPU's thread has counted its last
instructions. Then time advances too far, by one ns for each of these instructions. Whether that
happens depends on the host's scheduler (accel/tcg/tcg-accel-ops-rr.c, softmmu/icount.c:
icount_start_warp_timer against icount_process_data). While QEMU records, a lock keeps the main
thread out until they are counted. The recording itself is not used.
"""

import lzma
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterable, Mapping
from functools import cache as once
from pathlib import Path

from sojourn.engine.kernel.guest import (
    cache,
    cpio,
    host,
    initrd,
    packages,
)
from sojourn.engine.kernel.guest.endings import GuestError
from sojourn.engine.kernel.guest.uml import Report, SetupProgress, nothing

KIND = "qemu"
BINARY = "vmlinux"
EMULATOR = "qemu-system-x86_64"
RECIPE = b"1"

ICOUNT = "shift=0,sleep=off,rr=record,rrfile=/dev/null"
"""shift=0: a nanosecond per instruction. sleep=off: a CPU that sleeps doesn't wait for the host.
rr=record: see above."""

_META_PACKAGES = ("linux-image-6.12-cloud-amd64", "linux-image-cloud-amd64")
"""Packages that depend on the newest kernel of their line. The cloud kernels are for virtual
machines and therefore small. 6.12 is the release of the built guest."""

_VERSIONED = r"linux-image-\d.*-cloud-amd64"

ROOM_BYTES = 600_000_000

WANTED_MODULES = (
    *("sch_*", "tcp_*", "cls_basic", "cls_flow", "cls_flower", "cls_fw", "cls_matchall", "cls_u32"),
    *(
        "act_gact",
        "act_mirred",
        "act_skbedit",
        "veth",
        "ifb",
        "dummy",
        "inet_diag",
        "udp_diag",
        "af_packet_diag",
    ),
)
"""Modules that scenarios can need: disciplines, congestion controls, filters, devices."""

UNWANTED_MODULES = frozenset({"sch_teql", "sch_taprio", "sch_mqprio", "sch_mqprio_lib", "tcp_diag"})
"""Modules that are left out: disciplines for devices with several queues, and a module of an
address family that no scenario uses."""

LATE_MODULES = ("virtio_pci", "virtio_console")
"""Modules of the port for the results, needed if the kernel does not have it built in. They are
loaded after the measurement."""

_SIGNED = b"~Module signature appended~\n"


def edits_key() -> str:
    """Identifies our changes to the kernel's package."""
    return cache.key(
        {"recipe": RECIPE, "modules": " ".join(WANTED_MODULES + LATE_MODULES).encode()}
    )


def find() -> cache.CachedGuest | None:
    """The guest, if it has been fetched."""
    return cache.find(KIND, edits_key())


def fetch(
    report: Report = nothing, given: Path | None = None, again: bool = False
) -> cache.CachedGuest:
    """Fetches and unpacks the guest. If it is there already, does nothing unless `again`.

    Raises:
        GuestError: something is missing, by package name.
    """
    if not again and (cached := find()):
        return cached
    if why := unready():
        raise GuestError(f"can't use the guest qemu: {why}")
    with cache.making() as scratch:
        cache.need_room(ROOM_BYTES)
        report(SetupProgress("fetching Debian's kernel", 0.0))
        kernel = packages.fetch(_kernel_package(given), given)
        report(SetupProgress(f"unpacking {kernel.version}", 0.2))
        root = scratch / "root"
        packages.unpack([kernel], root)
        image = next(root.glob("boot/vmlinuz-*"), None)
        folder = next(root.glob("lib/modules/*"), None) or next(
            root.glob("usr/lib/modules/*"), None
        )
        if image is None or folder is None:
            raise GuestError(
                f"{kernel.file.name} contains no kernel", "remove it: it is then downloaded again"
            )

        report(SetupProgress("unpacking its modules", 0.4))
        modules = read_modules(folder)
        early = load_order(modules, _chosen(modules))
        late = [
            name
            for name in load_order(modules, [m for m in LATE_MODULES if m in modules])
            if name not in early
        ]
        entries = {f"modules/{name}.ko": cpio.file(modules[name]) for name in (*early, *late)}

        report(SetupProgress("packing ip and tc", 0.8))
        built = scratch / "made"
        built.mkdir()
        (built / BINARY).write_bytes(uncompressed(image.read_bytes(), scratch, given))
        (built / "base.cpio").write_bytes(initrd.base(entries, given=given, scratch=scratch))
        cached = cache.publish(
            built,
            f"{KIND}-{kernel.version}-{edits_key()}",
            {
                "kind": KIND,
                "edits": edits_key(),
                "source": f"{kernel.name} {kernel.version}",
                "modules": [f"/modules/{name}.ko" for name in early],
                "late_modules": [f"/modules/{name}.ko" for name in late],
                "kernel_sha256": cache.sha256(built / BINARY),
                "base_sha256": cache.sha256(built / "base.cpio"),
            },
        )
        shutil.rmtree(cache.downloads(), ignore_errors=True)
    report(SetupProgress("done", 1.0))
    return cached


def _kernel_package(given: Path | None) -> str:
    """The full name of the newest kernel's package."""
    if given is not None:
        files = sorted(given.glob("linux-image-*-cloud-amd64_*.deb"))
        named = [file.name.partition("_")[0] for file in files]
        if found := [
            name for name in named if re.fullmatch(_VERSIONED, name) and name not in _META_PACKAGES
        ]:
            return found[-1]
    for meta in _META_PACKAGES:
        if packages.candidate_version(meta):
            for name in packages.depends(meta):
                if re.fullmatch(_VERSIONED, name):
                    return name
    # Its download fails with the hint for a package that can't be fetched.
    return _META_PACKAGES[0]


# ---------------------------------------------------------------------------------------- modules


def read_modules(folder: Path) -> dict[str, bytes]:
    """The kernel modules that scenarios can need, and everything they may depend on, by name:
    unpacked and without signatures."""
    found = {}
    for pattern in (
        "kernel/net/**/*.ko*",
        "kernel/lib/**/*.ko*",
        "kernel/crypto/**/*.ko*",
        "kernel/drivers/**/*.ko*",
    ):
        for file in sorted(folder.glob(pattern)):
            place = file.relative_to(folder).parts
            if place[1] == "drivers" and place[2] not in ("net", "virtio", "char"):
                continue
            if place[1:3] == ("drivers", "net") and len(place) > 4:
                continue
            name = file.name.partition(".ko")[0].replace("-", "_")
            data = file.read_bytes()
            found[name] = without_signature(lzma.decompress(data) if file.suffix == ".xz" else data)
    return found


def _chosen(modules: Iterable[str]) -> list[str]:
    from fnmatch import fnmatchcase

    return sorted(
        name
        for name in modules
        if name not in UNWANTED_MODULES
        and any(fnmatchcase(name, wanted) for wanted in WANTED_MODULES)
    )


def load_order(modules: Mapping[str, bytes], wanted: Iterable[str]) -> list[str]:
    """The wanted modules and their dependencies, each after the modules it depends on. A name that
    has no module file is built in."""
    order: dict[str, None] = {}

    def add(name: str) -> None:
        if name not in order and name in modules:
            for needed in dependencies(modules[name]):
                add(needed)
            order[name] = None

    for name in wanted:
        add(name)
    return list(order)


def dependencies(module: bytes) -> list[str]:
    """The modules that a module names as its dependencies."""
    found = re.search(rb"(?:^|\0)depends=([^\0]*)\0", module)
    return (
        [name.replace("-", "_") for name in found[1].decode().split(",") if name] if found else []
    )


def without_signature(module: bytes) -> bytes:
    """A module without its appended signature. Checking the signature would cost time at every
    start."""
    if not module.endswith(_SIGNED):
        return module
    # struct module_signature: five bytes, three of padding, the signature's length (big endian).
    signer, key, length = struct.unpack(">3xBB3xI", module[-12 - len(_SIGNED) : -len(_SIGNED)])
    return module[: -len(_SIGNED) - 12 - length - signer - key]


# ------------------------------------------------------------------------------------- the kernel


def uncompressed(image: bytes, scratch: Path, given: Path | None) -> bytes:
    """The kernel proper from a bzImage. QEMU starts it directly (PVH), so the emulated CPU need not
    unpack it at every start.

    Source: Documentation/arch/x86/boot.rst, payload_offset and payload_length. The payload's last
    four bytes are its unpacked length.
    """
    if image[0x202:0x206] != b"HdrS":
        raise GuestError(
            "the kernel package's image is not a bzImage", "remove it: it is then downloaded again"
        )
    sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (sectors + 1) * 512 + offset
    payload = image[start : start + length]
    if payload.startswith(b"\x28\xb5\x2f\xfd"):
        kernel = _unzstd(payload[:-4], scratch, given)
    elif payload.startswith(b"\xfd7zXZ\0"):
        kernel = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(payload)
    elif payload.startswith(b"\x1f\x8b"):
        kernel = zlib.decompressobj(31).decompress(payload)
    else:
        kernel = b""
    # If the payload is not an ELF file, the image itself works, too, and costs a few CPU seconds
    # more.
    return kernel if kernel.startswith(b"\x7fELF") else image


def _unzstd(payload: bytes, scratch: Path, given: Path | None) -> bytes:
    program = shutil.which("zstd", path=host.PATH)
    if program is None:
        packages.unpack([packages.fetch("zstd", given)], scratch / "zstd")
        program = str(scratch / "zstd/usr/bin/zstd")
    done = subprocess.run([program, "-dcq"], input=payload, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else b""


# ---------------------------------------------------------------------------------------- running


def unready() -> str | None:
    """Why the stock guest can't run here, apart from not being fetched; None if it can."""
    if sys.platform != "linux":
        return f"it needs a Linux host; this host has {sys.platform}"
    if not host.has(EMULATOR):
        return f"there is no {EMULATOR} in {host.PATH}: apt-get install qemu-system-x86"
    return None


@once
def decides() -> bytes:
    """QEMU's version and command line. A run's bytes depend on them, on the guest's files, on the
    scenario and on the seed."""
    try:
        version = subprocess.run(
            [EMULATOR, "--version"], env={"PATH": host.PATH}, capture_output=True, check=False
        ).stdout
    except OSError:
        # QEMU can't run here; `unready` reports why.
        version = b""
    return "\0".join(command(Path(), 0, 0)).encode() + b"\0" + version


def command(folder: Path, seed: int, memory_mb: int) -> list[str]:
    """QEMU's command line. QEMU runs in the run's folder."""
    kernel = " ".join(
        (
            *(
                "console=ttyS0",
                "quiet",
                "panic=-1",
                "nokaslr",
                "random.trust_cpu=1",
                "mitigations=off",
            ),
            *("init_on_alloc=0", "cryptomgr.notests", "tsc=reliable", "no_timer_check"),
        )
    )
    return [
        *(EMULATOR, "-accel", "tcg,thread=single", "-icount", ICOUNT),
        *("-cpu", "qemu64,+rdrand", "-M", "pc", "-m", str(memory_mb), "-smp", "1"),
        *("-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-nic", "none"),
        *("-rtc", "base=2024-01-01T00:00:00,clock=vm", "-seed", str(seed & 0xFFFF_FFFF)),
        *("-kernel", str(folder / BINARY), "-initrd", "initrd", "-append", kernel),
        *("-chardev", "file,id=c,path=console,append=on", "-serial", "chardev:c"),
        *("-device", "virtio-serial-pci,ioeventfd=off", "-chardev", "file,id=r,path=results.tar"),
        *("-device", "virtserialport,chardev=r,name=results"),
    ]


def environment(folder: Path) -> dict[str, str]:
    """QEMU's whole environment."""
    return {"PATH": host.PATH, "HOME": str(folder), "LC_ALL": "C"}
