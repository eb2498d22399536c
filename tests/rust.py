"""Rust sources for the tests of the tree's rules: the code without comments, the contents of
literals and test-only items, and the full paths that the code names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

LITERAL = re.compile(
    r"""
      (?P<line>//[^\n]*)
    | (?P<block>/\*)
    | (?P<raw>\b[bc]?r(?P<hashes>\#*)"(?:.|\n)*?"(?P=hashes))
    | (?P<text>\b[bc]?"(?:\\(?:.|\n)|[^"\\])*" | "(?:\\(?:.|\n)|[^"\\])*")
    | (?P<char>'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])')
    """,
    re.VERBOSE,
)
"""A lifetime ('a) has no second quote."""


def bare(source: str) -> str:
    """Returns the source with empty comments and literals."""
    out, at = [], 0
    while found := LITERAL.search(source, at):
        out.append(source[at : found.start()])
        at = found.end()
        if found["block"]:
            at = end_of_comment(source, at)
            out.append(" ")
        elif found["line"] is None:
            out.append("''" if found["char"] else '""')
    return "".join([*out, source[at:]])


def end_of_comment(source: str, at: int) -> int:
    """Returns the end of a block comment. Block comments nest."""
    depth = 1
    for mark in re.compile(r"/\*|\*/").finditer(source, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(source)


OF_TESTS = re.compile(r"#\s*\[\s*cfg\s*\(\s*(?:test\s*\)|all\s*\([^\]]*\btest\b[^\]]*\))\s*\]")
FILE_OF_TESTS = re.compile(r"#\s*!\s*\[\s*cfg\s*\(\s*test\s*\)\s*\]")
ATTRIBUTE = re.compile(r"\s*#\s*\[")
HEAD = re.compile(
    r"\s*(?:pub\s*(?:\([^)]*\)\s*)?)?(?P<word>use|extern\s+crate|let|const|static|type|mod|fn|impl"
    r"|struct|enum|trait|union|unsafe|async|extern|macro_rules)\b\s*(?P<next>\w*)"
)
TO_SEMICOLON = {"use", "extern crate", "let", "const", "static", "type"}


def end_of_item(code: str, at: int) -> int:
    """Returns the end of the item at `at`, after any further attributes."""
    while found := ATTRIBUTE.match(code, at):
        at = closing(code, found.end() - 1)
    head = HEAD.match(code, at)
    if head is None:
        # A field, a variant or a match arm ends at its comma, or at the end of the enclosing
        # brackets.
        return stop(code, at, ",", within=True)
    word = " ".join(head["word"].split())
    function = word == "const" and head["next"] in ("fn", "unsafe", "async", "extern")
    if word in TO_SEMICOLON and not function:
        return stop(code, at, ";")
    return stop(code, at, ";{")


def stop(code: str, at: int, marks: str, *, within: bool = False) -> int:
    """Returns the position after the first of `marks` outside of brackets. If this is a brace,
    returns the position after its block."""
    while at < len(code):
        char = code[at]
        if char in marks:
            return closing(code, at) if char == "{" else at + 1
        if char in "([{":
            at = closing(code, at)
            continue
        if within and char in ")]}":
            return at
        at += 1
    return at


def closing(code: str, at: int) -> int:
    """Returns the position after the bracket that closes the one at `at`."""
    depth = 0
    for mark in re.compile(r"[()\[\]{}]").finditer(code, at):
        depth += 1 if mark.group() in "([{" else -1
        if depth == 0:
            return mark.end()
    return len(code)


def shipped(source: str) -> str:
    """Returns the code that is compiled without tests."""
    code = bare(source)
    if FILE_OF_TESTS.search(code):
        return ""
    out, at = [], 0
    while found := OF_TESTS.search(code, at):
        out.append(code[at : found.start()])
        at = end_of_item(code, found.end())
    return "".join([*out, code[at:]])


def shipped_files(source: Path) -> dict[Path, str]:
    """Returns the files of a crate's `src` that are compiled without tests, with their code. A file
    that only a `#[cfg(test)] mod name;` names is a test, and so are the files in its folder."""
    files = {file: file.read_text(encoding="utf-8") for file in sorted(source.rglob("*.rs"))}
    tests = {
        beside(file) / name for file, text in files.items() for name in modules_of_tests(bare(text))
    }
    return {
        file: shipped(text)
        for file, text in files.items()
        if not any(module in (beside(file), *beside(file).parents) for module in tests)
    }


def beside(file: Path) -> Path:
    """Returns the folder of a file's submodules: `src` for `src/lib.rs`, `src/a` for `src/a.rs`."""
    return file.parent if file.stem in ("lib", "main", "mod") else file.with_suffix("")


def modules_of_tests(code: str) -> Iterator[str]:
    for found in OF_TESTS.finditer(code):
        item = code[found.end() : end_of_item(code, found.end())]
        if named := re.search(r"\bmod\s+(\w+)\s*;$", item):
            yield named[1]


PATH = re.compile(
    r"(?<![\w:])(?:::\s*)?(?:r#)?[A-Za-z_]\w*(?:\s*::\s*(?:r#)?\w+)+(?:\s*::\s*[{*])?"
)
USE = re.compile(r"\buse\s+([^;]*);")


def paths(code: str) -> set[str]:
    """Returns every path of two or more names in bare code. Groups of `use` are expanded to one
    path per name, `self` to its module, and names after `as` are dropped."""
    uses = [name for tree in USE.findall(code) for name in leaves(tree)]
    named = [found.group() for found in PATH.finditer(USE.sub(" ", code))]
    return {re.sub(r"\s+|r#", "", path).removeprefix("::") for path in [*uses, *named]}


def leaves(tree: str) -> Iterator[str]:
    """Expands `std::{fs, time::{self, Instant as Then}}` to std::fs, std::time,
    std::time::Instant."""
    tree = re.sub(r"\s+as\s+\w+", " ", tree).strip()
    start = tree.find("{")
    if start < 0:
        yield re.sub(r"\s+|::\s*self$", "", tree)
        return
    base, inner = tree[:start].strip(), tree[start + 1 : closing(tree, start) - 1]
    at = 0
    while at < len(inner):
        end = stop(inner, at, ",")
        part = inner[at:end].rstrip(", \n")
        for leaf in leaves(part) if part.strip() else ():
            yield base.removesuffix("::") if leaf == "self" else base + leaf
        at = end
