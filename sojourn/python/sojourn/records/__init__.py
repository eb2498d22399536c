"""Tables and Runs: an engine's results, and the folder that stores them.

`schema`: the declaration of tables. `run`: a Run. `disk`: its files. `pcapng`: its packets as a
capture.
"""

from sojourn.meta import FORMAT, FlowInfo, LinkInfo, Meta, Phase
from sojourn.records.disk import (
    INDEX,
    MEASUREMENT,
    META,
    SCENARIO,
    SUMS,
    RunError,
    check_room,
    check_vacant,
    free_memory,
    reserved,
    write_index,
    write_named,
    write_whole,
)
from sojourn.records.run import Run, holding
from sojourn.records.schema import (
    NONE,
    TABLES,
    ColumnSchema,
    Names,
    TableSchema,
    columns,
    dtype,
    frame,
    names_of,
    nothing,
)

__all__ = [
    "FORMAT",
    "INDEX",
    "MEASUREMENT",
    "META",
    "NONE",
    "SCENARIO",
    "SUMS",
    "TABLES",
    "ColumnSchema",
    "FlowInfo",
    "LinkInfo",
    "Meta",
    "Names",
    "Phase",
    "Run",
    "RunError",
    "TableSchema",
    "check_room",
    "check_vacant",
    "columns",
    "dtype",
    "frame",
    "free_memory",
    "holding",
    "names_of",
    "nothing",
    "reserved",
    "write_index",
    "write_named",
    "write_whole",
]
