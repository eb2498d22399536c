"""Results that others can cite and check: a manifest of files and Runs, and a zip of both.

`manifest`: what manifest.json says of a folder, and what a folder is against it. `zipped`: one zip
for an archive, written and read.
"""

from sojourn.bundles.manifest import (
    MANIFEST,
    SCHEMA,
    BundleError,
    FileDifference,
    FileSum,
    Manifest,
    ManifestRun,
    compare,
    files_in,
    now,
    of_files,
    read,
    runs_in,
    summed,
)
from sojourn.bundles.zipped import pack, unpacked

__all__ = [
    "MANIFEST",
    "SCHEMA",
    "BundleError",
    "FileDifference",
    "FileSum",
    "Manifest",
    "ManifestRun",
    "compare",
    "files_in",
    "now",
    "of_files",
    "pack",
    "read",
    "runs_in",
    "summed",
    "unpacked",
]
