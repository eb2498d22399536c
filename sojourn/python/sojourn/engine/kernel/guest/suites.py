"""Lets apt use a suite of Debian's archive that this host's apt does not have.

`apt-get` gets a configuration whose sources, lists and caches are in a folder of ours. The source
is the host's own entry for Debian's archive, with its mirror and keyring, and another suite. So the
host's apt is unchanged, no root is needed, and apt checks the archive's signature.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sojourn.engine.kernel.guest.endings import GuestError

ETC = Path("/etc/apt")
_RELEASES = r"(bookworm|trixie|forky|duke|sid|stable|testing|unstable|oldstable)"
"""Names of Debian's releases, and their aliases."""


@dataclass(frozen=True)
class AptSource:
    """Where apt fetches packages from."""

    uri: str
    options: tuple[str, ...]
    """As in a line of sources.list: `signed-by=...`."""

    def line(self, suite: str) -> str:
        """The line of a sources.list for another suite of the same archive."""
        options = f"[{' '.join(self.options)}] " if self.options else ""
        return f"deb {options}{self.uri} {suite} main\n"


def configured(suite: str, folder: Path, etc: Path = ETC) -> list[str]:
    """Returns the options with which apt's commands take packages from this suite alone, and write
    only to `folder`.

    Raises:
        GuestError: this host's apt has no archive of Debian.
    """
    source = next(_sources(etc), None)
    if source is None:
        raise GuestError(
            f"needs the suite {suite} of Debian's archive, and no source in {etc} is of that archive",
            f"put the package, of Debian's {suite}, into a folder, and give it with --from FOLDER",
        )
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "sources.list").write_text(source.line(suite), encoding="utf-8")
    config = folder / "apt.conf"
    config.write_text(
        "".join(
            (
                f'Dir::State "{folder / "state"}";\n',
                f'Dir::Cache "{folder / "cache"}";\n',
                f'Dir::Etc::SourceList "{folder / "sources.list"}";\n',
                'Dir::Etc::SourceParts "/dev/null";\n',
                'Acquire::Languages "none";\n',
                # The host's own actions after an update must not start here.
                "#clear APT::Update;\n",
            )
        ),
        encoding="utf-8",
    )
    return ["-c", str(config)]


def _sources(etc: Path) -> Iterator[AptSource]:
    """The host's sources of Debian's releases."""
    for file in sorted([etc / "sources.list", *(etc / "sources.list.d").glob("*")]):
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if file.suffix == ".sources":
            yield from _of_stanzas(text)
        elif file.suffix == ".list":
            yield from _of_lines(text)


def _of_lines(text: str) -> Iterator[AptSource]:
    """Sources in the one-line style, sources.list(5)."""
    for line in text.splitlines():
        found = re.match(r"deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+(.*)", line.strip())
        if found and _is_debian_s(found[3].split(), found[4].split()):
            yield AptSource(found[2], tuple((found[1] or "").split()))


def _of_stanzas(text: str) -> Iterator[AptSource]:
    """Sources in the deb822 style, sources.list(5)."""
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if not line.startswith("#")]
        fields = dict(re.findall(r"^([\w-]+):\s*(.*)$", "\n".join(lines), re.MULTILINE))
        words = {name.lower(): value.split() for name, value in fields.items()}
        if "deb" not in words.get("types", ()) or words.get("enabled") == ["no"]:
            continue
        if _is_debian_s(words.get("suites", ()), words.get("components", ())):
            # A key inside the stanza spans lines; it is ignored, and apt's own keys are tried.
            signed = [f"signed-by={file}" for file in words.get("signed-by", ())]
            yield from (AptSource(uri, tuple(signed)) for uri in words.get("uris", ()))


def _is_debian_s(
    suites: list[str] | tuple[str, ...], components: list[str] | tuple[str, ...]
) -> bool:
    return "main" in components and any(re.fullmatch(_RELEASES, suite) for suite in suites)
