"""Makes the site: `make site`, or

    python docs/site/build.py [FOLDER]

pages.py collects the pages, blocks.py runs their blocks, and sphinx makes HTML from them in FOLDER,
by default site/. Results of blocks are cached in target/site until their page, or sojourn, changes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import blocks
import pages

ROOT = pages.ROOT
MADE = ROOT / "target" / "site"
HERE = Path(__file__).parent


def main(out: Path) -> int:
    """Makes the site in `out`. Returns sphinx's exit status."""
    out, source = out.resolve(), MADE / "source"
    shutil.rmtree(source, ignore_errors=True)
    guest, engine = _guest(), _engine()
    for path, text in pages.pages().items():
        file = source / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if pages.is_played(path):
            text = _played(path, text, file.parent, guest, engine)
        file.write_text(text, encoding="utf-8")
    _pictures(source)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going"]
    command += ["-c", str(HERE), "-d", str(MADE / "doctrees"), str(source), str(out)]
    done = subprocess.run(command, check=False, cwd=HERE)
    if done.returncode == 0:
        _opened(source, out)
        _lab(out)
        print(f"wrote {out / 'index.html'}")
    return done.returncode


def _lab(out: Path) -> None:
    """The simulator itself, as a page that docs/lab.md links to."""
    from sojourn import lab

    if lab.is_there():
        lab.write(out / lab.FILE)
    else:
        print("the lab is left out, because its engine is missing (make setup)")


def _opened(source: Path, out: Path) -> None:
    """Copies the HTML pages that blocks wrote beside sphinx's."""
    for page in source.rglob(f"*{pages.OPENED}"):
        target = out / page.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, target)


def _pictures(source: Path) -> None:
    """Pictures that written pages show."""
    for picture in (ROOT / "docs").glob("*.png"):
        shutil.copy(picture, source / "docs" / picture.name)


def _guest() -> bool:
    from sojourn.engine import why_not

    return why_not("kernel") is None


def _engine() -> str:
    """A hash of the package and of this folder's runner: with the page, it decides a block's
    result."""
    found = hashlib.sha256()
    packages = [*ROOT.glob("sojourn*/python/*")]
    files = [file for each in packages for end in ("*.py", "*.so") for file in each.rglob(end)]
    files += [file for file in (ROOT / "scenarios").iterdir() if file.is_file()]
    for file in sorted([*files, HERE / "blocks.py"]):
        found.update(file.read_bytes())
    return found.hexdigest()


def _played(path: str, text: str, beside: Path, guest: bool, engine: str) -> str:
    """The page with its blocks' outputs and figures."""
    found = blocks.find(text)
    if not any(block.runs for block in found):
        return text
    inputs = json.dumps([engine, guest, [[b.language, b.text, b.before] for b in found]])
    cached = MADE / "kept" / hashlib.sha256(inputs.encode()).hexdigest()[:32]
    if not (cached / "outputs.json").exists():
        _play(path, found, cached, guest)
    outputs = json.loads((cached / "outputs.json").read_text(encoding="utf-8"))
    name = PurePosixPath(path).stem
    outcomes = [blocks.Outcome(each) for each in outputs]
    for file in _figures(found):
        if (cached / file).exists():
            target = beside / name / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(cached / file, target)
    return blocks.fill(text, outcomes, lambda file, alt: pages.picture(f"{name}/{file}", alt))


def _play(path: str, found: list[blocks.Block], cached: Path, guest: bool) -> None:
    print(f"running {path}", flush=True)
    folder = MADE / "running"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    player = blocks.Player(path, folder, guest)
    outputs = [player.play(block).text for block in found]
    shutil.rmtree(cached, ignore_errors=True)
    cached.mkdir(parents=True)
    for file in _figures(found):
        if (folder / file).exists():
            (cached / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / file, cached / file)
    (cached / "outputs.json").write_text(json.dumps(outputs), encoding="utf-8")


def _figures(found: list[blocks.Block]) -> list[str]:
    """Files that the page shows, and the lab's pages that these link to."""
    from sojourn import lab

    files = [
        value.partition(": ")[0]
        for block in found
        for name, value in block.behind
        if name == "figure"
    ]
    beside = [
        str(PurePosixPath(file).with_name(lab.FILE))
        for file in files
        if file.endswith(pages.OPENED)
    ]
    return list(dict.fromkeys(files + beside))


def problems(texts: Mapping[str, str]) -> list[str]:
    """Returns an error for each broken link of the site's pages."""
    import posixpath

    anchors = {path: pages.anchors(text) for path, text in texts.items()}
    found = []
    for path, text in texts.items():
        for link in pages.links(text):
            if link["image"] or "://" in link["target"]:
                continue
            where, _, anchor = link["target"].partition("#")
            target = (
                posixpath.normpath(posixpath.join(posixpath.dirname(path), where))
                if where
                else path
            )
            if target not in texts:
                found.append(f"{path}: {link['target']}: there is no such page")
            elif anchor and anchor not in anchors[target]:
                found.append(f"{path}: {link['target']}: {target} has no such section")
    return found


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"))
