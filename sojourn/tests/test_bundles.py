"""A bundle is one zip with its manifest: the same files give the same bytes, changes are detected,
and names that lead out of the folder are refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tree import ROOT

from sojourn import _core, bundles
from sojourn.bundles import BundleError, manifest, zipped
from sojourn.cli import status
from sojourn.engine import run, run_all, variants
from sojourn.records import META, Run
from sojourn.scenario import loads

SHORT = """
title = "An upload and a ping"
duration = "2 s"
[bottleneck]
rate = "2 Mbit/s"
delay = "5 ms"
qdisc = "codel"
[[flow]]
kind = "bulk"
direction = "up"
[[flow]]
kind = "ping"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a Run of two seeds, a comparison and a file that is not a Run."""
    folder = tmp_path_factory.mktemp("results")
    run(loads(SHORT), seeds=[1, 2], out=folder / "one")
    run_all(variants(loads(SHORT), ["pfifo", "codel"]), out=folder / "compared")
    (folder / "notes.txt").write_text("what this is\n")
    return folder


@pytest.fixture(scope="module")
def bundle(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of `place`."""
    out = tmp_path_factory.mktemp("bundle") / "all.zip"
    assert status(["bundle", "-q", str(place), "-o", str(out)]) == 0
    return out


def again(
    bundle: Path, out: Path, changed: Callable[[dict[str, bytes]], None], how: int = 0
) -> Path:
    """Rewrites the zip with changed files."""
    with zipfile.ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    changed(files)
    with zipfile.ZipFile(out, "w", how) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out


def relisted(files: dict[str, bytes], change: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads(files["manifest.json"])
    change(manifest)
    files["manifest.json"] = json.dumps(manifest).encode()


# --------------------------------------------------------------------------------------- writing


def test_the_same_files_give_the_same_bytes(place: Path, bundle: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(place, tmp_path / "elsewhere" / place.name))
    for file in copy.rglob("*"):
        os.utime(file, (1, 1))
        if file.is_file():
            file.chmod(0o600)
    (copy / ".half.0123456789abcdef").write_bytes(b"what another process is writing")
    zipped.pack([copy], tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == bundle.read_bytes()


def test_the_manifest_has_files_runs_and_versions(place: Path, bundle: Path) -> None:
    with bundles.unpacked(bundle) as (folder, listed, apart):
        assert apart == []
        names = {
            path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
        }
        assert names == set(listed.files)
    one = Run.open(place / "one")
    entries = {entry.path.partition("/")[2]: entry for entry in listed.runs}
    assert set(entries) == {"one", "compared/pfifo", "compared/codel"}
    assert entries["one"].seeds == (1, 2)
    assert entries["one"].results == one.meta.checksums
    assert entries["one"].engine_build == _core.ENGINE
    assert set(listed.versions) == {"python", "sojourn", "numpy", "polars", "matplotlib"}


def test_several_folders_are_in_one_zip_under_their_names(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "two.zip"
    listed = bundles.pack([place / "one", place / "compared"], out)
    assert {name.partition("/")[0] for name in listed.files} == {"one", "compared"}
    shutil.copytree(place / "one", tmp_path / "one")
    with pytest.raises(BundleError, match="one name in the zip"):
        bundles.pack([place / "one", tmp_path / "one"], out)


def test_a_folder_that_can_t_be_bundled_is_refused_with_the_reason(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.zip").touch()
    linked = Path(shutil.copytree(place / "one", tmp_path / "linked"))
    (linked / "to").symlink_to("/etc/hostname")
    damaged = Path(shutil.copytree(place / "one", tmp_path / "damaged"))
    (damaged / "seed-1" / "flows.parquet").write_bytes(b"none")
    for words, message in (
        ([str(tmp_path / "empty"), "-o", str(tmp_path / "a.zip")], "there is no Run in"),
        ([str(tmp_path / "nowhere"), "-o", str(tmp_path / "a.zip")], "is not a folder"),
        ([str(linked), "-o", str(tmp_path / "a.zip")], "is not a regular file"),
        ([str(damaged), "-o", str(tmp_path / "a.zip")], "SHA-256"),
        ([str(place), "-o", str(tmp_path / "x.zip")], "--force"),
        ([str(place), "-o", str(tmp_path / "a.tar")], "does not end in .zip"),
        ([str(place), "-o", str(tmp_path / "no" / "a.zip")], "is not a folder"),
    ):
        assert status(["bundle", *words]) == 2
        assert message in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".zip"] == ["x.zip"]


def _manifest_of(folder: Path) -> manifest.Manifest:
    files = {name: manifest.summed(folder / name) for name in bundles.files_in(folder)}
    return manifest.of_files(files, manifest.runs_in(folder, files))


def test_a_folder_with_a_manifest_of_its_own_is_bundled_with_it(
    place: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(place, tmp_path / "all"))
    own = _manifest_of(copy).text()
    (copy / bundles.MANIFEST).write_bytes(own)
    listed = bundles.pack([copy], tmp_path / "all.zip")
    assert listed.files["all/manifest.json"].bytes == len(own)
    assert status(["verify", "-q", "--sums", str(tmp_path / "all.zip")]) == 0


def test_a_manifest_does_not_list_itself(bundle: Path, tmp_path: Path) -> None:
    def list_itself(manifest: dict[str, Any]) -> None:
        manifest["files"]["manifest.json"] = {"bytes": 3, "sha256": "0" * 64}

    listed = again(bundle, tmp_path / "listed.zip", lambda files: relisted(files, list_itself))
    with pytest.raises(BundleError, match="does not list itself"), bundles.unpacked(listed):
        pass


def test_a_bundle_in_the_folder_is_not_in_the_bundle(place: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(place, tmp_path / "all"))
    first = bundles.pack([copy], copy / "all.zip")
    assert bundles.pack([copy], copy / "all.zip") == first


def test_a_full_disk_leaves_no_half_zip(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "a.zip"
    old.write_bytes(b"the one before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipped, "copied", full)
    with pytest.raises(BundleError, match="No space left on device"):
        bundles.pack([place], old)
    assert [file.name for file in tmp_path.iterdir()] == ["a.zip"]
    assert old.read_bytes() == b"the one before"


KILLED = """
import sys, time
from pathlib import Path
from sojourn import bundles
from sojourn.bundles import zipped
copied = zipped.copied
def slow(source, target):
    found = copied(source, target)
    print("begun", flush=True)
    time.sleep(60)
    return found
zipped.copied = slow
bundles.pack([Path(sys.argv[1])], Path(sys.argv[2]))
"""


def test_the_remains_of_a_killed_bundle_are_removed(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    into = tmp_path / "into"
    into.mkdir()
    words = [sys.executable, "-c", KILLED, str(place), str(into / "a.zip")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"begun\n"
        child.kill()
    assert not (into / "a.zip").exists()
    assert len(list(into.iterdir())) == 1
    subprocess.run([sys.executable, "-m", "sojourn", "clean"], check=True, capture_output=True)
    assert list(into.iterdir()) == []


# --------------------------------------------------------------------------------------- checking


def test_a_bundle_is_checked_and_run_again(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["verify", "-q", str(bundle)]) == 0
    output = capsys.readouterr().out
    assert "files match the manifest" in output
    assert "3 Runs, 4 seeds, run again: every table is equal" in output


def test_the_sums_alone_are_checked_without_a_run(
    bundle: Path,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(_core, "run", lambda *_: pytest.fail("a Run was simulated"))
    assert status(["verify", "-q", "--sums", str(bundle), str(place / "one")]) == 0
    assert "one: every file matches its checksum" in capsys.readouterr().out


def test_different_checksums_end_with_1(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(place / "one", tmp_path / "one"))
    file = copy / "seed-2" / "flows.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert status(["verify", "-q", "--sums", str(copy)]) == 1
    assert "flows.parquet can't be read: its SHA-256" in capsys.readouterr().out


def test_an_unpacked_bundle_is_checked_by_its_manifest_or_its_folder(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "more.txt").write_text("of the reader's own")
    for path in (tmp_path, tmp_path / "manifest.json"):
        assert status(["verify", "-q", "--sums", str(path)]) == 0
    flows = next(tmp_path.rglob("flows.parquet"))
    flows.write_bytes(flows.read_bytes()[:-1] + b"?")
    next(tmp_path.rglob("notes.txt")).unlink()
    capsys.readouterr()
    assert status(["verify", "-q", "--json", str(tmp_path)]) == 1
    (manifest,) = json.loads(capsys.readouterr().out)["manifests"]
    why = {Path(each["name"]).name: each["why"] for each in manifest["differences"]}
    assert why == {
        "flows.parquet": "its SHA-256 differs from the manifest's",
        "notes.txt": "it is missing",
    }


def test_a_changed_byte_of_any_file_in_a_zip_is_found(bundle: Path, tmp_path: Path) -> None:
    content = bundle.read_bytes()
    spoilt = tmp_path / "spoilt.zip"
    with zipfile.ZipFile(bundle) as listed:
        members = listed.infolist()
    for info in members[:: len(members) // 12]:
        # A byte after the local header of the entry.
        at = info.header_offset + 30 + len(info.filename) + info.file_size // 2
        spoilt.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        assert status(["verify", "-q", "--sums", str(spoilt)]) in (1, 2), info.filename


def test_a_truncated_zip_is_refused_and_a_damaged_directory_reads_no_other_file(
    bundle: Path, tmp_path: Path
) -> None:
    content = bundle.read_bytes()
    spoilt = tmp_path / "spoilt.zip"
    for end in range(0, len(content), len(content) // 12):
        spoilt.write_bytes(content[:end])
        assert status(["verify", "-q", "--sums", str(spoilt)]) == 2, end
    with zipfile.ZipFile(bundle) as listed:
        begins = listed.start_dir
    with bundles.unpacked(bundle) as (_, right, _apart):
        pass
    for at in range(begins, len(content), 97):
        spoilt.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        try:
            with bundles.unpacked(spoilt) as (folder, contents, apart):
                assert contents == right
                # Files without a reported difference are equal, byte for byte.
                same = bundles.compare(folder, contents)
                assert {each.name for each in same} <= {each.name for each in apart}
        except BundleError:
            continue


def test_changed_missing_and_added_files_are_named(
    bundle: Path, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{place.name}/notes.txt"
    cases: dict[str, Callable[[dict[str, bytes]], None]] = {
        "its SHA-256 differs from the manifest's": lambda files: files.update(
            {name: b"what that is\n"}
        ),
        "it has 14 bytes; the manifest lists 13": lambda files: files.update(
            {name: b"what this is!\n"}
        ),
        "it is missing": lambda files: files.pop(name) and None,
        "the manifest does not list it": lambda files: files.update({f"{name}.exe": b""}),
    }
    for why, change in cases.items():
        spoilt = again(bundle, tmp_path / "spoilt.zip", change)
        assert status(["verify", "-q", str(spoilt)]) == 1
        output = capsys.readouterr().out
        assert "DIFFERS from its manifest" in output
        assert f"notes.txt{'.exe' if 'list it' in why else ''}: {why}" in output


def test_a_wrong_entry_of_a_run_in_the_manifest_is_reported(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["runs"][0]["engine_build"] = "0" * 16
        del manifest["runs"][1]

    spoilt = again(bundle, tmp_path / "spoilt.zip", lambda files: relisted(files, change))
    assert status(["verify", "-q", str(spoilt)]) == 1
    output = capsys.readouterr().out
    assert "entry differs from this Run's files: engine_build" in output
    assert "entry differs from this Run's files: it is not listed" in output


def test_a_zip_that_was_repacked_with_compression_is_accepted(bundle: Path, tmp_path: Path) -> None:
    small = again(bundle, tmp_path / "small.zip", lambda files: None, zipfile.ZIP_DEFLATED)
    assert small.stat().st_size < bundle.stat().st_size
    assert status(["verify", "-q", "--sums", str(small)]) == 0
    other = again(bundle, tmp_path / "other.zip", lambda files: None, zipfile.ZIP_BZIP2)
    assert status(["verify", "-q", "--sums", str(other)]) == 2


@pytest.mark.parametrize(
    "name", ["../out", "a/../../out", "/tmp/out", "C:/out", "a\\b", "a//b", "a/\x1b"]
)
def test_a_name_that_leads_out_is_refused(
    bundle: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def add(files: dict[str, bytes]) -> None:
        files[name] = b"out"

    def list_(manifest: dict[str, Any]) -> None:
        manifest["files"][name] = {"bytes": 3, "sha256": "0" * 64}

    (tmp_path / "in").mkdir()
    spoilt = again(bundle, tmp_path / "in" / "spoilt.zip", add)
    assert status(["verify", "-q", str(spoilt)]) == 2
    listed = again(bundle, tmp_path / "in" / "listed.zip", lambda files: relisted(files, list_))
    assert status(["verify", "-q", str(listed)]) == 2
    output = capsys.readouterr().err
    assert "do not trust its source" in output
    assert "\x1b" not in output
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["in", "listed.zip", "spoilt.zip"]


def test_links_and_zip_bombs_are_not_unpacked(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = zipfile.ZipInfo("results/link")
    link.external_attr = 0o120777 << 16
    bad = Path(shutil.copy(bundle, tmp_path / "link.zip"))
    with zipfile.ZipFile(bad, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    assert status(["verify", "-q", str(bad)]) == 2
    assert "it is a link, a device or encrypted" in capsys.readouterr().err

    def fill(files: dict[str, bytes]) -> None:
        files["zeros"] = bytes(40 << 20)

    bomb = again(bundle, tmp_path / "bomb.zip", fill, zipfile.ZIP_DEFLATED)
    assert status(["verify", "-q", str(bomb)]) == 2
    assert "bytes unpack to" in capsys.readouterr().err

    # Three bytes of JSON take sixty in memory: 188 MB of it took 5 GB.
    def swell(files: dict[str, bytes]) -> None:
        listed = b"[]," * 2_000_000
        files[bundles.MANIFEST] = b'{"schema": "sojourn/manifest/1", "x": [' + listed + b"0]}"
        files["pad"] = os.urandom(200_000)

    swollen = again(bundle, tmp_path / "swollen.zip", swell, zipfile.ZIP_DEFLATED)
    assert status(["verify", "-q", "--sums", str(swollen)]) == 2
    assert "more than 1500000 values" in capsys.readouterr().err


def test_no_more_of_a_file_is_unpacked_than_the_manifest_lists(
    bundle: Path, place: Path, tmp_path: Path
) -> None:
    name = f"{place.name}/notes.txt"

    def grow(files: dict[str, bytes]) -> None:
        files[name] = bytes(5 << 20)

    grown = again(bundle, tmp_path / "grown.zip", grow)
    with bundles.unpacked(grown) as (folder, _, apart):
        assert [each.name for each in apart] == [name]
        assert (folder / name).stat().st_size <= 14


def test_a_link_out_of_the_folder_of_a_manifest_is_refused(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(place, tmp_path / "all"))
    listed = _manifest_of(copy)
    (copy / bundles.MANIFEST).write_bytes(listed.text())
    assert status(["verify", "-q", "--sums", str(copy)]) == 0
    (copy / "notes.txt").unlink()
    (copy / "notes.txt").symlink_to(place / "notes.txt")
    assert status(["verify", "-q", "--sums", str(copy)]) == 2
    assert "leads out of" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[" * 100_000, b'{"schema": "sojourn/manifest/1"}']
)
def test_a_file_that_is_not_a_manifest_is_refused(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    assert status(["verify", "-q", str(tmp_path)]) == 2
    assert "is not a manifest of sojourn's" in capsys.readouterr().err


def test_a_measurement_in_a_bundle_is_checked_but_not_run_again(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.zip"
    bundles.pack([ROOT / "docs" / "site" / "recorded" / "before", place / "one"], out)
    assert status(["verify", "-q", str(out)]) == 0
    assert "1 Run, 2 seeds, run again: every table is equal; 1 measured in real time" in (
        capsys.readouterr().out
    )


def test_a_run_that_its_scenario_does_not_reproduce_is_reported(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(place / "one", tmp_path / "one"))
    meta = json.loads((copy / META).read_text())
    meta["links"][0]["rate_bps"] += 1
    (copy / META).write_text(json.dumps(meta))
    out = tmp_path / "a.zip"
    bundles.pack([copy], out)
    assert status(["verify", "-q", str(out)]) == 1
    output = capsys.readouterr().out
    assert "1 Run, 2 seeds, run again: 1 DIFFER" in output
    assert "meta.json differs in: links" in output
