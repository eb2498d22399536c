"""`sojourn peer`: compares a measurement with one that another host made at the same time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, text, work

if TYPE_CHECKING:
    from sojourn.records import Run


@click.command()
@click.argument("ours", type=click.Path(path_type=Path), metavar="OURS")
@click.argument("peer", type=click.Path(path_type=Path), metavar="PEER")
@options.one(options.TalkOptions, "as_json")
def peer(ours: Path, peer: Path, as_json: bool) -> None:
    """Distinguish a queue of our own (Wi-Fi) from one on the path that a peer shares.

    OURS is a measurement. PEER is a measurement that another host near us made at the same time
    with the same server, without load: a Run, or the .json of sojourn-probe. Start it on the peer a
    moment before ours:

    \b
    sojourn-probe measure HOST --phase idle --idle 90s --ping udp -o peer.json
    """
    from sojourn_live.measure import peers

    view = peers.find(_run(ours), _run(peer))
    if as_json:
        plain = [
            {
                "phase": phase,
                "our_rise_ms": None if math.isnan(ours_ms) else ours_ms,
                "peer_rise_ms": None if math.isnan(peer_ms) else peer_ms,
                "peer_probes": count,
                "whose": whose,
            }
            for phase, ours_ms, peer_ms, count, whose in peers.rows(view)
        ]
        output = {"target": view.target, "peer_target": view.peer_target, "phases": plain}
        work.show(text.as_json(output, "peer"))
        return
    shown = [
        [phase, text.number(ours_ms), text.number(peer_ms), str(count), whose]
        for phase, ours_ms, peer_ms, count, whose in peers.rows(view)
    ]
    header = ["load", "adds here ms", "adds at the peer ms", "its probes", "queue"]
    work.show("\n".join(peers.sentences(view)) + "\n")
    work.show(text.table(header, shown))


def _run(path: Path) -> Run:
    from sojourn.records import Run
    from sojourn_live.measure import probe_file

    return probe_file.read(path) if probe_file.is_one(path) else Run.open(path)
