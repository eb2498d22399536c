"""`sojourn look`: finds bufferbloat in a capture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from sojourn.cli import import_, options, work


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@options.block(options.OutputOptions, out="Folder of the Run. [default: runs/<file>]")
@import_.TIME
@options.one(options.TalkOptions, "quiet")
def look(
    path: Path, output: options.OutputOptions, span: tuple[int, int] | None, quiet: bool
) -> None:
    """Look at a capture: RTTs over time, bytes in flight, retransmissions, ECN.

    FILE is pcapng or pcap, as tcpdump or Wireshark writes it, of one interface. It becomes a Run,
    which report and compare take like a measurement. The RTT is computed from TCP's timestamps, or
    from sequence numbers, and from pings.

    \b
    tcpdump -i eth0 -s 128 -w line.pcap
    sojourn look line.pcap
    """
    work.check_there(path, "give a capture: tcpdump -i eth0 -s 128 -w line.pcap")
    from sojourn import formats
    from sojourn.formats import capture, seen
    from sojourn.records.measurement import MeasurementSettings

    content = replace(formats.open_file(path), span_ns=span)
    folder = import_.run_folder(import_.stem(content), output, several=False)
    with formats.damage_named(content, capture.FORMATS[0]):
        measured = seen.measurement(content)
        run = measured.run(content, MeasurementSettings(out=folder, force=output.force))
    import_.show(run, folder, quiet)
