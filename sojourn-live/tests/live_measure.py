"""One measuring session as a program: `live_measure.py PLAN` prints its facts and tables as JSON.
PLAN: keyword arguments of `SessionPlan` as JSON, phases as [kind, seconds] and targets as [how,
address]. It prints time and phase on stderr while it measures."""

import json
import sys

from sojourn_live.measure.session import (
    LiveError,
    PlannedPhase,
    ProbeTarget,
    S,
    SessionPlan,
    measure,
)


def plan_of(text: str) -> SessionPlan:
    given = json.loads(text)
    given["phases"] = tuple(
        PlannedPhase(kind, round(seconds * S)) for kind, seconds in given["phases"]
    )
    given["targets"] = tuple(ProbeTarget(*target) for target in given["targets"])
    return SessionPlan(**given)


def report(now: int, _total: int, phase: str) -> bool:
    print(now, phase, file=sys.stderr, flush=True)
    return True


def main() -> int:
    try:
        session = measure(plan_of(sys.argv[1]), report)
    except LiveError as error:
        print(f"error: {error.problem}\nhint: {error.hint}", file=sys.stderr)
        return 2
    tables = {
        name: {key: column.tolist() for key, column in table.items()}
        for name, table in session.tables.items()
    }
    print(json.dumps({"facts": session.facts, "tables": tables}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
