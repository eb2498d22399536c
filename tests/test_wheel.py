"""The wheel that others install: it runs by itself, from anywhere, and gives the tree's tables.
`make wheel` builds it."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from tree import ROOT, build_of_the_tree

import sojourn

WHEELS = sorted((ROOT / "target" / "wheel").glob("*.whl"))
pytestmark = pytest.mark.skipif(not WHEELS, reason="there is no wheel: make wheel")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but the wheel's content; what it depends on is found where it is."""
    return unpacked(WHEELS[0], tmp_path_factory)


@pytest.fixture(scope="module")
def without_lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of the wheel that was built as for a system that is not Linux."""
    [wheel] = (ROOT / "target" / "wheel" / "without-lines").glob("*.whl")
    return unpacked(wheel, tmp_path_factory)


def unpacked(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(file) as wheel:
        wheel.extractall(folder)
    program = [sys.executable, "-c", "from sojourn import _core; print(_core.BUILD)"]
    build = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=True)
    if build.stdout.strip() != build_of_the_tree():
        pytest.skip("the wheel was built of other sources than crates/ holds now: make wheel")
    return folder


WHEELHOUSE = ROOT / "target" / "wheelhouse"


@pytest.fixture(scope="module")
def environment(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean virtual environment into which pip has installed the wheel, without a network. What it
    depends on comes from the wheelhouse, if `make wheelhouse` has made one, and else from ours."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
    pip += ["-q", "--disable-pip-version-check", "--no-index"]
    if (WHEELHOUSE / WHEELS[0].name).is_file():
        asked = ["--find-links", str(WHEELHOUSE), "sojourn"]
    else:
        asked = ["--no-deps", str(WHEELS[0])]
    done = subprocess.run([*pip, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if "--no-deps" in asked:
        # A folder that a .pth names brings no .pth of its own: not our editable install.
        (site,) = (folder / "lib").glob("python*/site-packages")
        (site / "ours.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def test_pip_installs_it_into_a_clean_environment(environment: Path, tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def said(program: str, *words: str) -> str:
        done = subprocess.run(
            [environment / "bin" / program, *words],
            cwd=tmp_path,
            env=clean,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    place = said("python", "-c", "import sojourn; print(sojourn.__file__)")
    assert Path(place.strip()).is_relative_to(environment)
    assert "compare" in said("sojourn", "--help")
    said("sojourn", "run", "home-uplink", "--set", "duration=8 s", "--seeds", "1", "-o", "theirs")
    ours = sojourn.run(sojourn.load("home-uplink").with_(duration="8 s"), seeds=1)
    theirs = sojourn.Run.open(tmp_path / "theirs")
    assert theirs.table("links").equals(ours.table("links"))


def run(installed: Path, where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    # Isolated from the tree: its editable install is a .pth file, which is read after PYTHONPATH.
    path = os.pathsep.join([str(installed), sysconfig.get_path("purelib")])
    return subprocess.run(
        [sys.executable, *words],
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )


def test_the_wheel_holds_all_that_the_tree_s_package_has(installed: Path) -> None:
    package = ROOT / "python" / "sojourn"
    files = {file.relative_to(package) for file in package.rglob("*") if file.is_file()}
    there = {file.relative_to(installed / "sojourn") for file in (installed / "sojourn").rglob("*")}
    missing = {
        file
        for file in files - there
        if file.suffix not in (".pyc", ".so") and file.name != ".gitignore"
    }
    assert not missing


def test_the_wheel_gives_the_tree_s_tables(installed: Path, tmp_path: Path) -> None:
    # An engine of the release against the checked one: optimised otherwise, the same bits.
    scenario = ROOT / "scenarios" / "home-uplink.toml"
    done = run(
        installed,
        tmp_path,
        *("-m", "sojourn", "run"),
        str(scenario),
        "--set",
        "duration=8 s",
        "--seeds",
        "1",
        "-o",
        "theirs",
    )
    assert done.returncode == 0, done.stderr
    ours = sojourn.run(sojourn.load(scenario).with_(duration="8 s"), seeds=1)
    theirs = sojourn.Run.open(tmp_path / "theirs")
    for table in ("queue", "flow", "probe", "drops", "links", "flows"):
        assert theirs.table(table).equals(ours.table(table)), table


SCENARIO = str(ROOT / "scenarios" / "home-uplink.toml")


def test_elsewhere_than_on_linux_scenarios_run_and_have_pages(
    without_lines: Path, tmp_path: Path
) -> None:
    short = ("--set", "duration=8 s", "--seeds", "2", "--jobs", "2")
    commands = [
        ("--help",),
        ("list", "engines"),
        ("check", SCENARIO),
        ("run", SCENARIO, *short, "-o", "one"),
        ("compare", SCENARIO, "pfifo", "fq_codel", *short, "-o", "two"),
        ("report", "one", "-o", "page"),
        ("verify", "one"),
    ]
    for words, (code, _, said) in zip(
        commands, elsewhere(without_lines, tmp_path, commands), strict=True
    ):
        assert code == 0, (words, said)
    assert list((tmp_path / "two").glob("*.html"))
    ours = sojourn.run(sojourn.load(SCENARIO).with_(duration="8 s"), seeds=1)
    theirs = sojourn.Run.open(tmp_path / "one")
    assert theirs.table("links", 1).equals(ours.table("links", 1))


LIVE = [
    ("measure", "localhost"),
    ("serve",),
    ("monitor", "192.0.2.1"),
    ("shape", "eth0", "--up", "20mbit", "--down", "90mbit"),
    ("run", SCENARIO, "-e", "kernel"),
    ("run", SCENARIO, "-e", "netns"),
    ("kernel", "status"),
]


def test_elsewhere_what_needs_linux_says_so(without_lines: Path, tmp_path: Path) -> None:
    for words, (code, out, err) in zip(LIVE, elsewhere(without_lines, tmp_path, LIVE), strict=True):
        assert code in (1, 2), words
        assert "Linux" in err + out, words
        assert "Traceback" not in err, words


def elsewhere(
    installed: Path, where: Path, commands: Sequence[Sequence[str]]
) -> list[tuple[int, str, str]]:
    """Of each command on another system its exit status, and what it printed to stdout and stderr."""
    program = str(ROOT / "tests" / "other_system.py")
    done = run(installed, where, program, json.dumps(commands))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
