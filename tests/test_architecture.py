"""Compares ARCHITECTURE.md's tables with `cargo metadata` and the import statements, both ways.

A dependency that is missing from the table breaks a boundary. A dependency that is only in the
table makes the page out of date.
"""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from rust import bare, paths, shipped, shipped_files
from tree import ROOT, TESTS

HOMES = {
    name: ROOT / name.replace("_", "-") / "python" / name
    for name in ("sojourn", "sojourn_live", "sojourn_papers")
}
"""The Python packages and their folders."""
PACKAGE = HOMES["sojourn"]
CRATE_FOLDERS = [ROOT / folder / "crates" for folder in ("sojourn", "sojourn-live")]
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
CORE_READERS = {
    "traffic",
    "units",
    "bins",
    "scenario",
    "own",
    "records",
    "metrics",
    "linux_only",
    "formats",
    "engine",
    "agreement",
    "lab",
    "cli",
}
"""Modules that may import the extension, according to the sentence below the tables."""


def tables() -> dict[str, dict[str, str]]:
    """Returns ARCHITECTURE.md's tables by the title of the first column: row -> second column."""
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
LIVE_ROWS = tables()["module of sojourn_live"]
MODULES = {
    module: set(ROWS) - {module} if cell == "all above" else words(cell)
    for module, cell in ROWS.items()
}
LIVE_MODULES = {module: words(cell) for module, cell in LIVE_ROWS.items()}


def crate_folder(crate: str) -> Path:
    [found] = [folder / crate for folder in CRATE_FOLDERS if (folder / crate).is_dir()]
    return found


def test_the_tables_are_found() -> None:
    assert {"units", "sim"} <= set(CRATES)
    assert {"units", "records", "cli"} <= set(MODULES)


def test_the_tables_have_no_cycle() -> None:
    for graph in (CRATES, MODULES, LIVE_MODULES):
        above: set[str] = set()
        for room, below in graph.items():
            assert below <= above, f"{room} may depend only on rooms above it"
            above.add(room)


# ------------------------------------------------------------------------------------- the crates


@pytest.fixture(scope="session")
def packages() -> dict[str, list[dict[str, Any]]]:
    """Each crate of the workspace by its folder, with its dependencies outside of tests as reported
    by cargo."""
    cargo = shutil.which("cargo")
    assert cargo is not None, "cargo is needed to read the crates' dependencies"
    command = [cargo, "metadata", "--format-version", "1", "--no-deps", "--offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {
        Path(package["manifest_path"]).parent.name: [
            each for each in package["dependencies"] if each["kind"] is None
        ]
        for package in json.loads(done.stdout)["packages"]
    }


@pytest.fixture(scope="session")
def crates(packages: dict[str, list[dict[str, Any]]]) -> dict[str, set[str]]:
    """Each crate of the workspace by its folder, with its dependencies within the workspace,
    outside of tests."""
    return {
        crate: {Path(each["path"]).name for each in needed if "path" in each}
        for crate, needed in packages.items()
    }


def test_the_crates_are_those_of_the_table(crates: dict[str, set[str]]) -> None:
    assert set(crates) == set(CRATES)


@pytest.mark.parametrize("crate", CRATES)
def test_each_crate_has_the_dependencies_of_the_table(
    crate: str, crates: dict[str, set[str]]
) -> None:
    assert crates[crate] == CRATES[crate]


KNOW_PYTHON = {"arrays", "python", "extension"}


def test_only_the_extensions_know_python(crates: dict[str, set[str]]) -> None:
    for crate in crates:
        manifest = (crate_folder(crate) / "Cargo.toml").read_text(encoding="utf-8")
        assert ("pyo3" in manifest) == (crate in KNOW_PYTHON), crate


def test_no_crate_of_the_core_depends_on_one_of_another_package() -> None:
    core, live = (
        {each.name for each in folder.iterdir() if each.is_dir()} for folder in CRATE_FOLDERS
    )
    assert "sim" in core
    assert "live" in live
    assert all(not CRATES[crate] & live for crate in core)


def test_each_test_that_the_page_names_exists() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    # A test's name is a statement, so it has four words or more.
    named = set(re.findall(r"`((?:[a-z0-9]+_){3,}\w+)`", page))
    sources = [file for folder in TESTS for file in folder.rglob("*.py")]
    sources += [file for folder in CRATE_FOLDERS for file in folder.rglob("*.rs")]
    there = {
        name
        for file in sources
        for name in re.findall(r"\b(?:def|fn) (\w+)", file.read_text(encoding="utf-8"))
    }
    assert len(named) > 40
    assert named - there == set()


def test_the_page_is_short_and_has_the_counts_of_past_additions() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert page.count("\n") <= 500
    sys.path.insert(0, str(ROOT / "benches"))
    import additions

    try:
        assert additions.table() in page
    except LookupError as error:
        pytest.skip(str(error))


# ------------------------------------------------------------------------------------------ purity


def invariant(number: int) -> str:
    """Returns the text of one of ARCHITECTURE.md's invariants as one line."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("\n## Invariants\n")[2].partition("\n## ")[0]
    [found] = re.findall(rf"^{number}\. (.*?)(?=^\d+\. |\Z)", section, re.MULTILINE | re.DOTALL)
    return " ".join(found.split())


PURE, _, IMPURE = invariant(1).partition("do no I/O")
CORE = [name for name in re.findall(r"`(\w+)`", PURE) if name in CRATES]
OTHERS = [name for name in re.findall(r"`(\w+)`", IMPURE) if name in CRATES]

STD = {
    *("array", "borrow", "cell", "cmp", "error", "fmt", "iter", "marker", "mem", "ops", "ptr"),
    *("rc", "str", "vec", "string", "num", "convert", "default", "option", "result", "slice"),
    *("any", "ascii", "boxed", "char", "hint", "f64::consts"),
    # Ordered collections only: the order of a hash set differs between processes.
    *("collections::BTreeMap", "collections::BTreeSet", "collections::BinaryHeap"),
    *("collections::VecDeque", "sync::Arc", "sync::OnceLock", "net::IpAddr"),
    # To catch a panic, or to pass its message on to a place where it can be read.
    *("panic::resume_unwind", "panic::set_hook", "panic::catch_unwind", "panic::AssertUnwindSafe"),
}
"""The paths that the core may use from std, core and alloc, each with its contents. No entry reads
a clock, a file, the environment or the network, sleeps, or starts a thread or a process."""

WRITES_OR_READS = re.compile(
    r"\b(?:e?print(?:ln)?|dbg|(?:option_)?env|include(?:_str|_bytes)?|(?:global_|naked_)?asm)\s*!"
    # Declarations of C functions.
    r'|\bextern\s*(?:"")?\s*\{'
    r"|\bextern\s+crate\s+(?!self\b|alloc\b)\w+"
)
OF_THE_C_LIBRARY = re.compile(
    r"(?:\.|\bf(?:32|64)\s*::)\s*(powf|powi|exp|exp2|exp_m1|ln|ln_1p|log|log2|log10|cbrt|hypot|sin"
    r"|cos|tan|sin_cos|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh|gamma|ln_gamma)\b\s*\("
)
"""Floating-point functions whose last bit depends on the host's C library or the compiler. Square
roots, remainders and rounding are the same everywhere (IEEE 754)."""


def impure(code: str) -> set[str]:
    """Returns the names in core code, without its tests, that read or change something outside of
    the core."""
    found = {"".join(each.split()) for each in WRITES_OR_READS.findall(code)}
    for path in paths(code):
        root, *names = path.split("::")
        ways = {"::".join(names[:length]) for length in range(1, len(names) + 1)}
        if root in ("std", "core", "alloc") and not ways & STD:
            found.add(path)
    # An alias of all of std would hide the paths used through it.
    found |= set(re.findall(r"\buse\s+(?:::)?(?:std|core|alloc)\s+as\b", code))
    return found


@cache
def code_of(crate: str) -> dict[Path, str]:
    return shipped_files(crate_folder(crate) / "src")


def test_every_crate_is_listed_as_core_or_as_allowed_to_do_io() -> None:
    assert sorted([*CORE, *OTHERS]) == sorted(CRATES)


@pytest.mark.parametrize("crate", CORE)
def test_the_core_reads_no_clock_and_does_no_io(crate: str) -> None:
    assert CRATES[crate] <= set(CORE), "the core may only depend on the core"
    assert not (crate_folder(crate) / "build.rs").exists()
    for file, code in code_of(crate).items():
        assert impure(code) == set(), file.relative_to(ROOT)


@pytest.mark.parametrize("crate", CORE)
def test_the_core_s_mathematics_is_libm_s(crate: str) -> None:
    for file, code in code_of(crate).items():
        assert OF_THE_C_LIBRARY.findall(code) == [], f"{file.relative_to(ROOT)}: libm has it"


EXTERNAL_CRATES = {"bytes", "libm", "parquet", "serde", "serde_json", "sha2", "toml"}
"""External crates that the core may use. As the core uses them, they read no clock, draw no random
numbers and do no I/O."""


@pytest.mark.parametrize("crate", CORE)
def test_the_core_uses_only_the_listed_external_crates(
    crate: str, packages: dict[str, list[dict[str, Any]]]
) -> None:
    assert {each["name"] for each in packages[crate] if "path" not in each} <= EXTERNAL_CRATES


IMPURE_LINES = [
    "let now = std::time::SystemTime::now();",
    "let now = ::std::time::Instant::now();",
    "use std::{fmt, fs};",
    "use std::{collections::VecDeque, time::{self, Duration}};",
    "pub use std::io::{self, Write as _};",
    "use std::fs as files;",
    "use std as all;",
    "use std::*;",
    "use std::collections::{BTreeMap, HashMap};",
    "let set = std::collections::HashSet::new();",
    "let home = std::env::var(name);",
    "std::thread::sleep(pause);",
    "std :: thread :: spawn(work);",
    "std::process::exit(1);",
    "let socket = std::net::UdpSocket::bind(at);",
    "let start = core::arch::x86_64::_rdtsc();",
    "fn drawn() -> std::hash::RandomState { todo!() }",
    'println!("{x}");',
    "eprint!();",
    "dbg!(x);",
    'let text = include_str!("a.txt");',
    'let home = option_env!("HOME");',
    'unsafe extern "C" { fn time(at: *mut i64) -> i64; }',
    "extern crate libc;",
]


BEFORE = [
    "",
    "#[cfg(test)]\nmod tests;\n",
    '#[cfg(test)]\n#[path = "a/b.rs"]\nmod linux;\n',
    '#[cfg(test)]\nmod tests {\n    use super::*;\n    fn f() { g("}") }\n}\n',
    "#[cfg(test)]\nuse a::{b, c};\n",
    "#[cfg(all(test, unix))]\npub(crate) fn held(&self) -> [u8; 3] {\n    [0; 3]\n}\n",
    "#[cfg(test)]\nimpl Bbr {\n    const X: [u8; 2] = { [1, 2] };\n}\n",
    "#[cfg(test)]\nconst ONE: fn() = { || () };\n",
    "#[cfg(test)]\nextern crate self as sim;\n",
    "struct A {\n    #[cfg(test)]\n    pub seen: Vec<(u8, u8)>,\n    b: u8,\n}\n",
    "struct A {\n    #[cfg(test)]\n    seen: u8 }\n",
    "#[cfg(any(test, unix))]\nfn f() {}\n",
    "// #[cfg(test)]\n",
    "/* #[cfg(test)] /* */ */",
    'const TEXT: &str = "#[cfg(test)] //";\n',
    "const QUOTE: char = '\"';\n",
    'const URL: &str = r#"a"//"#;\n',
    "fn f<'a>(x: &'a str) -> &'a str { x }\n",
]
"""Code that is put before an impure line. The check must still find that line."""


@pytest.mark.parametrize("before", BEFORE)
def test_forbidden_calls_are_found_behind(before: str) -> None:
    assert impure(shipped(before)) == set()
    assert [line for line in IMPURE_LINES if not impure(shipped(before + line))] == []


def test_tests_comments_and_literals_do_not_count_as_core_code() -> None:
    for line in IMPURE_LINES:
        held = f"#[cfg(test)]\nmod tests {{\n    fn f() {{ let x = '}}'; {line} }}\n}}\n"
        assert impure(shipped(held)) == set(), line
        assert impure(shipped(f"#![cfg(test)]\n{line}")) == set()
        assert impure(shipped(f"// {line}\n/* {line} */\n")) == set()
        assert impure(shipped(f'const A: &str = r#"{line}"#;\n')) == set()


def test_functions_of_the_c_library_are_found() -> None:
    for line in ("x.powf(2.0)", "x.ln()", "f64::sin(x)", "(1.0 - x)\n    .exp()"):
        assert OF_THE_C_LIBRARY.search(line), line
    for line in ("libm::pow(x, 2.0)", "x.sqrt()", "x.floor()", "f64::from(x)", "x.ilog2()"):
        assert not OF_THE_C_LIBRARY.search(line), line


def test_a_file_that_only_tests_use_does_not_count_as_core_code(tmp_path: Path) -> None:
    files = {
        "lib.rs": "#[cfg(test)]\nmod plain;\npub mod host;\n",
        "plain.rs": "use std::fs;",
        "plain/deep.rs": "use std::fs;",
        "host.rs": "#[cfg(test)]\nmod cases;\nuse std::fs;",
        "host/cases.rs": "use std::fs;",
        "host/plain.rs": "use std::fs;",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {str(file.relative_to(tmp_path)) for file in shipped_files(tmp_path)}
    assert found == {"lib.rs", "host.rs", "host/plain.rs"}


# ---------------------------------------------------------------------------- unsafe and overflows


def test_unsafe_is_allowed_in_the_files_of_the_invariant_alone() -> None:
    # The compiler denies unsafe code in all other files, and clippy requires the reason.
    allowing = {
        str(file.relative_to(folder.parent))
        for folder in CRATE_FOLDERS
        for file in folder.rglob("*.rs")
        if "unsafe_code" in (text := file.read_text(encoding="utf-8"))
        and re.search(r"\b(?:allow|expect|warn)\s*\([^)]*\bunsafe_code\b", bare(text))
    }
    assert allowing == set(re.findall(r"`(crates/[\w/]+\.rs)`", invariant(2)))
    for crate in CRATES:
        manifest = tomllib.loads((crate_folder(crate) / "Cargo.toml").read_text())
        assert manifest["lints"] == {"workspace": True}, crate
    lints = WORKSPACE["workspace"]["lints"]
    assert lints["rust"]["unsafe_code"] == "deny"
    assert lints["clippy"]["undocumented_unsafe_blocks"] == "warn"


def test_tests_run_code_compiled_with_overflow_checks() -> None:
    checked = WORKSPACE["profile"]["checked"]
    assert checked["overflow-checks"] is True
    others = {"*"}  # external crates
    for name, settings in checked["package"].items():
        assert name in others or settings.get("overflow-checks", True), name


# ------------------------------------------------------------------------------------ the modules


def package_of(file: Path) -> str:
    """Returns the Python package of a source file."""
    return next(name for name, folder in HOMES.items() if file.is_relative_to(folder))


def module_of(file: Path) -> str:
    """Returns the row of its package's table for a source file."""
    return file.relative_to(HOMES[package_of(file)]).parts[0].removesuffix(".py")


def imported(tree: ast.AST, inside: list[str]) -> set[str]:
    """Returns the modules of our packages, such as `sojourn.records`, that this source imports,
    including imports in functions and for types only. `inside` is the source's package."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(inside[: len(inside) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            names = (
                [f"{module}.{alias.name}" for alias in node.names] if module in HOMES else [module]
            )
        else:
            continue
        # The package itself counts as its public interface: `import sojourn`.
        found |= {
            ".".join((*name.split("."), "")[:2]) for name in names if name.split(".")[0] in HOMES
        }
    return found


def imports(package: str) -> dict[str, set[str]]:
    """Returns for each module of a package the other modules, of all packages, that it imports."""
    found: dict[str, set[str]] = {}
    for file in sorted(HOMES[package].rglob("*.py")):
        module = module_of(file)
        if module in ("__init__", "__main__", "scenarios"):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
        inside = [package, *file.relative_to(HOMES[package]).parts[:-1]]
        found.setdefault(module, set()).update(imported(tree, inside) - {f"{package}.{module}"})
    return found


def own(package: str, names: set[str]) -> set[str]:
    """Returns the names that are modules of this package, without the package's name."""
    return {name.partition(".")[2] for name in names if name.startswith(f"{package}.")} - {""}


IMPORTS = imports("sojourn")
LIVE_IMPORTS = imports("sojourn_live")
PAPERS_IMPORTS = imports("sojourn_papers")


def test_the_modules_are_those_of_the_table() -> None:
    assert set(IMPORTS) == set(MODULES)
    assert set(LIVE_IMPORTS) == set(LIVE_MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_the_table_allows(module: str) -> None:
    assert own("sojourn", IMPORTS[module]) - {"_core"} <= MODULES[module]


@pytest.mark.parametrize("module", MODULES)
def test_the_core_imports_no_other_package(module: str) -> None:
    assert {name.partition(".")[0] for name in IMPORTS[module]} <= {"sojourn"}


@pytest.mark.parametrize("module", [module for module, cell in ROWS.items() if cell != "all above"])
def test_each_dependency_in_the_table_is_used(module: str) -> None:
    assert MODULES[module] <= own("sojourn", IMPORTS[module])


@pytest.mark.parametrize("module", LIVE_MODULES)
def test_a_module_of_live_lines_has_the_imports_of_the_table(module: str) -> None:
    assert own("sojourn_live", LIVE_IMPORTS[module]) - {"_live"} == LIVE_MODULES[module]


def test_no_package_imports_another_but_the_core() -> None:
    for package, found in (("sojourn_live", LIVE_IMPORTS), ("sojourn_papers", PAPERS_IMPORTS)):
        for module, names in found.items():
            roots = {name.partition(".")[0] for name in names}
            assert roots <= {"sojourn", package}, f"{package}.{module}"


@pytest.mark.parametrize("package", ["sojourn_live", "sojourn_papers"])
def test_the_other_packages_use_public_modules_of_the_core(package: str) -> None:
    used = {
        name: file.relative_to(ROOT)
        for kind in ("*.py", "*.pyi")
        for file in HOMES[package].rglob(kind)
        for name in own("sojourn", imported(ast.parse(file.read_text(encoding="utf-8")), [package]))
        if name.startswith("_")
    }
    assert used == {}


@pytest.mark.parametrize("module", MODULES)
def test_the_extension_is_imported_only_where_it_may_be(module: str) -> None:
    assert "_core" not in own("sojourn", IMPORTS[module]) or module in CORE_READERS


# ------------------------------------------------------------------------------- inside the rooms


def files_imported(file: Path) -> set[Path]:
    """Returns the files of its package that this file imports. A name without a file belongs to the
    package itself."""
    found: set[Path] = set()
    package = package_of(file)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] != package or parts[1:2] in (["_core"], ["_live"]):
                continue
            at = HOMES[package].joinpath(*parts[1:])
            ways = (at.with_suffix(".py"), at / "__init__.py", at.parent.with_suffix(".py"))
            found.add(next((way for way in ways if way.is_file()), at.parent / "__init__.py"))
    return found - {file}


ALL_FILES = [file for folder in HOMES.values() for file in sorted(folder.rglob("*.py"))]
FILES_IMPORTED = {file: files_imported(file) for file in ALL_FILES}
ROOMS = sorted({file.parent for file in FILES_IMPORTED} - {PACKAGE, HOMES["sojourn_live"]})


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Returns one cycle of the graph, or an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(ROOT)))
def test_there_is_no_import_cycle_inside_a_room(room: Path) -> None:
    # The nodes are files of the room, and each folder in it as a whole.
    graph: dict[str, set[str]] = {}
    for file, others in FILES_IMPORTED.items():
        if file.is_relative_to(room):
            within = {
                other.relative_to(room).parts[0] for other in others if other.is_relative_to(room)
            }
            name = file.relative_to(room).parts[0]
            graph.setdefault(name, set()).update(within - {name})
    assert circle(graph) == []


def modules_used(code: str, exported: dict[str, str], *, top: bool) -> set[str]:
    """Returns the modules of its own crate that Rust code names: `crate::wire::Frame`, `use
    crate::{wire, host::Host}`. In a file at the top of the crate also those after `super::`."""
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
def test_there_is_no_import_cycle_inside_a_crate(crate: str) -> None:
    # The nodes are the top-level modules, each with its submodules. Items that the root defines
    # itself are below all of them.
    source = crate_folder(crate) / "src"
    roots = [file for name in ("lib.rs", "main.rs") if (file := source / name).is_file()]
    exported = {
        name: module
        for file in roots
        for module, names in re.findall(
            r"pub use (\w+)::(\{[^;]*|\w+);", file.read_text(encoding="utf-8")
        )
        for name in re.findall(r"\w+", names)
    }
    files = {file: file.relative_to(source).parts[0].removesuffix(".rs") for file in code_of(crate)}
    graph: dict[str, set[str]] = {
        module: set() for file, module in files.items() if file not in roots
    }
    # A function may have the same name as a module: `tc::record`.
    exported = {name: module for name, module in exported.items() if name not in graph}
    for file, module in files.items():
        if module in graph:
            used = modules_used(code_of(crate)[file], exported, top=file.parent == source)
            graph[module] |= (used & set(graph)) - {module}
    assert circle(graph) == []


def test_an_import_cycle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
    source = "use crate::{host::{Host, Way}, wire};\nlet x = crate::Packet::new();\n"
    assert modules_used(source, {"Packet": "payload"}, top=False) == {"host", "wire", "payload"}
    hidden = "#[cfg(test)]\nmod tests;\nuse crate::wire;\n#[cfg(test)]\nuse crate::host;\n"
    assert modules_used(shipped(hidden), {}, top=False) == {"wire"}


SEVERAL_OF_A_NAME = {"scenario"}
"""Packages in which one name may be defined several times. scenario's names are the keys of the
language."""


def house(package: str) -> Iterator[Path]:
    """Yields the files of a package that share one set of names."""
    for file in sorted(HOMES[package].rglob("*.py")):
        if module_of(file) not in SEVERAL_OF_A_NAME:
            yield file


# Excludes papers, where each paper has the same files.
ONE_OF_A_NAME = ["sojourn", "sojourn_live"]


def test_blocks_in_rust_documentation_are_text_or_examples_that_run() -> None:
    # `make test` runs the examples in crates that contain a block marked `rust`.
    for file in sorted(file for each in CRATE_FOLDERS for file in each.glob("*/src/**/*.rs")):
        lines = re.findall(r"^\s*//[/!] ?(.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        comments = "\n".join(lines)
        fenced = re.compile(r"^```(\w*)\n.*?^```$", re.DOTALL | re.MULTILINE)
        assert set(fenced.findall(comments)) <= {"text", "rust"}, file
        assert not re.search(r"\n\n {4,}\S", fenced.sub("", comments)), file


@pytest.mark.parametrize("package", ONE_OF_A_NAME)
def test_no_two_files_have_one_name(package: str) -> None:
    # A verb's file has the verb's name, like the module that it calls: cli/run and records/run.
    files = [
        file
        for file in house(package)
        if module_of(file) != "cli" and not file.name.startswith("__")
    ]
    assert several((file.name, str(file.relative_to(ROOT))) for file in files) == {}


@pytest.mark.parametrize("package", ONE_OF_A_NAME)
def test_no_two_public_types_have_one_name(package: str) -> None:
    found = []
    for file in house(package):
        place = str(file.relative_to(ROOT))
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found.append((node.name, place))
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                # A type alias such as `Floats = NDArray[np.float64]`. Constants are in capitals.
                if (
                    isinstance(target, ast.Name)
                    and target.id[0].isupper()
                    and not target.id.isupper()
                ):
                    found.append((target.id, place))
    assert several((name, place) for name, place in found if not name.startswith("_")) == {}


def several(found: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Returns the places of each name that occurs more than once."""
    places: dict[str, list[str]] = {}
    for name, place in found:
        places.setdefault(name, []).append(place)
    return {name: each for name, each in places.items() if len(each) > 1}


def test_temporary_folders_are_noted_before_they_are_made() -> None:
    makers = re.compile(r"\b(?:mkdtemp|mkstemp|TemporaryDirectory|NamedTemporaryFile)\b")
    found = [file.name for file in ALL_FILES if makers.search(file.read_text(encoding="utf-8"))]
    assert found == []


# ARCHITECTURE.md says that kernel/guest/cache and live/shape/journal have folders and locks of
# their own.
OWN_LOCKS = {"cache.py", "journal.py"}


def replacers(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields functions that replace one file or folder by another: `os.replace(a, b)`,
    `path.replace(b)`, `path.rename(b)`."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(map(replaces, ast.walk(function))):
            yield function


def replaces(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return False
    of_os = isinstance(node.func.value, ast.Name) and node.func.value.id in ("os", "shutil")
    name, values = node.func.attr, len(node.args) - of_os
    # str.replace takes two arguments, date.replace takes keywords, and a frame's rename takes a
    # dict.
    plain = values == 1 and not any(isinstance(each, ast.Dict) for each in node.args)
    return plain and name in ("replace", "rename", "renames", "move")


def test_a_replacement_is_written_beside_its_file() -> None:
    found = {
        file.name: all("beside" in ast.unparse(function) for function in replacers(tree))
        for file in ALL_FILES
        if file.name not in OWN_LOCKS
        and list(replacers(tree := ast.parse(file.read_text(encoding="utf-8"))))
    }
    assert set(found) >= {"disk.py", "recording.py"}, "some are found"
    assert [name for name, beside in found.items() if not beside] == []


def test_no_file_names_the_host_of_a_registry() -> None:
    # apt, pip and cargo are configured with their registries, which may differ on this machine.
    host = re.compile(
        r"\b(?:(?:packages|deb|archive|mirrors?|registry|index|proxy|static|files|download)\.[a-z0-9.-]+|pypi|crates)"
        r"\.(?:org|com|io|net)\b"
    )
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    named = [
        f"{name}: {found.group()}"
        for name in done.stdout.splitlines()
        # cargo writes the lock file.
        if name not in ("Cargo.lock", str(Path(__file__).resolve().relative_to(ROOT)))
        and (ROOT / name).is_file()
        and (found := host.search((ROOT / name).read_text(encoding="utf-8", errors="ignore")))
    ]
    assert named == []


def test_relative_and_nested_imports_are_found() -> None:
    source = "import numpy\ndef f():\n    from ..records import Run\n    import sojourn.units\n    from sojourn import metrics\n"
    found = imported(ast.parse(source), ["sojourn", "cli"])
    assert found == {"sojourn.records", "sojourn.units", "sojourn.metrics"}


def test_html_is_made_by_templates() -> None:
    """Templates escape all inserted text; a function called by hand is easily forgotten."""
    by_hand = re.compile(r"^\s*(from html import|import html\b|from string import Template)", re.M)
    found = {
        f"{'.'.join(path.relative_to(home.parent).parent.parts)}/{path.name}"
        for home in HOMES.values()
        for path in home.rglob("*.py")
        if by_hand.search(path.read_text(encoding="utf-8"))
    }
    # The page of lab contains only a scenario as escaped JSON, and no other external text.
    assert found == {"sojourn.lab/__init__.py"}
