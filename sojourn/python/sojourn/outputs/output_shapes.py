"""The shape of each output of `--json`."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from typing_extensions import TypedDict

from sojourn.numbers import Known, MeanAndInterval, Numbers

NumberOverSeeds: TypeAlias = MeanAndInterval[Known]


class FailedRun(TypedDict):
    """A run that the engine could not finish."""

    run: str
    """The variant."""
    seed: int
    error: str
    hint: str | None


class RunNumbers(TypedDict):
    """The scenario, the numbers of each seed, and the numbers over the seeds."""

    engine: str
    version: str
    engine_build: str | None
    """The build of the engine; null: not recorded."""
    title: str
    label: str
    """The label of the variant of a sweep."""
    settings: dict[str, Any]
    """For a variant: each key that the sweep varies, with its value."""
    duration_s: float
    warmup_s: float
    seeds: list[int]
    samples: int
    """The number of different seeds: 1 if all have the same tables, otherwise all."""
    fingerprint: str
    """Equal fingerprints mean equal tables."""
    invalid: list[str]
    """Why the numbers must not be used, each a sentence; empty: no reason is known."""
    runs: list[Numbers[Known]]
    """The numbers of each seed."""
    summary: Numbers[NumberOverSeeds]
    """The numbers over the seeds."""


class RunOutput(RunNumbers):
    """`sojourn run` of one variant."""

    schema: str
    failed: list[FailedRun]


class SweepOutput(TypedDict):
    """`sojourn run` of several variants."""

    schema: str
    variants: list[RunNumbers]
    failed: list[FailedRun]


class TableColumn(TypedDict):
    """A quantity."""

    key: str
    name: str
    unit: str
    of: str
    """The owner: a flow entry, the pings, a link."""
    better: Literal["less", "more", "neither"]


class TableNumber(TypedDict):
    """A quantity of a cell, over its seeds."""

    mean: Known
    ci95: Known
    """Half of the 95 % interval; null: none."""
    best: bool
    """Better than every other cell with the same link and traffic."""


class TableRow(TypedDict):
    """A cell."""

    label: str
    settings: dict[str, Any]
    """Each key that varies, with its value."""
    seeds: list[int]
    samples: int
    """The number of different seeds."""
    numbers: dict[str, TableNumber]
    """By the key of the column."""


class CellsOutput(TypedDict):
    """`--format json` of `sojourn run` and `sojourn compare`."""

    schema: str
    keys: list[str]
    """The keys that vary, in the sweep's order."""
    columns: list[TableColumn]
    rows: list[TableRow]


class CheckedTin(TypedDict):
    """A tin of cake, as `tc -s qdisc show` prints it."""

    name: str
    threshold_bps: int
    """The rate above which other tins are served first; 0: none."""
    target_ms: float
    interval_ms: float
    quantum_bytes: int


class CheckedLink(TypedDict):
    """A link, as drawn for the first seed."""

    name: str
    rate_bps: int | None
    """The first rate of a schedule; null: no limit."""
    least_bps: int | None
    greatest_bps: int | None
    mean_bps: int | None
    """The mean rate over the run."""
    delay_ms: float
    qdisc: str
    parameters: str
    """`qdisc` with every parameter that has a value, defaults included."""
    tins: list[CheckedTin]
    """cake's; empty for another discipline."""
    shaper: str | None
    police: str | None
    ring: int | None
    """Descriptors of the ring."""
    loss: bool
    """Whether packets are lost at random."""


class CheckedFlow(TypedDict):
    """The flows of a [[flow]] entry."""

    name: str
    count: int
    kind: str
    congestion: str | None
    path: list[str]
    base_rtt_ms: list[float]
    """The least and the greatest, from propagation alone."""
    start_s: list[float]
    """The least and the greatest."""


class CheckedProgram(TypedDict):
    """A program of the host that would run on a node of the guest."""

    name: str
    node: str
    command: str
    start_s: float
    files: list[str]
    """The text files that it finds in its working folder."""


class Note(TypedDict):
    """A doubtful value in a scenario."""

    key: str
    line: int | None
    message: str
    hint: str | None


class EngineFit(TypedDict):
    """Whether an engine can run the scenario."""

    engine: str
    can: bool
    refused: int
    """The number of variants that it can't run."""
    problems: list[str]
    hint: str | None
    not_ready: str | None
    """Why the engine can't be used here yet, or what this host's kernel lacks."""


class Expected(TypedDict):
    """Estimates for all runs."""

    runs: int
    packets: float
    cpu_s: float
    guest_cpu_s: float
    table_bytes: float
    memory_bytes: float
    """The memory of the largest run."""


class CheckOutput(TypedDict):
    """`sojourn check`."""

    schema: str
    title: str
    duration_s: float
    warmup_s: float
    seeds: list[int]
    sweep: dict[str, list[Any]]
    """Each swept key with its values."""
    variants: list[str]
    links: list[CheckedLink]
    """The links of the first variant, without hosts' access links."""
    flows: list[CheckedFlow]
    programs: list[CheckedProgram]
    """Those of the first variant."""
    notes: list[Note]
    engines: list[EngineFit]
    expected: Expected


class Cell(TypedDict):
    """The first cell that differs."""

    row: int
    """The number of the row, from 0."""
    column: str
    recorded: int | float | str | None
    now: int | float | str | None


class VerifiedTable(TypedDict):
    """A table of a seed."""

    seed: int
    table: str
    equal: bool
    why: str
    """Why it is not equal; empty if it is."""
    difference: Cell | None


class Builds(TypedDict):
    """Builds of the engine."""

    recorded: str | None
    now: str
    same: bool | None


class VerifiedRun(TypedDict):
    """A Run that was run again."""

    run: str
    equal: bool
    engine: str
    build: Builds
    same_scenario: bool | None
    meta: list[str]
    """The keys of meta.json that differ."""
    seeds: list[int]
    seeds_not_finished: list[int]
    changed_files: list[str]
    """Files and folders of this host that a program of the Run read or looked for, and that are others
    now."""
    same_twice: bool | None
    """Whether two runs of the first seed gave the same tables now; null: the Run has no programs."""
    tables: list[VerifiedTable]


class FileApart(TypedDict):
    """A file or a Run that differs from the manifest."""

    name: str
    why: str


class VerifiedManifest(TypedDict):
    """A zip, or a folder with a manifest."""

    path: str
    equal: bool
    """Whether all files match the manifest."""
    files: int
    runs: int
    versions: dict[str, str]
    """Versions of the software that made it: sojourn, python, and packages."""
    differences: list[FileApart]


class VerifyOutput(TypedDict):
    """`sojourn verify`."""

    schema: str
    equal: bool
    manifests: list[VerifiedManifest]
    damaged: list[str]
    """With --sums: damaged files of Runs without a manifest."""
    runs: list[VerifiedRun]
    """The Runs that were run again."""


class ShownLink(TypedDict):
    """A link at an instant."""

    link: str
    qdisc: str
    parameters: str
    """`qdisc` with every parameter that has a value, defaults included."""
    tins: list[CheckedTin]
    """cake's; empty for another discipline."""
    totals: dict[str, Any]
    """Its row of the table `links`, from the beginning of the run to the instant."""
    queue: dict[str, Any] | None
    """Its last row of the table `queue`; null: it has no time line."""


class ShownFlow(TypedDict):
    """A flow at an instant."""

    flow: str
    congestion: str | None
    mss: int | None
    """Payload bytes of a full segment; null: not TCP."""
    totals: dict[str, Any]
    """Its row of the table `flows`, from the beginning of the run to the instant."""
    sample: dict[str, Any] | None
    """Its last row of the table `flow`; null: it has none yet."""


class ShowOutput(TypedDict):
    """`sojourn show`."""

    schema: str
    at_ns: int
    seed: int
    links: list[ShownLink]
    flows: list[ShownFlow]


class JudgedRow(TypedDict):
    """A quantity of each Run of a contest."""

    key: str
    name: str
    unit: str
    of: str
    role: Literal["felt", "queue", "cost", "context"]
    better: Literal["less", "more", "neither"]
    values: dict[str, NumberOverSeeds]
    best: str | None


class ValueAndEnds(TypedDict):
    """A number with its 95 % interval."""

    value: Known
    low: Known
    high: Known


class JudgedDifference(TypedDict):
    """A quantity of a Run compared with the baseline's."""

    key: str
    name: str
    unit: str
    of: str
    role: Literal["felt", "queue", "cost", "context"]
    run: str
    against: str
    value: Known
    reference: Known
    difference: ValueAndEnds
    verdict: Literal["better", "worse", "alike", "unknown", "neither"]


class JudgedContest(TypedDict):
    """Runs that compete."""

    conditions: str
    """The difference to the other contests."""
    link: str | None
    called: dict[str, str]
    seeds: int
    samples: int
    same: bool
    """Whether all its Runs have the same tables."""
    by: str
    """paired, Welch, one sample"""
    baseline: str
    winner: str | None
    runs: list[str]
    """The Runs, best first."""
    front: list[str]
    """The Runs that no other Run beats."""
    beaten: dict[str, list[str]]
    strengths: dict[str, list[str]]
    rows: list[JudgedRow]
    differences: list[JudgedDifference]


class JudgedRuns(TypedDict):
    """A judgement (`sojourn.compare`)."""

    runs: list[str]
    contests: list[JudgedContest]


class CompareOutput(TypedDict):
    """`sojourn compare` of simulations or kernels."""

    schema: str
    link: str | None
    """The link under study."""
    verdict: str
    judgement: JudgedRuns
    variants: list[RunNumbers]
    failed: list[FailedRun]


class AdviceMargin(TypedDict):
    """Variants within this difference in a quantity are as good as each other."""

    key: str
    """The key of the quantity."""
    name: str
    unit: str
    value: float


class Advised(TypedDict):
    """The recommended queue discipline, with commands."""

    about: str
    """The line or the scenario."""
    goal: str
    chosen: str
    """The variant to use."""
    plain: list[str]
    """The advice in three sentences: what happens now, what to do, what it costs."""
    usual: bool
    """Whether it was chosen among equals because it is the usual choice."""
    as_good: list[str]
    """Variants that are as good in every quantity of the goal."""
    undecided: list[str]
    """Variants that the seeds can't place: as good, better or worse."""
    margins: list[AdviceMargin]
    """The greatest difference between equals."""
    too_dear: list[str]
    """Variants that cost too much for this goal."""
    decided_by: list[str]
    """Keys of the quantities that excluded variants, in their order."""
    commands: list[str]
    """Commands to type, as root; empty: no change is needed."""
    sqm: list[str] | None
    """Lines of OpenWrt's /etc/config/sqm; null: SQM lacks this discipline, or a scenario has no
    such line."""
    mikrotik: list[str] | None
    """Commands of MikroTik's RouterOS; null: as for sqm."""
    judgement: JudgedRuns


class AdviseOutput(Advised):
    """`sojourn advise`."""

    schema: str


class AgreeCase(TypedDict):
    """A scenario, with the properties that agreement groups by."""

    name: str
    qdisc: str
    rate_bps: int | None
    congestions: list[str]
    flows: int
    base_rtt_ms: Known
    setting: str


class AgreeRow(TypedDict):
    """A number of both sides."""

    place: str
    metric: str
    unit: str
    sim: Known
    sim_ci95: Known
    kernel: Known
    kernel_ci95: Known
    difference: Known
    """(sim - kernel) / kernel."""
    ci95: Known
    verdict: str


class AgreeComparison(TypedDict):
    """A scenario on both sides."""

    title: str
    label: str
    case: AgreeCase
    seeds: int
    agrees: bool
    rows: list[AgreeRow]


class AgreeDigest(TypedDict):
    """A number over many scenarios."""

    group: str
    metric: str
    verdicts: dict[str, int]
    median: Known
    worst: Known
    worst_case: str


class AgreeOutput(TypedDict):
    """`sojourn agree`."""

    schema: str
    engine: str
    version: str
    tolerance: float
    agrees: bool
    not_finished: int
    invalid: list[str]
    failed: list[FailedRun]
    verdicts: dict[str, int]
    cpu_s: dict[str, Known]
    comparisons: list[AgreeComparison]
    digest: list[AgreeDigest]


class EvaluatedCell(TypedDict):
    """A claim on a candidate in one cell of its criterion."""

    conditions: dict[str, Any]
    """The keys that the criterion sweeps, with their values."""
    run: str
    """The label of the Run."""
    value: Known
    """The number, in `unit`."""
    low: Known
    """The ends of the 95 % interval; null: none."""
    high: Known
    unit: str
    """The unit; "×": a share of the baseline's number."""
    own: Known
    """The candidate's mean, in the column's unit."""
    reference: Known
    """The baseline's mean; null if the threshold does not depend on it."""
    verdict: Literal["holds", "fails", "unclear", "reported", "unknown"]


class EvaluatedCandidate(TypedDict):
    """A claim on a candidate."""

    candidate: str
    verdict: Literal["holds", "fails", "unclear", "reported", "unknown"]
    """The worst verdict of its cells."""
    cells: list[EvaluatedCell]


class EvaluatedClaim(TypedDict):
    """The condition that a criterion sets on a number."""

    of: str
    """A column, named as in `sojourn compare`."""
    over: str | None
    asks: str
    """The threshold in words; empty: there is none."""
    source: str
    """The source of the threshold."""
    candidates: list[EvaluatedCandidate]


class EvaluatedCriterion(TypedDict):
    """One section of the document."""

    name: str
    section: str
    force: str
    title: str
    claims: list[EvaluatedClaim]


class MissingCriterion(TypedDict):
    """A section that can't be run."""

    section: str
    force: str
    title: str
    needs: str


class LeftOutCandidate(TypedDict):
    """One of the suite's candidates that the engine can't run."""

    candidate: str
    why: str


class EvaluateOutput(TypedDict):
    """`sojourn evaluate`."""

    schema: str
    suite: str
    title: str
    engine: str
    candidates: list[str]
    """The baseline, then the others."""
    verdict: list[str]
    """A sentence for each candidate except the baseline."""
    criteria: list[EvaluatedCriterion]
    missing: list[MissingCriterion]
    left_out: list[LeftOutCandidate]
    """Only if the caller named no candidates."""
    failed: list[FailedRun]


class ReplayedSide(TypedDict):
    """Counts of packets of one queue."""

    sent: int
    """Packets that left, marked or not."""
    refused: int
    """Packets dropped on arrival."""
    dropped: int
    """Packets dropped from the queue."""
    marked: int


class ReplayedDraws(TypedDict):
    """The totals of RED's random decisions."""

    drawn: int
    """Arrivals that the recorded queue dropped or marked by a random draw."""
    expected: float
    """The sum of the probabilities of the simulator's queue."""
    ci95: float


class ReplayedDifference(TypedDict):
    """A packet that the two queues treated differently."""

    packet: int
    """Its position among the arrivals, from 0."""
    words: str


class ReplayedQueue(TypedDict):
    """The kernel's queue and the simulator's, with the same arrivals."""

    name: str
    link: str
    qdisc: str
    arrivals: int
    kernel: ReplayedSide
    ours: ReplayedSide
    agreeing: int
    """Packets that both queues treated alike."""
    late: int
    """Departures and drops that agree, but not at the same nanosecond (for a drop, microsecond)."""
    latest_ns: int
    draws: ReplayedDraws | None
    """Null: the discipline draws nothing at random."""
    first: ReplayedDifference | None
    """The first packet to leave among those that differ."""
    agrees: bool


class ReplayOutput(TypedDict):
    """`sojourn replay`."""

    schema: str
    version: str | None
    """The version of the sojourn that recorded; null: nothing was recorded."""
    agrees: bool
    failed: list[FailedRun]
    replays: list[ReplayedQueue]


class NotRemoved(TypedDict):
    """A file or folder that could not be removed."""

    name: str
    why: str


class CleanOutput(TypedDict):
    """`sojourn clean`."""

    schema: str
    removed: list[str]
    """Removed files and folders."""
    left: list[NotRemoved]
    living: list[str]
    """Running processes, whose files stay."""
    guests: list[str]
    """Removed guests."""
    freed_bytes: int
    """Bytes of removed guests."""


class CacheOutput(TypedDict):
    """`sojourn cache`: the store of finished seeds, as it is now."""

    schema: str
    folder: str
    entries: int
    """The number of seeds."""
    bytes: int
    bound_bytes: int
    """The limit for all seeds; 0: the store is not used."""
    oldest_s: float | None
    """The time when the least recently used seed was last read or written, in seconds since 1970;
    null: there is none."""
    unused: str | None
    """Why the store is not used; null: it is used."""
    removed: int
    """Seeds that this call removed."""
