"""The rooms are as ARCHITECTURE.md says: its two tables against `cargo metadata` and the import
statements, both ways.

A dependency that the table lacks is a wall broken; one that only the table has is a page out of
date.
"""

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "sojourn"
CORE_READERS = {
    "units",
    "scenario",
    "own",
    "records",
    "metrics",
    "linux_only",
    "engine",
    "live",
    "agreement",
    "lab",
    "cli",
}
"""May import the extension, says the sentence below the tables."""


def tables() -> dict[str, dict[str, str]]:
    """ARCHITECTURE.md's tables by their first column's title: row -> second column."""
    found: dict[str, dict[str, str]] = {}
    rows: dict[str, str] | None = None
    for line in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            rows = None
        elif rows is None:
            rows = found.setdefault(cells[0], {})
        elif not set(cells[0]) <= set("-: "):
            rows[cells[0]] = cells[1]
    return found


def words(cell: str) -> set[str]:
    return set(re.findall(r"\w+", cell))


CRATES = {crate: words(cell) for crate, cell in tables()["crate"].items()}
ROWS = tables()["module of sojourn"]
MODULES = {
    module: set(ROWS) - {module} if cell == "all above" else words(cell)
    for module, cell in ROWS.items()
}


def test_the_tables_are_found() -> None:
    assert {"units", "sim"} <= set(CRATES)
    assert {"units", "records", "cli"} <= set(MODULES)


def test_the_tables_have_no_cycle() -> None:
    for graph in (CRATES, MODULES):
        above: set[str] = set()
        for room, below in graph.items():
            assert below <= above, f"{room} may depend only on what stands above it"
            above.add(room)


# ------------------------------------------------------------------------------------- the crates


@pytest.fixture(scope="session")
def crates() -> dict[str, set[str]]:
    """Each crate of the workspace, by its folder, and those of the workspace that it needs outside
    of tests."""
    cargo = shutil.which("cargo")
    assert cargo is not None, "cargo is needed to read the crates' dependencies"
    command = [cargo, "metadata", "--format-version", "1", "--no-deps", "--offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    packages = json.loads(done.stdout)["packages"]
    folder = {package["name"]: Path(package["manifest_path"]).parent.name for package in packages}
    return {
        folder[package["name"]]: {
            folder[each["name"]]
            for each in package["dependencies"]
            if each["name"] in folder and each["kind"] is None
        }
        for package in packages
    }


def test_the_crates_are_those_of_the_table(crates: dict[str, set[str]]) -> None:
    assert set(crates) == set(CRATES)


@pytest.mark.parametrize("crate", CRATES)
def test_a_crate_depends_on_what_the_table_says(crate: str, crates: dict[str, set[str]]) -> None:
    assert crates[crate] == CRATES[crate]


def test_only_the_crate_python_knows_python(crates: dict[str, set[str]]) -> None:
    for crate in crates:
        manifest = (ROOT / "crates" / crate / "Cargo.toml").read_text(encoding="utf-8")
        assert ("pyo3" in manifest) == (crate == "python"), crate


@pytest.mark.parametrize(
    "crate",
    [
        "units",
        "qdisc",
        "tcp",
        "link",
        "tc",
        "tables",
        "files",
        "metrics",
        "traffic",
        "sim",
        "scenario",
    ],
)
def test_the_core_reads_no_clock_and_does_no_io(crate: str) -> None:
    forbidden = re.compile(
        r"\bstd::(?:time|fs|net|io|env|thread|process)\b|\bSystemTime\b|\bInstant\b|\bHashMap\b"
    )
    for file in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
        code = file.read_text(encoding="utf-8").split("#[cfg(test)]")[0]
        code = re.sub(r"//.*", "", code)
        found = forbidden.search(code)
        assert found is None, f"{file.relative_to(ROOT)}: {found.group() if found else ''}"


# ------------------------------------------------------------------------------------ the modules


def module_of(file: Path) -> str:
    """Which row of the table a source file belongs to."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree: ast.AST, inside: list[str]) -> set[str]:
    """Modules of sojourn that this source imports anywhere in it, be it in a function or for types
    only."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(["sojourn", *inside][: -node.level + 1 or None]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            names = (
                [f"{module}.{alias.name}" for alias in node.names]
                if module == "sojourn"
                else [module]
            )
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("sojourn.")}
    return found


def imports() -> dict[str, set[str]]:
    """Each module of sojourn, and the others that it imports."""
    found: dict[str, set[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        module = module_of(file)
        if module in ("__init__", "__main__"):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
        found.setdefault(module, set()).update(
            imported(tree, list(file.relative_to(PACKAGE).parts[:-1])) - {module}
        )
    return found


IMPORTS = imports()


def test_the_modules_are_those_of_the_table() -> None:
    assert set(IMPORTS) == set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_the_table_allows(module: str) -> None:
    assert IMPORTS[module] - {"_core"} <= MODULES[module]


@pytest.mark.parametrize("module", [module for module, cell in ROWS.items() if cell != "all above"])
def test_what_the_table_allows_is_used(module: str) -> None:
    assert MODULES[module] <= IMPORTS[module]


@pytest.mark.parametrize("module", MODULES)
def test_the_extension_is_imported_only_where_it_may_be(module: str) -> None:
    assert "_core" not in IMPORTS[module] or module in CORE_READERS


# ------------------------------------------------------------------------------- inside the rooms


def files_imported(file: Path) -> set[Path]:
    """The files of sojourn that this one imports; a name that is no file's is its package's."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] != "sojourn" or parts[1:2] == ["_core"]:
                continue
            at = PACKAGE.joinpath(*parts[1:])
            ways = (at.with_suffix(".py"), at / "__init__.py", at.parent.with_suffix(".py"))
            found.add(next((way for way in ways if way.is_file()), at.parent / "__init__.py"))
    return found - {file}


FILES_IMPORTED = {file: files_imported(file) for file in sorted(PACKAGE.rglob("*.py"))}
ROOMS = sorted({file.parent for file in FILES_IMPORTED} - {PACKAGE})


def circle(graph: dict[str, set[str]]) -> list[str]:
    """One circle of the graph; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(PACKAGE)))
def test_there_is_no_circle_inside_a_room(room: Path) -> None:
    # Files beside each other, and rooms within it as a whole.
    graph: dict[str, set[str]] = {}
    for file, others in FILES_IMPORTED.items():
        if file.is_relative_to(room):
            within = {
                other.relative_to(room).parts[0] for other in others if other.is_relative_to(room)
            }
            name = file.relative_to(room).parts[0]
            graph.setdefault(name, set()).update(within - {name})
    assert circle(graph) == []


def modules_used(source: str, exported: dict[str, str], *, top: bool) -> set[str]:
    """Modules of its own crate that a Rust source names: `crate::wire::Frame`,
    `use crate::{wire, host::Host}`; at the top also `super::`."""
    code = re.sub(r"//.*", "", source.split("#[cfg(test)]")[0])
    root = "(?:crate|super)" if top else "crate"
    found = set(re.findall(rf"\b{root}::(\w+)", code))
    for group in re.findall(rf"\b{root}::(\{{[^;]*);", code):
        inner, depth = "", 0
        for char in group:
            depth += (char == "{") - (char == "}")
            inner += char if depth == 1 else " "
        found |= {
            name
            for part in inner.strip("{} ").split(",")
            if (name := part.strip().split(":")[0].strip())
        }
    return {exported.get(name, name) for name in found}


@pytest.mark.parametrize("crate", CRATES)
def test_there_is_no_circle_inside_a_crate(crate: str) -> None:
    # Between the modules at its top, each with what lies in it. What the root itself defines is
    # below all of them.
    source = ROOT / "crates" / crate / "src"
    roots = [file for name in ("lib.rs", "main.rs") if (file := source / name).is_file()]
    exported = {
        name: module
        for file in roots
        for module, names in re.findall(
            r"pub use (\w+)::(\{[^;]*|\w+);", file.read_text(encoding="utf-8")
        )
        for name in re.findall(r"\w+", names)
    }
    files = {
        file: file.relative_to(source).parts[0].removesuffix(".rs") for file in source.rglob("*.rs")
    }
    graph: dict[str, set[str]] = {
        module: set() for file, module in files.items() if file not in roots
    }
    # A function may have a module's name: `tc::record`.
    exported = {name: module for name, module in exported.items() if name not in graph}
    for file, module in files.items():
        if module in graph:
            used = modules_used(
                file.read_text(encoding="utf-8"), exported, top=file.parent == source
            )
            graph[module] |= (used & set(graph)) - {module}
    assert circle(graph) == []


def test_a_circle_is_seen() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
    source = "use crate::{host::{Host, Way}, wire};\nlet x = crate::Packet::new();\n"
    assert modules_used(source, {"Packet": "payload"}, top=False) == {"host", "wire", "payload"}


SEVERAL_OF_A_NAME = {"scenario", "papers"}
"""scenario's names are the language's, and each paper has the same files."""


def house() -> Iterator[Path]:
    """The files of the rooms that share one set of names."""
    for file in sorted(PACKAGE.rglob("*.py")):
        if module_of(file) not in SEVERAL_OF_A_NAME and not file.name.startswith("__"):
            yield file


def test_no_crate_has_an_example_in_its_documentation() -> None:
    # `make test` leaves them out: cargo takes a second for each crate that has none.
    fenced = re.compile(r"```(\w*)\n.*?```", re.DOTALL)
    for file in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        lines = re.findall(r"^\s*//[/!] ?(.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        said = "\n".join(lines)
        assert set(fenced.findall(said)) <= {"text"}, file
        assert not re.search(r"\n\n {4,}\S", fenced.sub("", said)), file


def test_no_two_files_have_one_name() -> None:
    # A verb's file bears the verb's name, beside the one that it calls: cli/run and records/run.
    files = [file for file in house() if module_of(file) != "cli"]
    assert several((file.name, str(file.relative_to(PACKAGE))) for file in files) == {}


def test_no_two_public_types_have_one_name() -> None:
    found = []
    for file in house():
        place = str(file.relative_to(PACKAGE))
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found.append((node.name, place))
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                # An alias of a type: `Floats = NDArray[np.float64]`. Constants are in capitals.
                if (
                    isinstance(target, ast.Name)
                    and target.id[0].isupper()
                    and not target.id.isupper()
                ):
                    found.append((target.id, place))
    assert several((name, place) for name, place in found if not name.startswith("_")) == {}


def several(found: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The places of each name that has more than one."""
    places: dict[str, list[str]] = {}
    for name, place in found:
        places.setdefault(name, []).append(place)
    return {name: each for name, each in places.items() if len(each) > 1}


def test_temporary_folders_are_noted_before_they_are_made() -> None:
    makers = re.compile(r"\b(?:mkdtemp|mkstemp|TemporaryDirectory|NamedTemporaryFile)\b")
    found = {
        module_of(file): file.name
        for file in PACKAGE.rglob("*.py")
        if makers.search(file.read_text(encoding="utf-8"))
    }
    assert found == {"engine": "cache.py"}


# kernel/guest/cache and live/shape/journal: ARCHITECTURE.md says that they have folders and locks
# of their own.
OWN_LOCKS = {"cache.py", "journal.py"}


def replacers(tree: ast.AST) -> Iterator[ast.AST]:
    """The functions that put one file or folder in another's place: `os.replace(a, b)`,
    `path.replace(b)`, `path.rename(b)`."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(map(replaces, ast.walk(function))):
            yield function


def replaces(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return False
    of_os = isinstance(node.func.value, ast.Name) and node.func.value.id in ("os", "shutil")
    name, values = node.func.attr, len(node.args) - of_os
    # Texts are replaced by two values, dates by keywords; a frame's columns are renamed by a dict.
    plain = values == 1 and not any(isinstance(each, ast.Dict) for each in node.args)
    return plain and name in ("replace", "rename", "renames", "move")


def test_what_replaces_a_file_is_beside_it() -> None:
    found = {
        file.name: all("beside" in ast.unparse(function) for function in replacers(tree))
        for file in PACKAGE.rglob("*.py")
        if file.name not in OWN_LOCKS
        and list(replacers(tree := ast.parse(file.read_text(encoding="utf-8"))))
    }
    assert set(found) >= {"disk.py", "recording.py"}, "some are found"
    assert [name for name, beside in found.items() if not beside] == []


def test_no_file_names_the_host_of_a_registry() -> None:
    # apt, pip and cargo know where their packages are; here it may be elsewhere.
    host = re.compile(
        r"\b(?:(?:packages|deb|archive|mirrors?|registry|index|proxy|static|files|download)\.[a-z0-9.-]+|pypi|crates)"
        r"\.(?:org|com|io|net)\b"
    )
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    named = [
        f"{name}: {found.group()}"
        for name in done.stdout.splitlines()
        # The lock file is cargo's own.
        if name not in ("Cargo.lock", str(Path(__file__).relative_to(ROOT)))
        and (ROOT / name).is_file()
        and (found := host.search((ROOT / name).read_text(encoding="utf-8", errors="ignore")))
    ]
    assert named == []


def test_relative_and_nested_imports_are_seen() -> None:
    source = "import numpy\ndef f():\n    from ..records import Run\n    import sojourn.units\n    from sojourn import metrics\n"
    assert imported(ast.parse(source), ["cli"]) == {"records", "units", "metrics"}
