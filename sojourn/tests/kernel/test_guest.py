"""The guests: their sources, their cache, and how they start and end. Tests that need a guest are
skipped where none is built."""

import contextlib
import fcntl
import json
import lzma
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest
from first_program import boot_mode, compiled

from sojourn import cleanup
from sojourn import engine as engines
from sojourn.engine.kernel import engine
from sojourn.engine.kernel.guest import (
    Boot,
    Booted,
    Guest,
    GuestError,
    GuestRunError,
    awake,
    cache,
    cpio,
    elf,
    guests,
    host,
    initrd,
    overlay,
    packages,
    qemu,
    ready,
    run,
    suites,
    uml,
)
from sojourn.engine.kernel.guest import boot as booting
from sojourn.engine.kernel.plan import guest_plan as plan
from sojourn.engine.kernel.releases import RELEASES, USUAL, Release, version_in
from sojourn.engine.protocol import Cancelled
from sojourn.engine.verify import verify
from sojourn.scenario import loads

# -------------------------------------------------------------------------------------------- cpio


def unpacked(archive: bytes) -> dict[str, tuple[int, bytes, tuple[int, int]]]:
    """Reads a newc archive by the format's description, independently of its writer."""
    found, at = {}, 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        name = archive[at + 110 : at + 110 + fields[11] - 1].decode()
        start = (at + 110 + fields[11] + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found[name] = (fields[1], archive[start : start + fields[6]], (fields[9], fields[10]))
        at = (start + fields[6] + 3) // 4 * 4


def test_an_archive_contains_the_added_files_and_their_folders() -> None:
    entries = {
        "bin/tool": cpio.file(b"abc", executable=True),
        "bin/alias": cpio.symlink("/bin/tool"),
        "dev/console": cpio.character_device(5, 1),
        "empty": cpio.file(b""),
    }
    found = unpacked(cpio.archive(entries, ("proc",)))
    assert set(found) == {"bin", "bin/tool", "bin/alias", "dev", "dev/console", "empty", "proc"}
    assert found["bin/tool"][:2] == (stat.S_IFREG | 0o755, b"abc")
    assert found["bin/alias"][:2] == (stat.S_IFLNK | 0o777, b"/bin/tool")
    assert found["dev/console"] == (stat.S_IFCHR | 0o600, b"", (5, 1))
    assert stat.S_ISDIR(found["proc"][0])


def test_an_archive_does_not_depend_on_the_order_of_its_entries() -> None:
    entries = {"b": cpio.file(b"2"), "a/x": cpio.file(b"1")}
    assert cpio.archive(entries) == cpio.archive(dict(reversed(entries.items())))


def test_archives_can_follow_one_another() -> None:
    assert len(cpio.archive({"a": cpio.file(b"x" * 700)})) % 512 == 0


@pytest.mark.parametrize("path", ["/a", "a//b", "../a", "a/./b", ""])
def test_a_path_that_is_not_plain_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        cpio.archive({path: cpio.file(b"")})


def test_a_file_can_not_be_a_directory_too() -> None:
    with pytest.raises(ValueError, match="a is a file and a directory"):
        cpio.archive({"a": cpio.file(b""), "a/b": cpio.file(b"")})


# -------------------------------------------------------------------------------------------- ELF


@pytest.mark.skipif(not shutil.which("ldd"), reason="there is no ldd to compare with")
def test_a_program_s_closure_is_what_the_loader_would_load() -> None:
    program = Path(shutil.which("tar") or sys.executable).resolve()
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    wanted = {Path(path).name for path in re.findall(r"(/\S+) \(0x", said)}
    found = elf.closure([str(program).lstrip("/")], [Path("/")])
    assert {Path(path).name for path in found} == wanted | {program.name}


def test_a_file_that_is_not_a_program_is_refused() -> None:
    with pytest.raises(ValueError, match="not a 64-bit"):
        elf.needs(b"#!/bin/sh\n")
    with pytest.raises(ValueError, match="broken"):
        elf.needs(Path(sys.executable).resolve().read_bytes()[:70])


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    program = tmp_path / "usr/bin/python"
    program.parent.mkdir(parents=True)
    shutil.copy(Path(sys.executable).resolve(), program)
    with pytest.raises(GuestError, match=r"ld-linux|\.so"):
        elf.closure(["usr/bin/python"], [tmp_path])


@pytest.mark.skipif(not shutil.which("tc"), reason="iproute2 is not installed")
def test_the_base_has_ip_and_tc_with_all_their_libraries() -> None:
    found = unpacked(initrd.base())
    for name in ("ip", "tc"):
        target = (
            found[f"bin/{name}"][1].decode().lstrip("/")
            if stat.S_ISLNK(found[f"bin/{name}"][0])
            else f"bin/{name}"
        )
        asked = elf.needs(found[target][1])
        assert asked.interpreter
        assert asked.interpreter.lstrip("/") in found
        assert all(
            any(path.endswith(f"/{library}") for path in found) for library in asked.libraries
        )
    assert {"proc", "sys", "host", "dev/console"} <= set(found)


def test_without_iproute2_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(initrd, "_find", lambda *_: None)
    with pytest.raises(GuestError) as caught:
        initrd.base()
    assert "iproute2" in caught.value.hint


# ----------------------------------------------------------------------------- sources from Linux

DRIVER = uml.edits(USUAL)["simnic.c"].decode()
README = (Path(uml.__file__).parent.parent / "linux" / "README.md").read_text(encoding="utf-8")


def of_each_release(test: Callable[..., None]) -> Callable[..., None]:
    """Runs a test for each kernel that a guest can be built of."""
    return pytest.mark.parametrize("release", RELEASES, ids=[each.name for each in RELEASES])(test)


def patch_of(release: Release) -> str:
    return uml.edits(release)[release.patch].decode()


def config_of(release: Release) -> str:
    return uml.edits(release)[uml.CONFIG].decode()


def hunks(release: Release) -> Iterator[tuple[str, int, list[str], list[str]]]:
    """Yields the hunks of the patch: file, first line, the lines before and the lines after."""
    file = ""
    lines = patch_of(release).splitlines()
    at = 0
    while at < len(lines):
        if lines[at].startswith("--- a/"):
            file = lines[at].removeprefix("--- a/")
            assert lines[at + 1] == f"+++ b/{file}"
            at += 2
            continue
        found = re.fullmatch(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@.*", lines[at])
        assert found, f"line {at + 1} of the patch is neither a header nor a hunk"
        body = []
        for line in lines[at + 1 :]:
            if line.startswith(("@@ ", "--- a/")):
                break
            body.append(line)
        before = [line[1:] for line in body if line[:1] in " -"]
        after = [line[1:] for line in body if line[:1] in " +"]
        assert (len(before), len(after)) == (int(found[2]), int(found[4])), f"hunk at line {at + 1}"
        yield file, int(found[1]), before, after
        at += 1 + len(body)


@pytest.mark.skipif(not shutil.which("patch"), reason="there is no patch")
@of_each_release
def test_the_patch_applies_where_its_context_is(release: Release, tmp_path: Path) -> None:
    sources: dict[str, list[str]] = {}
    for file, first, before, _ in hunks(release):
        lines = sources.setdefault(file, [])
        lines += [f"/* line {n} */" for n in range(len(lines) + 1, first)]
        lines += before
    for file, lines in sources.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = ["patch", "-p1", "--fuzz=0", "--batch", "--forward"]
    subprocess.run(
        command, cwd=tmp_path, input=patch_of(release).encode(), check=True, capture_output=True
    )
    for file, _, _, after in hunks(release):
        assert "\n".join(after) in (tmp_path / file).read_text(encoding="utf-8")


@of_each_release
def test_each_edit_is_explained(release: Release) -> None:
    # README lists several files of a folder in one row, by name alone.
    for file in {file for file, *_ in hunks(release)}:
        assert file in README or file.rpartition("/")[2] in README, file


def test_each_of_the_driver_s_files_is_explained() -> None:
    names = set(re.findall(r"^(?:NUMBER|COUNTER|STATE)\((\w+)", DRIVER, re.MULTILINE)) | {"cells"}
    assert len(names) > 20
    table = README[README.index("| file | unit |") :]
    explained = {
        name
        for row in re.findall(r"^\| ([\w, ]+) \|", table, re.MULTILINE)
        for name in row.split(", ")
    }
    assert names == explained - {"file"}


@of_each_release
def test_the_kernel_s_parts_state_their_licence(release: Release) -> None:
    for name in (*uml.DRIVERS, *release.drivers):
        assert "SPDX-License-Identifier: GPL-2.0" in uml.edits(release)[name].decode(), name
    assert "SPDX-License-Identifier: GPL-2.0" in config_of(USUAL)
    assert "GPL-2.0-only" in (Path(uml.__file__).parent.parent / "linux" / "LICENSE").read_text(
        encoding="utf-8"
    )


@of_each_release
def test_the_configuration_has_every_discipline_and_congestion_control_of_a_scenario(
    release: Release,
) -> None:
    from sojourn.scenario.linux import CONGESTION
    from sojourn.scenario.qdisc import QDISCS

    config = config_of(release)
    always = {"pfifo", "bfifo", "pfifo_fast", "pfifo_head_drop", "reno", "fixed"}
    ours_alone = {
        "adt",
        "avq",
        "blue",
        "cobalt",
        "fred",
        *(name for name, one in CONGESTION.items() if not one.in_linux),
    }
    newer = {
        kind
        for kind, record in QDISCS.items()
        if (record.since or (0, 0)) > version_in(release.name)
    }
    assert newer == ({"cake_mq", "dualpi2"} if release is USUAL else set())
    # The kernel builds these two with other disciplines, so they have no option of their own.
    always |= {"mq", "cake_mq"}
    for kind in set(QDISCS) - always - ours_alone - newer:
        assert f"CONFIG_NET_SCH_{kind.upper()}=y" in config, kind
    kconfig = {"highspeed": "HSTCP"}
    for name in release.congestion:
        assert f"CONFIG_SIM{name.upper()}=y" in config, name
    for name in set(CONGESTION) - always - ours_alone:
        assert f"CONFIG_TCP_CONG_{kconfig.get(name, name.upper())}=y" in config, name


@of_each_release
def test_no_setting_is_made_twice(release: Release) -> None:
    names = re.findall(r"^(CONFIG_\w+)=", config_of(release), re.MULTILINE)
    assert len(names) == len(set(names))


def test_a_setting_that_a_kernel_ignores_is_detected() -> None:
    assert uml.not_taken("# words\nCONFIG_A=y\nCONFIG_B=4\n", "CONFIG_A=y\nCONFIG_B=2\n") == [
        "CONFIG_B=4"
    ]


# ------------------------------------------------------------------------------------------ cache


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sojourn" / "kernel"


def test_a_key_counts_names_and_contents_and_not_their_order() -> None:
    one = cache.key({"a": b"1", "b": b"2"})
    assert one == cache.key({"b": b"2", "a": b"1"})
    assert (
        len(
            {
                one,
                cache.key({"a": b"2", "b": b"1"}),
                cache.key({"ab": b"12"}),
                cache.key({"a": b"1"}),
            }
        )
        == 4
    )


@pytest.mark.parametrize("name", uml.edits(USUAL))
def test_each_edit_counts_in_the_guest_s_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = uml.edits_key.__wrapped__(USUAL)
    changed = {**uml.edits(USUAL), name: uml.edits(USUAL)[name] + b"\n"}
    monkeypatch.setattr(uml, "edits", lambda _: changed)
    assert uml.edits_key.__wrapped__(USUAL) != before


def test_the_kernel_s_source_counts_in_the_guest_s_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uml, "edits", lambda _: {})
    assert len({uml.edits_key.__wrapped__(release) for release in RELEASES}) == len(RELEASES)


def test_a_guest_is_found_by_the_hash_of_its_inputs(own_cache: Path) -> None:
    with cache.making() as scratch:
        made = scratch / "made"
        made.mkdir()
        (made / "kernel").write_bytes(b"k")
        kept = cache.publish(made, "uml-1-x", {"edits": "x"})
    assert kept.folder == own_cache / "uml-1-x"
    assert (kept.folder / "kernel").read_bytes() == b"k"
    found = cache.find("uml", "x")
    assert found
    assert found.folder == kept.folder
    assert cache.find("uml", "y") is None
    assert cache.find("qemu", "x") is None


def test_an_interrupted_setup_leaves_nothing(own_cache: Path) -> None:
    with contextlib.suppress(KeyboardInterrupt), cache.making() as scratch:
        (scratch / "half").write_bytes(b"x")
        raise KeyboardInterrupt
    assert [path.name for path in own_cache.iterdir()] == ["lock"]


def test_remains_of_a_killed_process_are_removed(own_cache: Path) -> None:
    (own_cache / ".making.0123456789abcdef").mkdir(parents=True)
    with cache.making() as scratch:
        assert [path.name for path in own_cache.glob(".making.*")] == [scratch.name]


def test_downloads_and_unpacking_end_with_a_killed_setup(own_cache: Path, tmp_path: Path) -> None:
    """The next process of ours removes the folder of a killed setup."""
    program = """
from pathlib import Path
from sojourn.engine.kernel.guest import cache, packages
with cache.making() as scratch:
    (scratch / "half").write_bytes(b"x")
    packages._run(["sh", "-c", "echo $$ > pid.new; mv pid.new pid; exec sleep 600"], Path.cwd())
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=tmp_path) as setup:
        file = tmp_path / "pid"
        while not file.exists():
            assert setup.poll() is None
            time.sleep(0.02)
        child = Path("/proc") / file.read_text().strip() / "stat"
        assert list(own_cache.glob(".making.*/half"))
        setup.kill()
    while child.exists() and child.read_text().rpartition(")")[2].split()[0] not in "ZX":
        time.sleep(0.02)
    cleanup.clean()
    assert not list(own_cache.glob(".making.*"))


def publish(name: str, edits: str, at: int) -> Path:
    """A guest of this name in the cache, made at this time."""
    with cache.making() as scratch:
        made = scratch / "made"
        made.mkdir()
        (made / "kernel").write_bytes(b"k" * 1000)
        kept = cache.publish(made, name, {"edits": edits})
    os.utime(kept.folder / cache.MANIFEST, (at, at))
    return kept.folder


def test_superseded_guests_are_removed_and_the_others_stay(own_cache: Path) -> None:
    current = publish("uml-2-new", uml.edits_key(USUAL), 20)
    older = publish("uml-1-new", uml.edits_key(USUAL), 10)
    beside = publish("uml-7-new", uml.edits_key(RELEASES[1]), 1)
    other = publish("uml-2-old", "other edits", 30)
    stock = publish("qemu-1-new", qemu.edits_key(), 5)
    log = own_cache / "failed-build.log"
    log.write_text("it failed")
    cache.downloads().mkdir()
    (cache.downloads() / "half.deb").write_bytes(b"x" * 500)
    names, freed = guests.clean()
    assert sorted(names) == sorted([older.name, other.name, log.name])
    assert freed > 2500
    assert current.is_dir()
    assert stock.is_dir()
    assert beside.is_dir()
    kept = sorted(path.name for path in own_cache.iterdir())
    assert kept == ["lock", "qemu-1-new", "uml-2-new", "uml-7-new"]
    assert guests.clean() == ([], 0)


def test_cleaning_reports_what_it_removed(own_cache: Path) -> None:
    publish("uml-1-old", "other edits", 10)
    words = [sys.executable, "-m", "sojourn", "clean"]
    first, second = (
        subprocess.run(words, capture_output=True, text=True, check=True) for _ in range(2)
    )
    assert "removed the guest uml-1-old" in first.stdout
    # Another test may run beside this one; its process is left alone.
    assert second.stdout.strip().splitlines()[-1] == "nothing to remove"


def test_two_can_not_make_guests_at_once(own_cache: Path) -> None:
    own_cache.mkdir(parents=True)
    with open(own_cache / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
        with pytest.raises(GuestError, match="another"), cache.making():
            pass


def test_a_disk_that_is_too_full_is_refused(own_cache: Path) -> None:
    own_cache.mkdir(parents=True)
    with pytest.raises(GuestError, match="has room for"):
        cache.need_room(1 << 62)


# --------------------------------------------------------------------------------------- packages


def test_an_unavailable_package_is_named(own_cache: Path) -> None:
    with pytest.raises(GuestError, match="no-such-package-of-ours") as caught:
        packages.fetch("no-such-package-of-ours")
    assert "--from FOLDER" in caught.value.hint


def test_without_apt_the_alternative_is_named(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "has", lambda _: False)
    with pytest.raises(GuestError) as caught:
        packages.fetch("flex")
    assert "flex" in caught.value.problem
    assert "--from FOLDER" in caught.value.hint


def test_a_given_file_is_used_before_the_network(tmp_path: Path) -> None:
    (tmp_path / "bison_2%3a3.8.2+dfsg-1+b1_amd64.deb").write_bytes(b"")
    (tmp_path / "bison-doc_9_all.deb").write_bytes(b"")
    found = packages.fetch("bison", tmp_path)
    assert (found.name, found.version) == ("bison", "2:3.8.2+dfsg-1+b1")


STANZAS = """\
# Of the year 2025.
Types: deb
URIs: http://near/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://near/debian-security
Suites: bookworm-security
Components: main
"""


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        (
            "sources.list.d/debian.sources",
            STANZAS,
            "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
            "http://near/debian trixie-backports main\n",
        ),
        (
            "sources.list",
            "# deb http://a/debian sid main\n"
            "deb [arch=amd64 signed-by=/k.gpg] http://mirror/debian/ trixie main contrib\n",
            "deb [arch=amd64 signed-by=/k.gpg] http://mirror/debian/ trixie-backports main\n",
        ),
    ],
)
def test_a_suite_comes_from_the_archive_of_the_host_s_apt(
    name: str, text: str, line: str, tmp_path: Path
) -> None:
    (tmp_path / "etc/sources.list.d").mkdir(parents=True)
    other = "deb https://elsewhere/node_20.x nodistro main\n"
    (tmp_path / "etc/sources.list.d/a.list").write_text(other)
    (tmp_path / "etc" / name).write_text(text)
    mine = tmp_path / "mine"
    options = suites.configured("trixie-backports", mine, tmp_path / "etc")
    assert (mine / "sources.list").read_text() == line
    assert options == ["-c", str(mine / "apt.conf")]


def test_a_host_without_debian_s_archive_gets_a_hint(tmp_path: Path) -> None:
    ubuntu = "deb http://near/ubuntu noble main universe\n"
    (tmp_path / "sources.list").write_text(ubuntu)
    with pytest.raises(GuestError, match=r"no source in .* is of that archive") as caught:
        suites.configured("trixie-backports", tmp_path / "mine", tmp_path)
    assert "--from FOLDER" in caught.value.hint


@pytest.mark.skipif(not shutil.which("apt-config"), reason="there is no apt")
def test_apt_writes_a_suite_s_files_into_a_separate_folder(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text("deb http://mirror/debian trixie main\n")
    options = suites.configured("trixie-backports", tmp_path / "mine", tmp_path)
    shell = subprocess.run(
        [
            *("apt-config", *options, "shell", "LISTS", "Dir::State::lists/d"),
            *("CACHE", "Dir::Cache::archives/d", "FROM", "Dir::Etc::SourceList/f"),
            *("MORE", "Dir::Etc::SourceParts/f", "HOOK", "APT::Update::Post-Invoke/f"),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = dict(re.findall(r"(\w+)='([^']*)'", shell))
    assert found.pop("MORE") == "/dev/null"
    assert set(found) == {"LISTS", "CACHE", "FROM"}, "the host's hooks must not run"
    assert all(place.startswith(str(tmp_path / "mine")) for place in found.values())


def test_a_damaged_package_is_named_and_fetched_again_next_time(tmp_path: Path) -> None:
    broken = tmp_path / "m4_1_amd64.deb"
    broken.write_bytes(b"not a package")
    with pytest.raises(GuestError, match=r"m4_1_amd64\.deb"):
        packages.unpack([packages.Package("m4", "1", broken)], tmp_path / "out")
    assert not broken.exists()


@pytest.mark.parametrize(
    ("absent", "package"), [("gcc", "gcc"), ("ld", "binutils"), ("perl", "perl")]
)
def test_a_program_that_the_host_lacks_is_named_with_its_package(
    absent: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "has", lambda name: name != absent)
    why = uml.missing_from_host()
    assert why
    assert f"apt-get install {package}" in why


@pytest.mark.parametrize(
    ("name", "why_not"),
    [
        (qemu.EMULATOR, qemu.unready),
        (awake.COMPILER, awake.why_not),
        ("perl", uml.missing_from_host),
    ],
)
def test_a_program_counts_only_if_a_run_finds_it(
    name: str,
    why_not: Callable[[], str | None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    only_ours, a_run_s = tmp_path / "ours", tmp_path / "run"
    for folder in (only_ours, a_run_s):
        folder.mkdir()
    for tool in {*uml._FROM_THE_HOST, name}:
        (only_ours / tool).write_text("#!/bin/sh\nexit 0\n")
        (only_ours / tool).chmod(0o755)
    monkeypatch.setattr(host, "PATH", str(a_run_s))
    assert qemu.environment(tmp_path)["PATH"] == host.PATH
    monkeypatch.setenv("PATH", str(only_ours))
    said = why_not()
    assert said is not None
    assert name in said
    monkeypatch.setenv("PATH", str(a_run_s))
    monkeypatch.setattr(host, "PATH", str(only_ours))
    assert why_not() is None


# ------------------------------------------------------------------------------------------- boot


@dataclass(frozen=True)
class Script:
    """A guest that is a shell script."""

    base: Path
    words: str
    kind: str = "script"

    def command(self, _: Boot) -> list[str]:
        return ["/bin/sh", "-c", self.words]

    def environment(self, _: Boot) -> Mapping[str, str]:
        return {"PATH": "/usr/bin:/bin"}


def boot_script(folder: Path, words: str, limit_s: float = 60.0) -> Booted:
    (folder / "base.cpio").write_bytes(b"BASE")
    return run(Script(folder / "base.cpio", words), Boot(folder, b"OVERLAY", wall_limit_s=limit_s))


def test_a_guest_that_ends_well_hands_over_its_archive(tmp_path: Path) -> None:
    done = boot_script(tmp_path, "echo @BOOT; cat initrd > results.tar; echo @END")
    assert done.archive.read_bytes() == b"BASEOVERLAY"
    assert done.console == "@BOOT\n@END\n"


def test_a_guest_reports_its_time_while_it_runs(tmp_path: Path) -> None:
    # The guest continues when its time has been read; an incomplete line is not a time.
    words = "echo @BOOT; printf '@AT 5\\n@AT 70\\n@AT 9'; while ! [ -e heard ]; do sleep 0.01; done"
    words += "; printf '00\\n'; cat initrd > results.tar; echo @END"
    (tmp_path / "base.cpio").write_bytes(b"BASE")
    times = []

    def reached(now_ns: int) -> bool:
        times.append(now_ns)
        if now_ns == 70:
            (tmp_path / "heard").touch()
        return True

    done = run(
        Script(tmp_path / "base.cpio", words), Boot(tmp_path, b"", wall_limit_s=60.0), reached
    )
    assert set(times) <= {0, 70, 900}
    assert 70 in times
    # Only the last time is kept: it is enough for a reader of the console.
    assert done.console == "@BOOT\n@AT 900\n@END\n"


def test_a_guest_stops_on_request(tmp_path: Path) -> None:
    words = "echo @BOOT; echo @AT 5; sleep 1000"
    (tmp_path / "base.cpio").write_bytes(b"BASE")
    with pytest.raises(Cancelled):
        run(Script(tmp_path / "base.cpio", words), Boot(tmp_path, b""), lambda now_ns: now_ns < 5)


def test_an_archive_of_an_earlier_run_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "results.tar").write_bytes(b"old")
    with pytest.raises(GuestRunError):
        boot_script(tmp_path, "echo @BOOT; echo @END")


def runs_still(pid: int) -> bool:
    """Whether this process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_guest_that_hangs_is_ended_with_all_its_processes(tmp_path: Path) -> None:
    with pytest.raises(GuestRunError) as caught:
        boot_script(tmp_path, "echo @BOOT; sleep 1000 & echo $! > child; wait", limit_s=1.0)
    assert caught.value.ending == "hung"
    assert "in its program" in caught.value.problem
    child = int((tmp_path / "child").read_text())
    # A killed process ends when it next gets a processor.
    end = time.monotonic() + 60
    while runs_still(child) and time.monotonic() < end:
        time.sleep(0.02)
    assert not runs_still(child)


@pytest.mark.parametrize(
    ("words", "ending", "said"),
    [
        ("echo @BOOT; kill -SEGV $$", "killed", "SIGSEGV"),
        ("echo @BOOT; kill -KILL $$", "killed", "SIGKILL"),
        ("echo @BOOT; kill -BUS $$", "killed", "SIGBUS"),
        ("echo /tmp must be not mounted noexec; exit 1", "refused", "exit status 1"),
        ("echo @BOOT; echo '@FAIL plan: no such qdisc'", "gave up", "plan: no such qdisc"),
        ("echo @BOOT; exit 0", "gave up", "before it had written"),
        ("echo 'Kernel panic - not syncing: VFS: no root'; exit 1", "panicked", "VFS: no root"),
        (
            "echo @BOOT; echo 'Kernel panic - not syncing: Out of memory: x'; exit 1",
            "out of memory",
            "256 MB",
        ),
        (
            "echo 'Kernel panic - not syncing: System is deadlocked on memory'; exit 1",
            "out of memory",
            "256 MB",
        ),
        (
            "echo @BOOT; echo 'UML ran out of memory on the host side! This can happen due to a memory limitation or"
            " vm.max_map_count has been reached.'; exit 1",
            "out of memory",
            "vm.max_map_count",
        ),
        ("echo @BOOT; echo '@END'", "gave up", "before it had written"),
    ],
)
def test_each_kind_of_failure_has_its_own_error(
    tmp_path: Path, words: str, ending: str, said: str
) -> None:
    with pytest.raises(GuestRunError) as caught:
        boot_script(tmp_path, words)
    assert caught.value.ending == ending
    assert said in caught.value.problem
    assert "its console ends:" in caught.value.problem
    assert caught.value.hint


def test_a_missing_guest_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "base.cpio").write_bytes(b"")

    class Absent(Script):
        def command(self, _: Boot) -> list[str]:
            return [str(tmp_path / "linux-um")]

    with pytest.raises(GuestError, match="linux-um"):
        run(Absent(tmp_path / "base.cpio", ""), Boot(tmp_path, b""))


def test_the_command_line_differs_by_the_seed_alone() -> None:
    one = uml.command(Path("/somewhere/linux-um"), 1, 256, 2, "")
    two = uml.command(Path("/elsewhere/linux-um"), 2, 256, 2, "")
    assert {a for a, b in zip(one[1:], two[1:], strict=True) if a != b} == {"rngseed=1"}
    assert not any("/somewhere" in word for word in one[1:])


def test_each_folder_that_is_unfit_for_the_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uml, "_unfit", lambda *_: "is mounted noexec")
    with pytest.raises(GuestError) as caught:
        uml.memory_folder(256)
    assert "/dev/shm is mounted noexec" in caught.value.problem
    assert "SOJOURN_TMPDIR" in caught.value.hint


def test_a_folder_without_room_is_unfit(tmp_path: Path) -> None:
    assert "has room for" in str(uml._unfit(tmp_path, 1 << 62))
    assert "can't be used" in str(uml._unfit(tmp_path / "absent", 1))


# ------------------------------------------------------------------------------------ qemu's side


def module(depends: str) -> bytes:
    return b"\x7fELF\0license=GPL\0depends=" + depends.encode() + b"\0name=x\0"


def test_modules_load_after_what_they_need() -> None:
    modules = {
        "sch_a": module("lib-x,other"),
        "lib_x": module("base"),
        "base": module(""),
        "other": module("base"),
        "unused": module(""),
    }
    order = qemu.load_order(modules, ["sch_a", "built_in"])
    assert sorted(order) == ["base", "lib_x", "other", "sch_a"]
    for name in order:
        assert all(
            order.index(needed) < order.index(name) for needed in qemu.dependencies(modules[name])
        )


def test_only_a_signature_is_removed() -> None:
    signature = b"S" * 77
    trailer = (
        struct.pack(">5B3xI", 0, 0, 2, 0, 0, len(signature)) + b"~Module signature appended~\n"
    )
    assert qemu.without_signature(module("a") + signature + trailer) == module("a")
    assert qemu.without_signature(module("a")) == module("a")


@pytest.mark.parametrize(
    "pack", [lzma.compress, lambda data: zlib.compressobj(wbits=31).compress(data)]
)
def test_the_kernel_is_unpacked_from_its_image(pack: object, tmp_path: Path) -> None:
    kernel = b"\x7fELF" + bytes(range(256)) * 400
    if pack is lzma.compress:
        payload = lzma.compress(kernel, check=lzma.CHECK_CRC32)
    else:
        squeezer = zlib.compressobj(wbits=31)
        payload = squeezer.compress(kernel) + squeezer.flush()
    payload += struct.pack("<I", len(kernel))
    header = bytearray(512 * 5)
    header[0x1F1] = 3
    header[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", header, 0x248, 512, len(payload))
    image = bytes(header) + payload + b"trailing"
    assert qemu.uncompressed(image, tmp_path, None) == kernel


def test_an_image_that_can_not_be_unpacked_is_used_as_it_is(tmp_path: Path) -> None:
    header = bytearray(512 * 5)
    header[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", header, 0x248, 0, 16)
    assert qemu.uncompressed(bytes(header), tmp_path, None) == bytes(header)


def test_the_stock_guest_s_fingerprint_counts_which_qemu_runs_it_and_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(version: str) -> str:
        (tmp_path / "qemu").write_text(f"#!/bin/sh\necho {version}\n")
        (tmp_path / "qemu").chmod(0o755)
        qemu.decides.cache_clear()
        return Guest("qemu", tmp_path, "linux 6.12", (), (), "f00d").fingerprint

    monkeypatch.setattr(qemu, "EMULATOR", str(tmp_path / "qemu"))
    older, newer = said("7.2"), said("10.0")
    assert older == said("7.2")
    monkeypatch.setattr(qemu, "ICOUNT", "shift=1")
    assert len({older, newer, said("7.2")}) == 3
    monkeypatch.undo()
    qemu.decides.cache_clear()


def test_an_engine_s_build_counts_guest_program_and_our_sources_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = {"": engine.build("kernel", "f00d"), "guest": engine.build("kernel", "beef")}
    built["engine"] = engine.build("netns", "f00d")
    assert engine.build("kernel", "f00d") == built[""]
    (tmp_path / "other").write_bytes(b"another program")
    monkeypatch.setattr(engine, "program", lambda: tmp_path / "other")
    built["program"] = engine.build("kernel", "f00d")
    monkeypatch.undo()
    monkeypatch.setattr(engine, "SOURCES", engine.SOURCES[1:])
    engine._sources.cache_clear()
    built["sources"] = engine.build("kernel", "f00d")
    monkeypatch.undo()
    engine._sources.cache_clear()
    assert len(set(built.values())) == len(built)
    assert engine.build("kernel", "f00d") == built[""]


def test_a_run_of_a_guest_equals_its_repetition(kernel_uml: str) -> None:
    scenario = """
        duration = "2 s"
        [bottleneck]
        rate = "2 Mbit/s"
        delay = "5 ms"
        qdisc = "codel"
        [[flow]]
        kind = "bulk"
        [[flow]]
        kind = "ping"
    """
    made = engines.run(loads(scenario), engine=kernel_uml)
    assert made.meta.engine_build == engines.find(kernel_uml).build
    (found,) = verify([made])
    assert (found.equal, found.same_build, found.same_scenario) == (True, True, True)


def test_a_stored_seed_of_a_guest_is_used_without_a_guest(
    kernel_uml: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = tmp_path / "sojourn" / "seeds"
    (tmp_path / "sojourn").mkdir()
    (tmp_path / "sojourn" / "kernel").symlink_to(cache.root())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    scenario = loads(
        """
        duration = "1 s"
        [bottleneck]
        rate = "2 Mbit/s"
        delay = "5 ms"
        [[flow]]
        kind = "bulk"
    """
    )
    made = engines.run(scenario, engine=kernel_uml)
    assert len([each for each in seeds.iterdir() if len(each.name) == 64]) == 1
    monkeypatch.setattr(booting, "run", lambda *_: pytest.fail("a guest was booted"))
    taken = engines.run(scenario, engine=kernel_uml)
    assert (taken.meta.checksums, taken.meta.cpu_s) == (made.meta.checksums, made.meta.cpu_s)


def test_a_guest_s_time_moves_the_progress(kernel_uml: str) -> None:
    scenario = """
        duration = "60 s"
        [bottleneck]
        rate = "10 Mbit/s"
        delay = "5 ms"
        [[flow]]
        kind = "bulk"
    """
    seen: list[engines.Progress] = []
    engines.run(loads(scenario), engine=kernel_uml, progress=seen.append)
    assert any(p.finished == 0 and p.fraction > 0 for p in seen)
    assert [p.fraction for p in seen] == sorted(p.fraction for p in seen)


def test_a_guest_that_fails_costs_no_other_run(
    kernel_uml: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = booting.run

    def starved(guest: Guest, one: Boot, reached: Callable[[int], bool]) -> Booted:
        return sound(guest, replace(one, memory_mb=12) if one.seed == 2 else one, reached)

    monkeypatch.setattr(booting, "run", starved)
    scenario = """
        duration = "2 s"
        [bottleneck]
        rate = "2 Mbit/s"
        delay = "5 ms"
        [[flow]]
        kind = "bulk"
    """
    with pytest.raises(engines.UnfinishedError) as stop:
        engines.run(loads(scenario), seeds=3, engine=kernel_uml)
    [failure] = stop.value.failed
    assert isinstance(failure.error, GuestRunError)
    assert failure.seed == 2
    assert [run.seeds for run in stop.value.runs] == [(1, 3)]


# ------------------------------------------------------------------------------- the command line


def command_line(*words: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; from sojourn.cli import main; main(sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-c", program, "kernel", *words],
        capture_output=True,
        text=True,
        check=False,
    )


def test_status_exits_with_1_and_prints_how_to_make_a_guest(own_cache: Path) -> None:
    done = command_line("status")
    assert done.returncode == 1
    assert "uml: " in done.stdout
    assert "qemu: " in done.stdout
    assert "uml-7.3: it has not been made yet: sojourn kernel setup --linux 7.3\n" in done.stdout


def test_there_is_no_stock_guest_of_another_kernel(own_cache: Path) -> None:
    done = command_line("setup", "--guest", "qemu", "--linux", "7.3")
    assert done.returncode == 2
    assert "sojourn kernel setup --linux 7.3" in done.stderr


def test_a_guest_that_does_not_exist_is_wrong_input() -> None:
    assert command_line("setup", "--guest", "xen").returncode == 2


# ----------------------------------------------------------------------------------- with a guest


@pytest.fixture(scope="session")
def guest() -> Guest:
    state = ready("uml")
    if state.guest is None or state.why_not:
        pytest.skip(f"no guest to try: {state.why_not}")
    return state.guest


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("init.c", tmp_path_factory.mktemp("program"))


def numbers(console: str, name: str) -> list[int]:
    return [
        int(words.split()[-1]) for words in re.findall(rf"^{name} (.*)$", console, re.MULTILINE)
    ]


@pytest.fixture(scope="session")
def measured(guest: Guest, program: Path, tmp_path_factory: pytest.TempPathFactory) -> Booted:
    return boot_mode(guest, program, tmp_path_factory.mktemp("measured"), "measure")


READ_NS = 256
"""Cost of reading the clock for a process in the guest, ns."""


def test_an_idle_ping_takes_twice_the_delay_and_its_transmission(measured: Booted) -> None:
    # 84 and 1500 bytes of IP, with nothing around them: 67.2 µs and 1.2 ms at 10 Mbit/s, each way.
    _, small, large = numbers(measured.console, "rtt")
    assert small == 2 * (10_000_000 + 67_200) + READ_NS
    assert large == 2 * (10_000_000 + 1_200_000) + READ_NS


def test_a_link_that_never_runs_empty_sends_at_its_rate_exactly(measured: Booted) -> None:
    arrivals = numbers(measured.console, "arrival")
    bare, framed = arrivals[:50], arrivals[50:]
    # 1500 bytes, then 1538 with framing, through a ring of 8 under byte queue limits: 1.2 ms and
    # 1.2304 ms.
    assert {b - a for a, b in pairwise(bare)} == {1_200_000}
    assert {b - a for a, b in pairwise(framed)} == {1_230_400}


def words(console: str, name: str) -> list[int]:
    """The numbers of the line of this name."""
    found = re.search(rf"^{name} (.*)$", console, re.MULTILINE)
    assert found, console
    return [int(word) for word in found[1].split()]


def test_a_rate_change_applies_to_the_rest_of_a_transmission(measured: Booted) -> None:
    # 1.2 ms at 10 Mbit/s; the rest at the change takes twice its time. Then 10 ms of delay.
    change, arrived = words(measured.console, "slower")
    assert 0 < change < 1_200_000
    assert arrived == change + 2 * (1_200_000 - change) + 10_000_000


def test_a_transmission_continues_after_an_outage(measured: Booted) -> None:
    stopped, back, arrived = words(measured.console, "outage")
    assert 0 < stopped < 1_200_000
    assert arrived == back + (1_200_000 - stopped) + 10_000_000


def test_a_card_counts_what_it_does(measured: Booted) -> None:
    assert numbers(measured.console, "lost") == [5]
    assert numbers(measured.console, "ring") == [8]
    assert numbers(measured.console, "left") == [0]
    assert numbers(measured.console, "inflight") == [0]


def test_the_same_seed_gives_the_same_bytes_anywhere_and_another_gives_others(
    guest: Guest, program: Path, measured: Booted, tmp_path: Path
) -> None:
    again = boot_mode(guest, program, tmp_path / "in another folder", "measure")
    assert again.console == measured.console
    assert again.archive.read_bytes() == measured.archive.read_bytes()
    other = boot_mode(guest, program, tmp_path / "other", "measure", seed=2)
    assert other.archive.read_bytes() != measured.archive.read_bytes()


@pytest.mark.parametrize(
    ("mode", "ending"),
    [("exit", "panicked"), ("fail", "gave up"), ("eat", "out of memory"), ("leave", "gave up")],
)
def test_the_failure_of_a_program_is_reported_with_its_cause(
    guest: Guest, program: Path, tmp_path: Path, mode: str, ending: str
) -> None:
    with pytest.raises(GuestRunError) as caught:
        boot_mode(guest, program, tmp_path, mode)
    assert caught.value.ending == ending


def test_a_program_that_uses_no_virtual_time_is_ended(
    guest: Guest, program: Path, tmp_path: Path
) -> None:
    with pytest.raises(GuestRunError) as caught:
        boot_mode(guest, program, tmp_path, "spin", limit_s=3.0)
    assert caught.value.ending == "hung"


def test_a_guest_leaves_only_its_files(measured: Booted) -> None:
    assert sorted(os.listdir(measured.archive.parent)) == ["console", "initrd", "results.tar"]


@pytest.fixture(scope="session")
def stock() -> Guest:
    state = ready("qemu")
    if state.guest is None or state.why_not:
        pytest.skip(f"no guest to try: {state.why_not}")
    return state.guest


def test_the_stock_guest_boots_in_qemu(stock: Guest) -> None:
    guests.try_out(stock)


CALL = """
title    = "A video call, a download and a ping over a link whose rate changes"
duration = "1 s"

[bottleneck]
delay = "10 ms"
qdisc = "fq_codel"
schedule = [["0 s", "8 Mbit/s"], ["400 ms", "3 Mbit/s"]]

[[flow]]
kind = "video"
rate = "1 Mbit/s"

[[flow]]
kind = "bulk"

[[flow]]
kind = "ping"
interval = "20 ms"
"""


@dataclass(frozen=True)
class Shaken:
    """The stock guest in a QEMU whose main thread is woken all the time (shaken.py)."""

    guest: Guest
    kind = "qemu"

    @property
    def base(self) -> Path:
        return self.guest.base

    def command(self, boot: Boot) -> list[str]:
        shaken = [sys.executable, str(Path(__file__).parent / "shaken.py"), "disturbed"]
        return [*shaken, *self.guest.command(boot)]

    def environment(self, boot: Boot) -> dict[str, str]:
        return self.guest.environment(boot)


def test_the_stock_guest_gives_the_same_bytes_however_the_host_treats_it(
    stock: Guest, tmp_path: Path
) -> None:
    realised = loads(CALL).realise(1)
    planned = plan.plan(realised, plan.machine_of(stock))
    added = overlay(engine.program(), {"plan.json": json.dumps(planned.plan).encode()})

    def booted(kind: Shaken | Guest, name: str, seed: int) -> bytes:
        (tmp_path / name).mkdir()
        return run(kind, Boot(tmp_path / name, added, seed, planned.memory_mb)).archive.read_bytes()

    shaken = [(Shaken(stock), f"shaken {n}", 1) for n in range(2)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        first, other, *again = pool.map(
            lambda one: booted(*one),
            [(stock, "left alone", 1), (stock, "another seed", 2), *shaken],
        )
    # Each run was disturbed thousands of times.
    assert all(int((tmp_path / name / "disturbed").read_text()) > 1000 for _, name, _ in shaken)
    assert all(archive == first for archive in again)
    assert other != first


def test_the_markers_are_words_at_the_start_of_a_line() -> None:
    assert booting.ENDED.search("x\n@END\n")
    assert not booting.ENDED.search("the end: @END")
