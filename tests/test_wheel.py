"""The wheel that users install: it works by itself, from any folder, and produces the tree's
tables. `make wheel` builds it."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from tree import INSTALLED, ROOT, build_of

import sojourn

FOLDER = ROOT / "target" / "wheel"
WHEELS = {file.name.split("-")[0]: file for file in sorted(FOLDER.glob("*.whl"))}
"""By package: sojourn, sojourn_live, sojourn_papers."""
pytestmark = pytest.mark.skipif(not WHEELS, reason="no wheel is built: make wheel")


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with only the core's wheel. Its dependencies are imported from our environment."""
    return unpacked(["sojourn"], tmp_path_factory)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of all three packages."""
    return unpacked([*WHEELS], tmp_path_factory)


def unpacked(names: Sequence[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    for name in names:
        with zipfile.ZipFile(WHEELS[name]) as wheel:
            wheel.extractall(folder)
    program = [sys.executable, "-c", "from sojourn import _core; print(_core.BUILD)"]
    build = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=True)
    if build.stdout.strip() != build_of(["sojourn/crates"], "sojourn"):
        pytest.skip("the wheel was built from other Rust sources than the tree's: make wheel")
    return folder


WHEELHOUSE = ROOT / "target" / "wheelhouse"


@pytest.fixture(scope="module")
def environment(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean virtual environment into which pip has installed the wheels, without a network. The
    dependencies are from the wheelhouse if `make wheelhouse` has made one, and otherwise from our
    environment."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
    pip += ["-q", "--disable-pip-version-check", "--no-index"]
    if all((WHEELHOUSE / file.name).is_file() for file in WHEELS.values()):
        asked = ["--find-links", str(WHEELHOUSE), "sojourn[live,papers]"]
    else:
        asked = ["--no-deps", *map(str, WHEELS.values())]
    done = subprocess.run([*pip, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if "--no-deps" in asked:
        # Python does not process the .pth files of a folder that is named in a .pth file, so our
        # editable install stays invisible.
        (site,) = (folder / "lib").glob("python*/site-packages")
        (site / "ours.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def test_pip_installs_it_into_a_clean_environment(environment: Path, tmp_path: Path) -> None:
    def said(program: str, *words: str) -> str:
        done = subprocess.run(
            [environment / "bin" / program, *words],
            cwd=tmp_path,
            env=clean(),
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


ALONE = {
    "sojourn": ["sojourn"],
    "sojourn-live": ["sojourn", "sojourn_live"],
    "sojourn-papers": ["sojourn", "sojourn_papers"],
}
"""For each package, the wheels of an environment with this package and its dependencies."""


@pytest.mark.long
@pytest.mark.parametrize("package", ALONE)
def test_a_package_passes_its_quick_tests_where_the_others_are_not_installed(
    package: str, core: Path, tmp_path: Path
) -> None:
    python = alone(ALONE[package], tmp_path)
    tests = ["-m", "not guest and not live and not long and not slow", "-q", "-n", "2"]
    done = subprocess.run(
        [python, "-m", "pytest", *tests, "-p", "no:cacheprovider", f"{package}/tests"],
        cwd=ROOT,
        env=clean() | {INSTALLED: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    assert re.search(r"\d\d+ passed", done.stdout)


def alone(names: Sequence[str], folder: Path) -> Path:
    """Returns the Python of a clean environment with these wheels. Third-party packages are those
    of our environment, without our editable installs."""
    venv.create(folder / "environment", with_pip=False)
    python = folder / "environment" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
    pip += ["-q", "--disable-pip-version-check", "--no-index", "--no-deps"]
    subprocess.run([*pip, *(str(WHEELS[name]) for name in names)], check=True)
    (site,) = (folder / "environment" / "lib").glob("python*/site-packages")
    for place in Path(sysconfig.get_path("purelib")).iterdir():
        if not place.name.startswith(("sojourn", "_sojourn")) and not (site / place.name).exists():
            (site / place.name).symlink_to(place)
    found = subprocess.run(
        [python, "-c", "from sojourn import extras; print(*(e.name for e in extras.installed()))"],
        cwd=folder,
        env=clean(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == [name.replace("_", "-") for name in names[1:]]
    return python


def clean() -> dict[str, str]:
    """Our environment variables, without those that would make Python find the tree."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def run(installed: Path, where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    # The editable install of the tree is a .pth file, which Python reads after PYTHONPATH. Packages
    # without a wheel in the folder would still be found through it, so they are hidden.
    hiding = str(ROOT / "tests" / "hiding")
    path = os.pathsep.join([hiding, str(installed), sysconfig.get_path("purelib")])
    absent = [name for name in WHEELS if not (installed / name).is_dir()]
    return subprocess.run(
        [sys.executable, *words],
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path, "SOJOURN_TESTS_HIDE": " ".join(absent)},
    )


@pytest.mark.parametrize("name", ["sojourn", "sojourn_live", "sojourn_papers"])
def test_the_wheel_contains_all_files_of_the_tree_s_package(name: str, installed: Path) -> None:
    package = ROOT / name.replace("_", "-") / "python" / name
    files = {file.relative_to(package) for file in package.rglob("*") if file.is_file()}
    there = {file.relative_to(installed / name) for file in (installed / name).rglob("*")}
    missing = {
        file
        for file in files - there
        if file.suffix not in (".pyc", ".so") and file.name != ".gitignore"
    }
    assert not missing
    assert (name == "sojourn_papers") != any((installed / name).glob("*.so"))


def test_the_core_alone_names_the_package_of_a_missing_verb(core: Path, tmp_path: Path) -> None:
    found = {}
    for verb in ("measure", "reproduce", "--help"):
        done = run(core, tmp_path, "-m", "sojourn", verb)
        found[verb] = (done.returncode, done.stdout + done.stderr)
    assert found["measure"][0] == found["reproduce"][0] == 2
    assert "pip install 'sojourn[live]'" in found["measure"][1]
    assert "pip install 'sojourn[papers]'" in found["reproduce"][1]
    assert found["--help"][0] == 0
    assert "compare" in found["--help"][1]
    assert "measure  " not in found["--help"][1]


def test_the_wheel_gives_the_tree_s_tables(installed: Path, tmp_path: Path) -> None:
    # Compares the release build with the checked build: other optimisations, the same bits.
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


def test_on_other_systems_scenarios_run_and_have_pages(core: Path, tmp_path: Path) -> None:
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
    for words, (code, _, said) in zip(commands, elsewhere(core, tmp_path, commands), strict=True):
        assert code == 0, (words, said)
    assert list((tmp_path / "two").glob("*.html"))
    ours = sojourn.run(sojourn.load(SCENARIO).with_(duration="8 s"), seeds=1)
    theirs = sojourn.Run.open(tmp_path / "one")
    assert theirs.table("links", 1).equals(ours.table("links", 1))


LINUX = [
    ("run", SCENARIO, "-e", "kernel"),
    ("run", SCENARIO, "-e", "netns"),
    ("kernel", "status"),
]


LIVE = [
    ("measure", "localhost"),
    ("serve",),
    ("monitor", "192.0.2.1"),
    ("shape", "eth0", "--up", "20mbit", "--down", "90mbit"),
]


def test_on_other_systems_live_lines_report_that_they_need_linux(
    installed: Path, tmp_path: Path
) -> None:
    for words, (code, out, err) in zip(LIVE, elsewhere(installed, tmp_path, LIVE), strict=True):
        assert code in (1, 2), words
        assert "Linux" in err + out, words
        assert "Traceback" not in err, words


def test_on_other_systems_commands_that_need_linux_report_it(core: Path, tmp_path: Path) -> None:
    for words, (code, out, err) in zip(LINUX, elsewhere(core, tmp_path, LINUX), strict=True):
        assert code in (1, 2), words
        assert "Linux" in err + out, words
        assert "Traceback" not in err, words


def elsewhere(
    installed: Path, where: Path, commands: Sequence[Sequence[str]]
) -> list[tuple[int, str, str]]:
    """Returns for each command, run as on another system, its exit status, stdout and stderr."""
    program = str(ROOT / "tests" / "other_system.py")
    done = run(installed, where, program, json.dumps(commands))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
