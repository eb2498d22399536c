"""Programs of the host in the guest: what they may do, that their runs are the same each time, and
what a Run keeps of them."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import polars as pl
import pytest

import sojourn
from sojourn import engine, guest_programs, report
from sojourn.cli import status, work
from sojourn.engine.kernel.engine import KernelEngine
from sojourn.engine.kernel.guest import Boot, uml
from sojourn.engine.kernel.guest.boot import ending
from sojourn.engine.kernel.plan import guest_plan
from sojourn.engine.kernel.plan import program_plan as planned
from sojourn.engine.kernel.plan.fits import PlanError, problems_of
from sojourn.engine.kernel.releases import PROGRAMS, RELEASES, USUAL
from sojourn.engine.verify import verify
from sojourn.errors import UserError
from sojourn.records import Run, RunError
from sojourn.scenario import Scenario, examples, loads

HERE = Path(__file__).parent
LINE = """
title = "a line"
duration = "4 s"
bottleneck = { rate = "10 Mbit/s", delay = "10 ms", qdisc = "fq_codel" }
flow = [{ kind = "bulk" }, { kind = "ping" }]
"""
LONG = """
duration = "1 s"
[[link]]
from = "a"
to = "b"
rate = "1 Mbit/s"
delay = "1 ms"
[[link]]
from = "b"
to = "c"
rate = "1 Mbit/s"
delay = "1 ms"
[[flow]]
kind = "ping"
from = "a"
to = "c"
"""


def program(command: str, more: str = "", node: str = "net") -> str:
    return f"\n[[program]]\nnode = '{node}'\ncommand = '''{command}'''\n{more}\n"


def scenario(text: str, folder: Path | None = None) -> Scenario:
    return loads(text, folder=folder)


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_programs, "_allowed", True)


# ------------------------------------------------------------------------------------ permission


def test_a_program_runs_only_with_permission_and_the_refusal_shows_its_command() -> None:
    realised = scenario(LINE + program("sh -c 'rm -r /'")).realise(1)
    with pytest.raises(UserError) as caught:
        guest_programs.require([realised])
    assert "node net: sh -c 'rm -r /'" in caught.value.problem
    assert "--allow-programs" in caught.value.hint
    guest_programs.require([scenario(LINE).realise(1)])


def test_with_permission_programs_are_not_refused(allowed: None) -> None:
    guest_programs.require([scenario(LINE + program("true")).realise(1)])


def test_a_refusal_shows_some_of_many_commands_and_their_number() -> None:
    many = "".join(program(f"echo {number}") for number in range(30))
    with pytest.raises(UserError) as caught:
        guest_programs.require([scenario(LINE + many).realise(1)])
    assert "echo 9" in caught.value.problem
    assert "echo 10" not in caught.value.problem
    assert "and 20 more" in caught.value.problem


class Terminal:
    """Stands in for the terminal that `work.permit` asks. It gives this answer."""

    def __init__(self, answer: bool) -> None:
        self.answer, self.asked = answer, 0

    def confirm(self, *_: object, **__: object) -> bool:
        self.asked += 1
        return self.answer

    def isatty(self) -> bool:
        return True


@pytest.fixture
def any_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No engine is asked whether it can run a scenario, and no permission was given before."""
    monkeypatch.setattr(engine, "check", lambda *_: None)
    monkeypatch.setattr(guest_programs, "_allowed", False)


@pytest.mark.parametrize("answer", [True, False])
def test_on_a_terminal_the_user_is_asked_with_the_commands_shown(
    any_engine: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: bool,
) -> None:
    terminal = Terminal(answer)
    monkeypatch.setattr(click, "confirm", terminal.confirm)
    monkeypatch.setattr("sys.stdin", terminal)
    monkeypatch.setattr("sys.stderr.isatty", terminal.isatty, raising=False)
    found = [scenario(LINE + program("echo mine"))]
    if answer:
        work.permit(found, "kernel", False)
    else:
        with pytest.raises(UserError, match="echo mine"):
            work.permit(found, "kernel", False)
    assert guest_programs.allowed() is answer
    assert terminal.asked == 1
    assert "node net: echo mine" in capsys.readouterr().err


def test_without_a_terminal_only_the_option_gives_permission(any_engine: None) -> None:
    found = [scenario(LINE + program("true"))]
    with pytest.raises(UserError, match="runs programs of this host"):
        work.permit(found, "kernel", False)
    assert not guest_programs.allowed()
    work.permit(found, "kernel", True)
    assert guest_programs.allowed()


def test_a_scenario_without_programs_gives_no_permission(any_engine: None) -> None:
    work.permit([scenario(LINE)], "kernel", True)
    assert not guest_programs.allowed()


def test_check_shows_what_would_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(LINE + program("tc -s qdisc", "start = '2 s'\nname = 'watch'"))
    assert status(["check", str(file)]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"watch +net +2 s +tc -s qdisc", shown)
    assert "they may read /usr and run only with --allow-programs" in shown
    assert status(["check", "--json", str(file)]) == 0
    (one,) = json.loads(capsys.readouterr().out)["programs"]
    assert one == {
        "name": "watch",
        "node": "net",
        "command": "tc -s qdisc",
        "start_s": 2.0,
        "files": [],
    }


# -------------------------------------------------------------------------------------- engines


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("sim", "the simulator has no programs"),
        ("kernel-7.3", "the engine kernel-7.3 runs no programs"),
        ("kernel-qemu", "the engine kernel-qemu runs no programs"),
    ],
)
def test_other_engines_refuse_programs(name: str, why: str) -> None:
    with pytest.raises(UserError) as caught:
        sojourn.run(scenario(LINE + program("true")), engine=name)
    assert why in caught.value.problem
    assert "-e kernel" in caught.value.hint


def test_netns_refuses_programs_because_it_can_not_isolate_them() -> None:
    realised = scenario(LINE + program("true")).realise(1)
    (problem,) = problems_of(realised, "veth", False, (6, 12))
    assert "this host's files and network" in problem.why


def test_the_guest_for_programs_must_be_made_first() -> None:
    with pytest.raises(UserError, match="sojourn kernel setup --programs"):
        KernelEngine("kernel", None).check(scenario(LINE + program("true")).realise(1))


def test_a_folder_that_this_host_lacks_is_refused() -> None:
    text = LINE + program("true") + "[programs]\nsees = ['/usr', '/no/such']"
    problems = list(problems_of(scenario(text).realise(1), "simnic", True, (6, 12)))
    assert [each.why for each in problems] == ["this host has no folder /no/such"]


def test_a_program_that_spins_is_named() -> None:
    error = ending("@BOOT\n@SPINS 10 waits\n", 0, Boot(Path(), b""), overdue=False)
    assert error.ending == "hung"
    assert "the program 'waits' computed for 10 s" in error.problem


# ------------------------------------------------------------------- what stays without programs


@pytest.mark.parametrize("release", RELEASES, ids=[each.name for each in RELEASES])
def test_the_other_guests_have_no_edit_for_programs(release: object) -> None:
    ours = uml.edits(release)  # type: ignore[arg-type]
    assert not any("programs" in name for name in ours)
    assert b"programs.config" not in ours[uml.CONFIG]
    assert b"CONFIG_BINFMT_SCRIPT" not in ours[uml.CONFIG]


def test_the_guest_for_programs_has_all_edits_of_the_usual_one() -> None:
    usual, ours = uml.edits(USUAL), uml.edits(PROGRAMS)
    assert {name: ours[name] for name in usual if name != uml.CONFIG} == {
        name: text for name, text in usual.items() if name != uml.CONFIG
    }
    lines = ours[uml.CONFIG].decode().splitlines()
    assert set(usual[uml.CONFIG].decode().splitlines()) <= set(lines)
    assert uml.edits_key(PROGRAMS) != uml.edits_key(USUAL)


def test_a_plan_without_programs_contains_nothing_for_programs() -> None:
    machine = guest_plan.Machine("simnic", own=True, ipv6=False)
    plain = guest_plan.plan(scenario(LINE).realise(1), machine)
    assert not any("program" in key for key in plain.plan)
    assert planned.arguments(scenario(LINE).realise(1)) == ()
    both = guest_plan.plan(scenario(LINE + program("true")).realise(1), machine)
    assert {"programs", "program_root"} <= set(both.plan)
    assert "programs" not in both.plan["check"]


# ------------------------------------------------------------------------------------- the plan


def planned_of(text: str) -> Mapping[str, object]:
    machine = guest_plan.Machine("simnic", own=True, ipv6=False)
    return guest_plan.plan(scenario(text).realise(1), machine).plan


def test_words_are_replaced_by_the_device_at_the_node_and_by_an_address() -> None:
    text = LINE + program("x {link:down} {link:up} --to={address:home}")
    (one,) = planned_of(text)["programs"]  # type: ignore[misc, attr-defined]
    down, up, address = one["argv"][1:]
    # Both ends of the cable between the nodes are the same card here: one sends, one receives.
    assert down == up == "nic0a"
    assert address == "--to=10.192.0.1"
    far = LINE + program("x {link:down}", node="home")
    (other,) = planned_of(far)["programs"]  # type: ignore[misc, attr-defined]
    assert other["argv"][1] == "nic0b"


def test_every_node_has_a_route_to_a_node_with_a_program() -> None:
    text = LONG + program("x {address:c}", node="a")
    steps = planned_of(text)["setup"]
    lines = {
        step["namespace"]: step["stdin"].splitlines()
        for step in steps  # type: ignore[attr-defined]
        if step["do"] == "run" and step["argv"][0] == "ip" and step["namespace"]
    }
    to = {
        name: sorted(line.split()[2] for line in each if line.startswith("route add 10.192."))
        for name, each in lines.items()
    }
    # a is n0, b is n1, c is n2.
    assert to["n0"] == ["10.192.0.1/32"]
    assert to["n1"] == ["10.192.0.0/32", "10.192.0.1/32"]
    assert to["n2"] == ["10.192.0.0/32"]
    (there,) = [line for line in lines["n0"] if line.startswith("route add 10.192.")]
    assert there.endswith("src 10.192.0.0")


def test_files_and_variables_reach_the_program(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("echo $WHO\n")
    more = "files = ['a.sh']\nenv = { WHO = 'me' }"
    found = loads(LINE + program("sh a.sh", more), folder=tmp_path)
    plan = guest_plan.plan(
        found.realise(1), guest_plan.Machine("simnic", own=True, ipv6=False)
    ).plan
    assert ("/scenario/program/a.sh", "echo $WHO\n") in plan["program_root"]["files"]
    assert plan["programs"][0]["env"]["WHO"] == "me"
    assert plan["programs"][0]["env"]["PATH"]


# -------------------------------------------------------------------------------------- the record


def test_the_kernel_s_list_names_files_of_the_host() -> None:
    folders = [Path("/usr"), Path("/opt/x")]
    lines = (
        "f /proc/self/cwd//see/0/bin/sh\nl /x/see/1/a\\012b\nf /x/see/1\nd /x/see/0/\nf /initrd\n"
    )
    assert guest_programs.read_paths(lines, folders, "see") == [
        ("f", "/usr/bin/sh"),
        ("l", "/opt/x/a\nb"),
        ("f", "/opt/x"),
        ("d", "/usr"),
    ]


def recorded(folder: Path, files: Mapping[str, bytes]) -> Run:
    """A Run whose first seed has these files."""
    short = scenario(LINE).with_(duration="1 s")
    run = sojourn.run(short, out=folder)
    seed = folder / "seed-1"
    sums = (seed / "SHA256SUMS").read_text()
    for name, content in files.items():
        (seed / name).write_bytes(content)
        sums += f"{hashlib.sha256(content).hexdigest()}  {name}\n"
    (seed / "SHA256SUMS").write_text(sums)
    meta = (folder / "meta.json").read_text()
    digest = hashlib.sha256(sums.encode()).hexdigest()
    (folder / "meta.json").write_text(meta.replace(run.meta.checksums["1"], digest))
    return Run.open(folder)


def ended(**values: object) -> dict[str, object]:
    return {"started_ns": 5, "status": 0, "signal": None, **values}


def made_of(
    opened: Sequence[tuple[str, str]], printed: bytes = b"hello\n", **values: object
) -> dict[str, bytes]:
    realised = scenario(LINE + program("true")).realise(1)
    return guest_programs.files_of(realised, [ended(**values)], {"program": printed}, opened)


def test_a_run_names_the_files_that_have_changed_since(tmp_path: Path) -> None:
    kept, other, gone, link = (tmp_path / name for name in ("kept", "other", "gone", "link"))
    for path in (kept, other, gone):
        path.write_text("before")
    link.symlink_to(kept)
    opened = [("f", str(kept)), ("f", str(other)), ("f", str(gone)), ("l", str(link))]
    run = recorded(tmp_path / "run", made_of(opened))
    assert guest_programs.changed(run) == []
    other.write_text("after")
    gone.unlink()
    assert guest_programs.changed(run) == [str(gone), str(other)]
    link.unlink()
    link.symlink_to(other)
    assert guest_programs.changed(run)[-1] == str(link)


def test_a_run_names_the_folders_whose_entries_have_changed(tmp_path: Path) -> None:
    more, fewer, kinds, kept = (tmp_path / name for name in ("more", "fewer", "kinds", "kept"))
    for folder in (more, fewer, kinds, kept):
        folder.mkdir()
        (folder / "one").write_text("1")
    run = recorded(tmp_path / "run", made_of([("d", str(f)) for f in (more, fewer, kinds, kept)]))
    (kept / "one").write_text("the content of its files does not matter")
    assert guest_programs.changed(run) == []
    (more / "two").touch()
    (fewer / "one").unlink()
    (kinds / "one").unlink()
    (kinds / "one").mkdir()
    assert guest_programs.changed(run) == [str(fewer), str(kinds), str(more)]


def test_a_run_names_the_paths_that_a_program_looked_up_and_that_have_changed(
    tmp_path: Path,
) -> None:
    names = ("missing", "touched", "longer", "executable", "folder", "kept")
    missing, touched, longer, executable, folder, kept = (tmp_path / name for name in names)
    for path in (touched, longer, executable, kept):
        path.write_text("before")
    folder.mkdir()
    run = recorded(tmp_path / "run", made_of([("s", str(tmp_path / name)) for name in names]))
    (folder / "entry").touch()
    assert guest_programs.changed(run) == []
    missing.touch()
    os.utime(touched, (1, 1))
    longer.write_text("afterwards")
    executable.chmod(0o755)
    expected = [executable, longer, missing, touched]
    assert guest_programs.changed(run) == [str(path) for path in expected]


@pytest.mark.parametrize("name", [b"plain", b"\xff", b"a\\b", b"tab\there", "\u202e".encode()])
def test_a_path_of_any_bytes_is_recorded(tmp_path: Path, name: bytes) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
    Path(path).write_text("before")
    (tmp_path / "link").symlink_to(path)
    read = [(kind, path) for kind in "fs"] + [("l", str(tmp_path / "link"))]
    run = recorded(tmp_path / "run", made_of(read))
    assert guest_programs.changed(run) == []
    Path(path).write_text("after")
    assert guest_programs.changed(run) == [path]


def test_a_record_without_folders_and_paths_is_read(tmp_path: Path) -> None:
    files = made_of([("f", "/usr")])
    raw = json.loads(files[guest_programs.RECORD])
    del raw["folders"], raw["paths"]
    files[guest_programs.RECORD] = json.dumps(raw).encode()
    record = guest_programs.read(recorded(tmp_path / "run", files), 1)
    assert record is not None
    assert (record.folders, record.paths) == ({}, {})


def test_no_checksum_is_computed_of_a_device_or_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    opened = [("f", "/dev/zero"), ("f", str(tmp_path / "pipe")), ("f", "/proc/kmsg")]
    run = recorded(tmp_path / "run", made_of(opened))
    record = guest_programs.read(run, 1)
    assert record is not None
    assert record.files["/dev/zero"] == ""


def test_a_run_keeps_what_a_program_printed_and_how_it_ended(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", made_of([], b"\x1b[31mred\n", status=None, signal=9))
    record = guest_programs.read(run, 1)
    assert record is not None
    (one,) = record.programs
    assert (one.how, one.node, one.output_bytes) == ("ended by signal 9", "net", 9)
    assert "\x1b" not in guest_programs.output_of(run, 1, one)


def test_what_a_program_measured_is_imported_as_a_run_of_its_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    content = next((HERE.parent / "formats").glob("irtt*.json")).read_bytes()
    run = recorded(tmp_path / "run", made_of([], content))
    assert status(["import", str(run.path), "-o", str(tmp_path / "measured"), "-q"]) == 0
    whole = HERE.parent / "formats"
    assert (
        status(["import", *map(str, whole.glob("irtt*.json")), "-o", str(tmp_path / "file"), "-q"])
        == 0
    )
    assert Run.open(tmp_path / "measured").sums(1) == Run.open(tmp_path / "file").sums(1)
    capsys.readouterr()
    silent = recorded(tmp_path / "silent", made_of([], b"hello\n"))
    assert status(["import", str(silent.path), "-o", str(tmp_path / "none")]) == 2
    assert "no program of this Run printed a measurement" in capsys.readouterr().err


def test_the_page_of_a_scenario_with_programs_does_not_link_to_the_lab(tmp_path: Path) -> None:
    without = sojourn.run(scenario(LINE).with_(duration="1 s"), out=tmp_path / "without")
    assert "Change it yourself" in report.render([without], "lab.html")
    run = recorded(tmp_path / "run", made_of([], b"hello\n"))
    page = report.render([run], "lab.html")
    assert "Change it yourself" not in page
    assert "hello" in page


@pytest.mark.parametrize("text", [b"[]", b"{}", b'{"programs": [{"name": 1}]}', b"no"])
def test_a_record_of_another_shape_counts_as_damaged(tmp_path: Path, text: bytes) -> None:
    run = recorded(tmp_path / "run", {guest_programs.RECORD: text})
    with pytest.raises(RunError, match=r"programs\.json"):
        guest_programs.read(run, 1)


def test_a_run_without_programs_has_no_record(tmp_path: Path) -> None:
    run = sojourn.run(scenario(LINE).with_(duration="1 s"), out=tmp_path / "run")
    assert guest_programs.read(run, 1) is None
    assert guest_programs.changed(run) == []


# ----------------------------------------------------------------------------------- in the guest


def printed(run: Run, name: str = "program") -> str:
    record = guest_programs.read(run, 1)
    assert record is not None
    one = next(each for each in record.programs if each.name == name)
    return guest_programs.output_of(run, 1, one)


def run_of(found: Scenario, folder: Path) -> Run:
    run = sojourn.run(found, engine="kernel-uml", out=folder)
    assert run.meta.invalid == ()
    return run


@pytest.mark.long
def test_a_hostile_program_is_refused_everywhere(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    text = LINE + program("python3 hostile_program.py", "files = ['hostile_program.py']")
    lines = printed(run_of(loads(text, folder=HERE), tmp_path / "run")).splitlines()
    assert lines[-1] == "still here"
    assert len(lines) > 45
    assert [line for line in lines[:-1] if " ok " not in line] == []
    assert not Path("/usr/bin/escaped").exists()


@pytest.mark.long
def test_features_that_everyday_programs_need_exist(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    text = LINE + program("python3 everyday_program.py", "files = ['everyday_program.py']")
    lines = printed(run_of(loads(text, folder=HERE), tmp_path / "run")).splitlines()
    assert len(lines) == 15
    assert [line for line in lines if not line.endswith(": found")] == []


def compiled(folder: Path) -> Path:
    folder.mkdir()
    program = folder / "waits"
    subprocess.run(
        ["gcc", "-O1", "-pthread", "-o", program, HERE / "waits.c"], check=True, timeout=60
    )
    return program


WAYS = ("processor", "yield", "receive", "clock", "call", "rdtsc", "cpuid")


@pytest.mark.long
def test_programs_that_ask_the_processor_and_wait_in_loops_give_the_same_bytes_twice(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    waits = compiled(tmp_path / "bin")
    text = LINE + "".join(
        program(f"{waits} {way}", f"name = '{way}'\nstart = '1 s'") for way in WAYS
    )
    text += f"[programs]\nsees = ['/usr', '{waits.parent}']\n"
    first, second = (run_of(scenario(text), tmp_path / name) for name in ("one", "two"))
    assert first.sums(1) == second.sums(1)
    record = guest_programs.read(first, 1)
    assert record is not None
    assert all(one.status == 0 for one in record.programs)
    assert str(waits) in record.files
    shown = printed(first, "processor")
    # Reading the counter takes as long as reading the clock.
    assert "rdtsc after 256 ns, rdtscp later\ncore 0" in shown
    if "programs" in first.meta.conditions and "cpuid are" in first.meta.conditions["programs"]:
        assert "rdrand 0, apic 0\nrdseed 0, rtm 0\nx2apic 0" in shown


@pytest.mark.long
def test_a_program_that_waits_in_memory_ends_the_run_and_is_named(
    guest_for_programs: str, allowed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned, "SPIN_S", 2)
    waits = compiled(tmp_path / "bin")
    text = LINE + program(f"{waits} flag") + f"[programs]\nsees = ['/usr', '{waits.parent}']\n"
    with pytest.raises(UserError, match="the program 'waits' computed for 2 s"):
        run_of(scenario(text), tmp_path / "run")


@pytest.mark.long
def test_without_permission_no_guest_is_started(guest_for_programs: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="runs programs of this host"):
        run_of(scenario(LINE + program("true")), tmp_path / "run")
    realised = scenario(LINE + program("true")).realise(1)
    with pytest.raises(UserError, match="runs programs of this host"):
        KernelEngine("kernel-uml", "uml").tables(realised, lambda _: True)


@pytest.mark.long
def test_a_changed_file_of_the_host_is_named(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    (seen / "number").write_text("1\n")
    text = LINE + program(f"cat {seen}/number") + f"[programs]\nsees = ['/usr', '{seen}']\n"
    found = scenario(text)
    run = run_of(found, tmp_path / "run")
    assert printed(run) == "1\n"
    (same,) = verify([run])
    assert same.equal
    assert same.changed_files == ()
    (seen / "number").write_text("2\n")
    (other,) = verify([run])
    assert other.changed_files == (str(seen / "number"),)
    assert [each.table for each in other.tables if not each.equal] == ["program.out"]
    with pytest.raises(UserError, match="number, which a program of the Run read, has changed"):
        run_of(found, tmp_path / "run")


LISTS = """
import os, sys, time
folder = sys.argv[1]
print(os.listdir(folder), os.path.exists(folder + "/none"), os.stat(folder).st_size)
print({name: os.stat(f"{folder}/{name}").st_ino for name in os.listdir(folder)})
print(os.stat(folder).st_mtime, os.stat(folder).st_nlink, os.statvfs(folder).f_bfree)
print(f"{time.monotonic():.9f}")
"""
"""Reads all that a folder shows without its files' content."""


@pytest.mark.long
def test_a_folder_with_more_entries_is_named_if_a_program_lists_it(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    """Listing more entries takes more system calls, so the run's times differ."""
    seen = tmp_path / "seen"
    seen.mkdir()
    for number in range(40, 0, -1):
        (seen / f"entry-{number}").touch()
    (tmp_path / "lists.py").write_text(LISTS)
    text = LINE + program(f"python3 lists.py {seen}", "files = ['lists.py']")
    text += f"[programs]\nsees = ['/usr', '{seen}']\n"
    run = run_of(loads(text, folder=tmp_path), tmp_path / "run")
    record = guest_programs.read(run, 1)
    assert record is not None
    assert record.paths[f"{seen}/none"] == ""
    assert str(seen) in record.folders
    listed = re.findall(r"'(entry-\d+)'", printed(run).splitlines()[0])
    assert listed == sorted(f"entry-{number}" for number in range(1, 41))
    (same,) = verify([run])
    assert same.equal
    assert same.changed_files == ()
    for number in range(41, 3000):
        (seen / f"entry-{number}").touch()
    (other,) = verify([run])
    assert not other.equal
    assert str(seen) in other.changed_files
    with pytest.raises(UserError, match="seen, which a program of the Run read, has changed"):
        run_of(loads(text, folder=tmp_path), tmp_path / "run")


@pytest.mark.long
def test_sizes_times_and_inode_numbers_do_not_depend_on_the_history_of_a_folder(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    (seen / "one").write_text("1")
    (tmp_path / "lists.py").write_text(LISTS)
    text = LINE + program(f"python3 lists.py {seen}", "files = ['lists.py']")
    text += f"[programs]\nsees = ['/usr', '{seen}']\n"
    before = printed(run_of(loads(text, folder=tmp_path), tmp_path / "before"))
    for number in range(2000):
        (seen / f"{number}").touch()
    for number in range(2000):
        (seen / f"{number}").unlink()
    (seen / "other").write_text("1")
    shutil.copystat(seen / "one", seen / "other")
    (seen / "other").replace(seen / "one")
    after = printed(run_of(loads(text, folder=tmp_path), tmp_path / "after"))
    assert before == after


@pytest.mark.long
def test_the_script_keeps_the_queue_short_and_each_run_is_the_same(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    """The rate of the line falls to 4 Mbit/s from 15 s to 30 s. The script lowers cake's; without it
    the modem's FIFO fills."""
    if shutil.which("ping") is None:
        pytest.skip("this host has no ping: apt-get install iputils-ping")
    found = sojourn.load("adaptive-rate")
    first, second = (run_of(found, tmp_path / name) for name in ("one", "two"))
    assert first.sums(1) == second.sums(1)
    without = run_of(found.with_(program=None), tmp_path / "without")

    def waited_ms(run: Run) -> float:
        rows = run.table("queue", 1).filter(
            (pl.col("link") == "line") & pl.col("t_ns").is_between(20 * 10**9, 30 * 10**9)
        )
        sent = rows.filter(pl.col("sent_packets") > 0)
        total = (sent["sojourn_mean_ns"] * sent["sent_packets"]).sum()
        return float(total) / float(sent["sent_packets"].sum()) / 1e6

    assert waited_ms(first) < 20
    assert waited_ms(without) > 300
    rates = [int(rate) for rate in re.findall(r"rate (\d+)", printed(first, "adaptive-rate"))]
    assert min(rates) < 4000 < 9000 < max(rates)


def test_the_host_lists_the_conditions_of_its_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planned, "_faults_cpuid", lambda: False)
    assert "can't hide rdrand" in planned.conditions()["programs"]


def test_the_engine_for_programs_is_another_guest_under_the_same_name() -> None:
    one = KernelEngine("kernel", None)
    assert one.for_programs().name == "kernel"
    assert one.for_programs() is one.for_programs()
    with pytest.raises(UserError, match="runs no programs"):
        KernelEngine("kernel-7.3", "uml-7.3").for_programs()
    with pytest.raises(PlanError):
        guest_plan.plan(
            scenario(LINE + program("true")).realise(1),
            guest_plan.Machine("simnic", own=True, ipv6=False, linux=(7, 3)),
        )


def test_the_simulator_runs_the_examples_without_programs() -> None:
    simulated = {path.stem for path in examples.simulated()}
    assert "home-uplink" in simulated
    others = set(examples.names()) - simulated
    assert "adaptive-rate" in others
    assert all(sojourn.load(name).realise(1).programs for name in others)
