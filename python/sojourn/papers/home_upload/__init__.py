"""Julius Plenz 2012: a home upload beside a ping, and fq_codel under a shaper before the modem.

One blog post, one line, one upload, two graphs: `published` has its numbers, `experiments` what is run, `measures` how the
pings of the upload are cut out, `reading` what the post leaves open (the modem's buffer, above all), `claims` its sentences.
"""

from collections.abc import Sequence
from pathlib import Path

from sojourn.papers.evidence import Evidence
from sojourn.papers.home_upload import measures as m
from sojourn.papers.home_upload.claims import CLAIMS
from sojourn.papers.home_upload.experiments import STUDIES, WITH, WITHOUT
from sojourn.papers.home_upload.figures import PICTURES
from sojourn.papers.home_upload.published import NUMBERS
from sojourn.papers.home_upload.reading import READINGS
from sojourn.papers.paper import Bar, Paper


def _story(evidence: Evidence) -> Sequence[Bar]:
    before, after = (evidence.mean("upload", how, m.upload_s) for how in (WITHOUT, WITH))
    return (
        Bar("idle line", evidence.mean("upload", WITHOUT, m.idle_median_ms), "idle"),
        Bar("upload at 1 Mbit/s", evidence.mean("upload", WITHOUT, m.median_ms), "bloated"),
        Bar("htb + fq_codel", evidence.mean("upload", WITH, m.median_ms), "cured", f"upload {after:.1f} s for {before:.1f}"),
    )  # fmt: skip


PAPER = Paper(
    id="home-upload",
    title="Trying the CoDel bufferbloat solution locally",
    source="Julius Plenz, blog post of 28 May 2012",
    about="At home, an upload of five megabytes through a cable modem took pings from 20 ms to an unsteady 140. Limiting the laptop's Wi-Fi to "
    "the line's rate, with fq_codel under the limit, took them to 30 ms; the upload was 1.2 s longer.",
    folder=Path(__file__).parent,
    studies=STUDIES,
    numbers=NUMBERS,
    claims=CLAIMS,
    readings=READINGS,
    pictures=PICTURES,
    story=_story,
    story_axis="median ping RTT",
)
