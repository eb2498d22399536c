"""What this package adds to `sojourn`: its verbs, and the reading of measurements."""

from sojourn.extras import VERBS, Extra

PLACES = {"graph": "graph:graph", "import": "import_:import_"}
"""The file and the name in it of a verb that is not in the file of its name, by its name."""

EXTRA = Extra(
    name="sojourn-live",
    verbs={
        "A live line": {
            verb: f"sojourn_live.cli.{PLACES.get(verb, f'{verb}:{verb}')}" for verb in VERBS["live"]
        }
    },
    measurements="sojourn_live.measured:MEASUREMENTS",
)
