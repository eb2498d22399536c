"""The experiments of a paper: scenario files, and their variants as objects that numbers, claims
and figures refer to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from sojourn.scenario import Scenario, load

Changes: TypeAlias = "Mapping[str, Any]"
"""Changes of a scenario file by dotted key: the argument of `Scenario.with_`."""


@dataclass(frozen=True)
class Variant:
    """One variant of a study. It is run as a Run, and numbers are measured on it.
    `Study.__getitem__` returns it."""

    study: str
    name: str

    def __str__(self) -> str:
        return f"{self.study}/{self.name}"


@dataclass(frozen=True)
class Study:
    """One experiment of the source: a scenario file of the paper's folder, and its variants by
    name."""

    id: str
    what: str
    """Its description in a line: "1000 TCP flows at 200 Mbit/s (section III-A)"."""
    scenario: str
    variants: Mapping[str, Changes] = field(default_factory=lambda: {"": {}})
    seeds: int = 5
    first_seed: int = 1
    """A search has other seeds than the studies that are judged."""
    quick: Changes = field(default_factory=dict)
    """Further changes of the quick version."""
    quick_variants: Collection[str] | None = None
    """The variants that the quick version runs; None: all."""
    quick_seeds: int = 3
    kernel_variants: Mapping[str, Changes] | Collection[str] | None = ()
    """The variants that are also run on the real kernel; None: all. A guest takes a hundred times
    as long. A mapping gives each variant's changes for the kernel."""
    kernel_seeds: int = 3

    def __getitem__(self, name: str) -> Variant:
        """The variant of this name.

        Raises:
            KeyError: the study has none.
        """
        if name not in self.variants:
            raise KeyError(f"the study {self.id} has no variant {name!r}")
        return Variant(self.id, name)

    @property
    def only(self) -> Variant:
        """The variant of a study that has only one."""
        [name] = self.variants
        return self[name]

    def scenarios(self, folder: Path, quick: bool, engine: str = "sim") -> dict[Variant, Scenario]:
        """The scenarios to run."""
        base = load(folder / self.scenario)
        wanted = [self.quick_variants] if quick else []
        if engine != "sim":
            wanted.append(self.kernel_variants)
        kept = [
            name for name in self.variants if all(some is None or name in some for some in wanted)
        ]
        seeds = self.quick_seeds if quick else self.seeds
        if engine != "sim":
            seeds = min(seeds, self.kernel_seeds)
        there = (
            self.kernel_variants
            if engine != "sim" and isinstance(self.kernel_variants, Mapping)
            else {}
        )
        return {
            self[name]: base.with_(
                {**self.variants[name], **(self.quick if quick else {}), **there.get(name, {})},
                seeds=list(range(self.first_seed, self.first_seed + seeds)),
                label=name,
            )
            for name in kept
        }
