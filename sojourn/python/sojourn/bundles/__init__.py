"""Results that others can cite and check: a manifest of files and Runs, and a zip of both.

`manifest`: manifest.json, and the comparison of a folder with it. `zipped`: writes and reads one
zip for an archive.
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
