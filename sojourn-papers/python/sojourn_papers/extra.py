"""The verb, its output and the list of papers that this package adds to `sojourn`."""

from sojourn.extras import Extra

EXTRA = Extra(
    name="sojourn-papers",
    verbs={"The real kernel": {"reproduce": "sojourn_papers.cli.reproduce:reproduce"}},
    example="sojourn reproduce --quick",
    lists={"papers": "sojourn_papers.extra:papers"},
    outputs={"reproduce": (1, "sojourn_papers.outputs:ReproduceOutput")},
)


def papers() -> list[str]:
    """The lines of `sojourn list papers`."""
    import sojourn_papers

    width = max(map(len, sojourn_papers.NAMES))
    found = {name: sojourn_papers.about(name) for name in sojourn_papers.NAMES}
    return [f"{name:{width}}  {one['title']} ({one['source']})" for name, one in found.items()]
