"""The scores by worked numbers, and on the edges of their scales."""

import math

import numpy as np
import pytest

from sojourn_live.measure import scores


def test_the_trimmed_mean_leaves_the_worst_twentieth_out() -> None:
    assert scores.trimmed_mean(range(1, 21)) == 10
    assert scores.trimmed_mean([7.0]) == 7
    assert math.isnan(scores.trimmed_mean([]))


def test_lost_probes_are_no_samples() -> None:
    assert scores.trimmed_mean([10.0, math.nan, 30.0], 100) == 20


def test_rpm_of_the_draft_averages_rates() -> None:
    found = scores.rpm_draft09([20] * 40, [40] * 40, [60] * 40, [120] * 40)
    assert (found.foreign, found.loaded, found.rpm) == (1500, 500, 1000)


def test_rpm_of_the_draft_without_tls_has_two_foreign_parts() -> None:
    found = scores.rpm_draft09([20] * 40, [], [60] * 40, [120] * 40)
    assert found.foreign == 1500
    # With zeros instead the score would be too good.
    assert scores.rpm_draft09([20] * 40, [0] * 40, [60] * 40, [120] * 40).foreign > 2000


def test_rpm_of_the_draft_leaves_its_worst_samples_out() -> None:
    spiky = [60.0] * 95 + [6000.0] * 5
    assert scores.rpm_draft09(spiky, spiky, spiky, spiky).rpm == 1000


def test_rpm_of_goresponsiveness_averages_times() -> None:
    foreign, loaded = [120.0] * 40, [120.0] * 40
    assert scores.rpm_go(foreign, loaded).rpm == 750
    assert scores.rpm_go_p90(foreign, loaded).rpm == 750
    # For the same samples it is never above the draft's: the harmonic mean is the least.
    assert scores.rpm_draft09([20] * 40, [40] * 40, [60] * 40, loaded).rpm > 750


def test_rpm_of_goresponsiveness_keeps_the_share_that_its_help_claims_to_trim() -> None:
    # 5 % of 40 self probes are 2; of 3 * 40 thirds they are 6, from the two least foreign probes.
    foreign, loaded = [float(30 + i) for i in range(40)], [float(100 + i) for i in range(40)]
    found = scores.rpm_go(foreign, loaded)
    assert found.loaded == pytest.approx(60_000 / 100.5)
    assert found.foreign == pytest.approx(60_000 / (30.5 / 3))
    assert scores.rpm_go(foreign, loaded, keep_percent=100).loaded == pytest.approx(
        60_000 / np.mean(loaded)
    )


def test_rpm_of_goresponsiveness_needs_enough_probes() -> None:
    # int(0.05 * 19) = 0 self probes are kept, so there is no mean.
    assert math.isnan(scores.rpm_go([60.0] * 19, [60.0] * 19).rpm)
    assert scores.rpm_go_p90([60.0] * 19, [60.0] * 19).rpm == pytest.approx(1500)


def test_rpm_of_goresponsivenesss_p90_is_the_sample_at_nine_tenths() -> None:
    loaded = [float(i) for i in range(1, 11)]
    assert scores.rpm_go_p90([3.0], loaded).loaded == 60_000 / 10


@pytest.mark.parametrize(
    ("rpm", "word"),
    [
        (299.9, "Poor"),
        (300, "Fair"),
        (999.9, "Fair"),
        (1000, "Good"),
        (6000, "Excellent"),
        (math.nan, ""),
    ],
)
def test_classes_of_rpm(rpm: float, word: str) -> None:
    assert scores.rpm_class(rpm) == word


# ----------------------------------------------------------------------------------------- grades


@pytest.mark.parametrize(
    ("increase", "dslreports", "libreqos"),
    [
        (-3, "A+", "A+"),
        (4.99, "A+", "A+"),
        (5, "A", "A"),
        (27, "A", "B"),
        (30, "B", "B"),
        (60, "C", "C"),
        (90, "C", "D"),
        (100, "C", "F"),
        (200, "D", "F"),
        (400, "F", "F"),
    ],
)
def test_the_two_scales(increase: float, dslreports: str, libreqos: str) -> None:
    assert scores.grade(increase, scores.DSLREPORTS) == dslreports
    assert scores.grade(increase, scores.LIBREQOS_README) == dslreports
    assert scores.grade(increase, scores.LIBREQOS_CODE) == libreqos


def test_dslreports_averages_the_increases_of_both_directions() -> None:
    assert scores.dslreports([20, 20], [40, 40], [100, 140]) == ("C", 60)
    assert scores.dslreports([20], [], [120]) == ("C", 100)
    letter, increase = scores.dslreports([20], [], [])
    assert letter == ""
    assert math.isnan(increase)


def test_libreqos_averages_letters_over_the_loads() -> None:
    # (5 + 1 + 4) / 3 = 3.33, at least 2.5: a C.
    found = scores.libreqos([20] * 8, {"down": [40], "up": [130], "both": [60]})
    assert found.phases == {"down": "A", "up": "F", "both": "B"}
    assert (found.grade, found.baseline) == ("C", "A+")
    # The README's scale calls 110 ms a C and 40 ms a B: (5 + 3 + 4) / 3 = 4, a B.
    assert (
        scores.libreqos(
            [20] * 8, {"down": [40], "up": [130], "both": [60]}, scores.LIBREQOS_README
        ).grade
        == "B"
    )


def test_libreqos_rounds_half_a_letter_up() -> None:
    # Letters begin at half points: (4 + 3) / 2 = 3.5 is still a B.
    found = scores.libreqos([20] * 8, {"down": [50], "up": [80]})
    assert found.phases == {"down": "B", "up": "C"}
    assert found.grade == "B"


def test_libreqos_measures_from_the_lower_quartile_of_the_idle_line() -> None:
    # p25 of 10, 20, 30, 40, 50 is 20, its mean 30: 26 over the first, 16 over the second.
    assert scores.libreqos([10, 20, 30, 40, 50], {"up": [46]}).phases == {"up": "B"}


def test_libreqos_gives_no_grade_above_that_of_the_idle_line() -> None:
    assert scores.libreqos([160] * 4, {"up": [161]}).grade == "D"
    assert scores.libreqos([180] * 4, {"up": [181]}).grade == "F"


def test_qoo_is_the_least_of_three_percentiles() -> None:
    assert scores.qoo([90.0] * 100) == 50
    assert scores.qoo([30.0] * 100) == 100
    # p99 of 250 ms is useless, whatever the rest.
    assert scores.qoo([20.0] * 90 + [250.0] * 10) == 0
    assert math.isnan(scores.qoo([]))
