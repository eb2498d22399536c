"""The home upload, reproduced in its quick version."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from laws import *  # noqa: F403

import sojourn_papers as papers
from sojourn.scenario import load
from sojourn_papers import Reproduction, story
from sojourn_papers.evidence import Evidence
from sojourn_papers.home_upload import measures as m
from sojourn_papers.home_upload.figures import SAYS
from sojourn_papers.home_upload.studies import AFTER, BEFORE, IN_PACKETS, MODEM_PACKETS

PAPER = papers.load("home-upload")

MUST_HOLD = 8
IN_PART: set[str] = set()
REPRODUCED = {"without/idle", "with/rate", "with/median", "with/loss", "with/longer"}
UNEXPLAINED: set[str] = set()


def test_the_quick_version_measures_every_number(quick: Reproduction) -> None:
    assert quick.left_out == 0
    assert all(math.isfinite(row.ours.mean) for row in quick.rows)


def test_the_published_numbers_agree_with_each_other() -> None:
    stated = [number for number in PAPER.numbers if number.published is not None]
    assert (len(PAPER.numbers), len(stated)) == (15, 10)
    assert SAYS["with/longer"] == pytest.approx(SAYS["with/upload"] - SAYS["without/upload"])
    # 1.5 % are 7 of the 457 pings that are sent in 45.7 s at ten a second.
    assert round(100 * 7 / (10 * SAYS["without/upload"]), 1) == SAYS["without/loss"]
    assert SAYS["without/idle"] < SAYS["with/median"] < SAYS["without/median"]


def test_the_modem_s_buffer_is_the_searched_one_whose_median_is_nearest() -> None:
    stored = Evidence(False, {}, searched=PAPER.searched(False))
    off = {
        limit: abs(stored.mean(one, m.median_ms) - SAYS["without/median"])
        for limit, one in IN_PACKETS.items()
    }
    assert min(off, key=off.__getitem__) == MODEM_PACKETS
    modem = load(PAPER.folder / "home.toml").realise(1).links[1]
    assert modem.name == "modem"
    assert modem.qdisc.params["limit"] == MODEM_PACKETS


def test_with_the_shaper_the_queue_moves_from_the_modem_to_the_laptop(quick: Reproduction) -> None:
    for how, full, empty in ((BEFORE, "modem", "wlan0"), (AFTER, "wlan0", "modem")):
        assert quick.evidence.mean(how, m.standing_ms(full)) > 15
        assert quick.evidence.mean(how, m.standing_ms(empty)) < 5


def test_an_upload_is_never_quicker_than_its_bytes_at_the_rate(quick: Reproduction) -> None:
    # 5 MiB are 3620 segments of 1448 bytes and a last one of 1120; at the shaper each is charged
    # 66 bytes more.
    at_the_shaper = (5 * 2**20 + 3621 * 66) / 125_000
    at_the_modem = (5 * 2**20 + 3621 * 70) / 128_000
    assert min(quick.evidence.estimate(AFTER, m.upload_s).values) > at_the_shaper
    assert min(quick.evidence.estimate(BEFORE, m.upload_s).values) > at_the_modem


def test_pings_belong_to_a_part_by_their_time_of_sending() -> None:
    probe = pl.DataFrame(
        {
            "t_ns": [0, 100, 200, 300, 400],
            "seq": [0, 1, 2, 3, 4],
            "rtt_ns": [20_000_000, 30_000_000, None, 50_000_000, 60_000_000],
        }
    )
    cut = m.cut(probe, 100, 400)
    np.testing.assert_array_equal(cut, [30.0, np.nan, 50.0])
    assert m.median(cut) == 40
    assert m.loss(cut) == pytest.approx(100 / 3)
    assert m.spread(np.arange(101.0)) == pytest.approx(90)


def test_without_pings_there_is_no_number() -> None:
    nothing = np.empty(0)
    assert all(math.isnan(measure(nothing)) for measure in (m.median, m.spread, m.loss))


def test_the_front_picture_marks_the_published_delays(quick: Reproduction) -> None:
    [axes] = story.draw([quick]).axes
    marks = [
        float(np.asarray(line.get_xdata())[0]) for line in axes.lines if line.get_marker() == "D"
    ]
    assert marks == [20, 140, 30]
    # There are dots and no bars, because a logarithmic axis has no zero.
    assert axes.get_xscale() == "log"
    assert not axes.patches
