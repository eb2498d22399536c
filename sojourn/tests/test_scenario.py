"""The scenario language: its meaning, and the text of its refusals.

First come laws (text and value are equivalent; each flow has its own random numbers), then worked
numbers, then messages to the user.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree import ROOT

from sojourn import _core
from sojourn.scenario import Qdisc, Scenario, ScenarioError, linux, load, loads
from sojourn.scenario.qdisc import LINK_LAYERS, QDISCS, LinkLayer
from sojourn.scenario.realised import Link, Realised
from sojourn.units import UnitError

SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))

HEAD = """duration = "60 s"
[bottleneck]
rate = "20 Mbit/s"
delay = "10 ms"
"""
DUMBBELL = HEAD + '[[flow]]\nkind = "bulk"\n'

CHAIN = """duration = "10 s"
[[link]]
name = "near"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"
[[link]]
name = "far"
from = "b"
to = "c"
rate = "10 Mbit/s"
delay = "7 ms"
"""


def flow(text: str, head: str = HEAD) -> dict[str, Any]:
    """Returns the realised first flow of a dumbbell with the [[flow]] entry `text`."""
    return written(loads(f"{head}[[flow]]\n{text}").realise(1))["flows"][0]


def written(realised: Realised) -> dict[str, Any]:
    """Returns the scenario as plain values."""
    return json.loads(realised.to_json())


def refusal(text: str) -> ScenarioError:
    with pytest.raises(ScenarioError) as refused:
        loads(text, name="home.toml")
    return refused.value


# Laws
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_example_loads_is_realised_and_survives_its_canonical_text(path: Path) -> None:
    scenario = load(path)
    assert loads(scenario.to_toml()) == scenario
    for variant in scenario.variants():
        assert loads(variant.to_toml()) == variant
        realised = variant.realise(variant.seeds[0])
        assert variant.realise(variant.seeds[0]) == realised
        assert all(
            Link.from_json(link.to_json()).to_json() == link.to_json() for link in realised.links
        )
        assert len({each.name for each in realised.flows}) == len(realised.flows)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_core_and_the_standard_library_read_the_same_toml(path: Path) -> None:
    text = path.read_text()
    assert _core.parse_toml(text)[0] == tomllib.loads(text)


def test_every_value_has_the_place_where_it_begins() -> None:
    text = 'title = "é" # x\n[a.b]\nrows = [["é", 1], ["é", { c = 2 }]]\n[[flow]]\nkind = "bulk"\n[a.d]\n'
    places = _core.parse_toml(text)[1]
    lines = text.split("\n")

    def after(key: str) -> str:
        line, column = places[key]
        return lines[line - 1][column - 1 :]

    assert after("title").startswith('"é" # x')
    assert after("a.b.rows.0").startswith('["é", 1]')
    assert after("a.b.rows.0.1").startswith("1], [")
    assert after("a.b.rows.1.1.c").startswith("2 }]]")
    assert after("flow.0").startswith("[[flow]]")
    assert after("flow.0.kind").startswith('"bulk"')
    assert (places["a.b"][0], places["a.d"][0]) == (2, 6)


def test_the_same_seed_realises_the_same_run_and_another_seed_another() -> None:
    scenario = loads(DUMBBELL + 'rtt = "uniform 40 ms .. 80 ms"\ncount = 5')
    assert scenario.realise(1) == scenario.realise(1)
    assert scenario.realise(1).flows != scenario.realise(2).flows


def test_adding_a_flow_does_not_change_another_flow_s_draws() -> None:
    drawn = 'kind = "bulk"\nname = "old"\nrtt = "uniform 40 ms .. 80 ms"\nstart = "uniform 0 s .. 2 s"\n'
    alone = flow(drawn)
    beside = loads(
        f'{HEAD}[[flow]]\nkind = "ping"\nrtt = "uniform 30 ms .. 90 ms"\n[[flow]]\n{drawn}'
    )
    assert {**written(beside.realise(1))["flows"][1], "group": 0} == alone


@given(st.integers(0, 2**63 - 1), st.integers(1, 50))
def test_drawn_values_are_within_their_bounds(seed: int, count: int) -> None:
    scenario = loads(
        f'{DUMBBELL}count = {count}\nrtt = "uniform 20 ms .. 21 ms"\nstart = "spread 1 s .. 2 s"'
    )
    for each in scenario.realise(seed).flows:
        assert 0 <= each.path_extra_ns + each.back_extra_ns <= 1_000_000
        assert 10**9 <= each.start_ns <= 2 * 10**9


def test_the_fingerprint_depends_on_the_run_and_not_on_its_names() -> None:
    scenario = loads(DUMBBELL)
    assert scenario.fingerprint() == scenario.with_(title="another name").fingerprint()
    assert scenario.fingerprint() == loads(scenario.to_toml()).fingerprint()
    for change in (
        {"bottleneck.rate": "21 Mbit/s"},
        {"seed": 2},
        {"flow.0.count": 2},
        {"bottleneck.qdisc": "codel"},
    ):
        assert scenario.with_(**change).fingerprint() != scenario.fingerprint(), change


def test_a_scenario_is_frozen() -> None:
    scenario = loads(DUMBBELL)
    with pytest.raises(AttributeError, match="not writable"):
        scenario.duration = 5  # type: ignore[misc]


# What things mean
# --------------------------------------------------------------------------------------------------


def test_a_dumbbell_has_a_link_down_and_a_link_up() -> None:
    realised = loads(
        HEAD + 'up.rate = "2 Mbit/s"\nup.qdisc = "codel"\n[[flow]]\nkind = "bulk"'
    ).realise(1)
    down, up = written(realised)["links"]
    assert (down["name"], down["rate"], down["qdisc"]) == (
        "down",
        [{"at_ns": 0, "bps": 20_000_000}],
        {"kind": "pfifo", "limit": 1000},
    )
    assert (up["name"], up["rate"], up["qdisc"]["kind"], up["delay_ns"]) == (
        "up",
        [{"at_ns": 0, "bps": 2_000_000}],
        "codel",
        10_000_000,
    )


def test_by_default_bulk_is_a_download_and_a_ping_starts_at_home() -> None:
    assert (flow('kind = "bulk"')["path"], flow('kind = "bulk"')["back"]) == ([0], [1])
    assert (flow('kind = "ping"')["path"], flow('kind = "ping"')["back"]) == ([1], [0])
    assert flow('kind = "bulk"\ndirection = "up"')["path"] == [1]


def test_an_rtt_is_what_the_links_take_and_two_halves_of_the_rest() -> None:
    assert (flow('kind = "bulk"')["path_extra_ns"], flow('kind = "bulk"')["back_extra_ns"]) == (
        0,
        0,
    )
    # 50 ms - 2 × 10 ms = 2 × 15 ms.
    extra = flow('kind = "bulk"\nrtt = "50 ms"')
    assert (extra["path_extra_ns"], extra["back_extra_ns"]) == (15_000_000, 15_000_000)


@pytest.mark.parametrize(
    ("hosts", "each"),
    [
        ('"laptop"', ["laptop", "laptop", "laptop"]),
        ('["laptop"]', ["laptop", "laptop", "laptop"]),
        ('["laptop", "phone"]', ["laptop", "phone", "laptop"]),
        ("2", ["1", "2", "1"]),
        ("1", ["1", "1", "1"]),
    ],
)
def test_an_entry_s_flows_are_assigned_to_its_hosts_in_turn(hosts: str, each: list[str]) -> None:
    named = [f"home/{name}" for name in each]
    # The named hosts are at home, whichever way the data flows.
    for direction in ("down", "up"):
        text = f'kind = "bulk"\ncount = 3\ndirection = "{direction}"\nhosts = {hosts}'
        scenario = loads(f"{HEAD}[[flow]]\n{text}")
        assert loads(scenario.to_toml()) == scenario
        ends = [flow.hosts for flow in scenario.realise(1).flows]
        assert [at_home for pair in ends for at_home in pair if at_home] == named
        assert all(pair[direction == "up"] is None for pair in ends)
    assert flow('kind = "bulk"').get("hosts") is None


def test_hosts_are_at_the_node_that_is_named() -> None:
    text = 'kind = "bulk"\nhosts = "mirror"\nhosts_at = "net"'
    assert flow(text)["hosts"] == ["net/mirror", None]
    chain = loads(
        CHAIN + '\n[[flow]]\nkind = "ping"\nfrom = "a"\nto = "c"\nhosts = 1\nhosts_at = "a"'
    )
    assert chain.realise(1).flows[-1].hosts == ("a/1", None)


def test_all_delay_beyond_the_links_is_at_the_other_end_than_a_named_host() -> None:
    # Flows of one host may have different RTTs: 50 ms - 2 x 10 ms.
    for direction, extras in (("down", (0, 30_000_000)), ("up", (30_000_000, 0))):
        made = flow(f'kind = "bulk"\nrtt = "50 ms"\nhosts = 1\ndirection = "{direction}"')
        assert (made["path_extra_ns"], made["back_extra_ns"]) == extras


def test_hosts_can_be_swept() -> None:
    text = DUMBBELL + 'count = 4\n[sweep]\n"flow.0.hosts" = [1, 4, ["a", "b"]]\n'
    numbers = [
        len({flow.hosts for flow in variant.realise(1).flows}) for variant in loads(text).variants()
    ]
    assert numbers == [1, 4, 2]


@pytest.mark.parametrize(
    ("lines", "at", "hint"),
    [
        ("hosts = 0", "hosts", "from 1 to 100000"),
        ("hosts = 5", "hosts", "count is 3"),
        ('hosts = ["a", "b", "c", "d"]', "hosts", "count is 3"),
        ("hosts = true", "hosts", "a list of names"),
        ("hosts = []", "hosts", "a list of names"),
        ('hosts = ["a", 1]', "hosts.1", "write letters"),
        ('hosts = ["a", "a"]', "hosts.1", "each host once"),
        ('hosts = "a/b"', "hosts", "write letters"),
        ('host = "laptop"', "host", "did you mean hosts"),
        ('hosts_at = "home"', "hosts_at", "write hosts = 4"),
        ('hosts = 2\nhosts_at = "cafe"', "hosts_at", '"net" or "home"'),
        ('hosts = 2\ndirection = "up"\naccess = "1 Gbit/s"', "access", "leave access or hosts out"),
    ],
)
def test_invalid_hosts_are_refused(lines: str, at: str, hint: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        loads(f"{DUMBBELL}count = 3\n{lines}\n")
    problem = refused.value.problems[0]
    assert problem.dotted == f"flow.0.{at}"
    assert hint in problem.hint


def test_the_long_form_needs_the_node_of_the_hosts() -> None:
    with pytest.raises(ScenarioError) as refused:
        loads(CHAIN + '\n[[flow]]\nkind = "bulk"\nfrom = "a"\nto = "c"\nhosts = 1')
    assert 'hosts_at = "a" or "c"' in refused.value.problems[0].hint


@pytest.mark.parametrize(
    ("written", "ds"),
    [
        # The byte in the IP header: names from RFC 2474, 2597, 3246, 5865 and 8622, and words for
        # the bits of RFC 1349.
        ('"cs0"', 0x00),
        ('"cs1"', 0x20),
        ('"cs7"', 0xE0),
        ('"af11"', 0x28),
        ('"af43"', 0x98),
        ('"ef"', 0xB8),
        ('"va"', 0xB0),
        ('"le"', 0x04),
        ('"lowdelay"', 0x10),
        ('"throughput"', 0x08),
        ('"reliability"', 0x04),
        ("46", 0xB8),
        ("63", 0xFC),
    ],
)
def test_a_dscp_is_the_upper_six_bits_of_the_byte(written: str, ds: int) -> None:
    assert flow(f'kind = "bulk"\ndscp = {written}')["ds"] == ds


def test_every_dscp_survives_its_canonical_text() -> None:
    for dscp in range(64):
        scenario = loads(f'{HEAD}[[flow]]\nkind = "ping"\ndscp = {dscp}')
        assert loads(scenario.to_toml()) == scenario
        assert scenario.realise(1).flows[0].ds == dscp << 2
    assert flow('kind = "ping"')["ds"] == 0


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('dscp = "througput"', "did you mean throughput"),
        ('dscp = "AF11"', "did you mean af11"),
        ('dscp = "bulk"', "did you mean throughput"),
        ('dscp = "af14"', "known: cs0 to cs7"),
        ('dscp = "0x08"', "a quarter of the TOS byte"),
        ("dscp = 184", 'write "ef"'),
        ("dscp = 64", 'write "cs2"'),
        ("dscp = 256", "from 0 to 63"),
        ("dscp = -1", "from 0 to 63"),
        ("dscp = true", 'like "cs1"'),
        ("dscp = 1.5", 'like "cs1"'),
        ('tos = "throughput"', "did you mean dscp"),
    ],
)
def test_a_wrong_dscp_is_refused_with_the_nearest(line: str, hint: str) -> None:
    (problem,) = refusal(f'{HEAD}[[flow]]\nkind = "bulk"\n{line}').problems
    assert problem.dotted in ("flow.0.dscp", "flow.0.tos")
    assert hint in problem.hint


def test_spread_rtts_are_evenly_spaced_and_include_both_ends() -> None:
    scenario = loads(DUMBBELL + 'count = 5\nrtt = "spread 40 ms .. 440 ms"\nstart = "every 2 s"')
    flows = scenario.realise(1).flows
    rtts = [20_000_000 + each.path_extra_ns + each.back_extra_ns for each in flows]
    assert rtts == [40_000_000, 140_000_000, 240_000_000, 340_000_000, 440_000_000]
    assert [each.start_ns for each in flows] == [0, 2 * 10**9, 4 * 10**9, 6 * 10**9, 8 * 10**9]


def test_listed_values_are_taken_in_turn() -> None:
    flows = loads(DUMBBELL + 'count = 3\nrtt = ["20 ms", "40 ms"]').realise(1).flows
    assert [each.path_extra_ns for each in flows] == [0, 10_000_000, 0]


def test_flows_are_named_after_their_entry_and_numbered_when_several() -> None:
    entries = '[[flow]]\nkind = "bulk"\n[[flow]]\nkind = "bulk"\ncount = 2\n[[flow]]\nname = "talk"\nkind = "udp"\nrate = "64 kbit/s"\n'
    flows = loads(HEAD + entries).realise(1).flows
    assert [each.name for each in flows] == ["bulk", "bulk-2.1", "bulk-2.2", "talk"]
    assert [each.group for each in flows] == [0, 1, 1, 2]


def test_access_gives_each_flow_links_of_its_own_before_the_bottleneck() -> None:
    realised = loads(DUMBBELL + 'count = 2\naccess = "100 Mbit/s"').realise(1)
    assert [each.name for each in realised.links] == [
        *(
            "down",
            "up",
            "bulk.1/access",
            "bulk.1/access-back",
            "bulk.2/access",
            "bulk.2/access-back",
        )
    ]
    assert (realised.flows[1].path, realised.flows[1].back) == ((4, 0), (1, 5))
    assert [(step.at_ns, step.bps) for step in realised.links[4].rate] == [(0, 100_000_000)]


def test_the_objects_of_a_page_are_assigned_to_its_connections_in_turn() -> None:
    entry = '[[flow]]\nname = "page"\nkind = "web"\ncount = 3\nobjects = 8\nsize = "9 kB"'
    flows = loads(f"{HEAD}{entry}").realise(1).flows
    assert [each.traffic.objects for each in flows] == [3, 3, 2]
    assert {each.kind for each in flows} == {"web"}


def test_every_kind_becomes_the_engine_s_traffic() -> None:
    assert flow('kind = "bulk"\nsize = "5 MB"')["traffic"]["bytes"] == 5_000_000
    web = flow('kind = "transfers"\nsize = "pareto 50 kB 1.5"\npause = "uniform 1 s .. 2 s"')[
        "traffic"
    ]
    assert web["bytes"] == {"law": "pareto", "mean": 50_000, "shape": 1.5}
    assert web["pause_ns"] == {"law": "uniform", "min": 10**9, "max": 2 * 10**9}
    stream = flow('kind = "stream"\nladder = ["1 Mbit/s", "2 Mbit/s"]\nahead = "10 s"')["traffic"]
    assert stream["ladder_bps"] == [10**6, 2 * 10**6]
    assert (stream["segment_ns"], stream["ahead_ns"]) == (4 * 10**9, 10 * 10**9)
    (call,) = loads(f'{HEAD}[[flow]]\nkind = "call"').realise(1).flows
    assert (call.kind, call.traffic.bps, call.traffic.packet_bytes) == ("call", 80_000, 200)
    udp = {
        "kind": "udp",
        "bps": 10**6,
        "packet_bytes": 200,
        "on_ns": None,
        "off_ns": None,
    }
    text = 'kind = "udp"\nrate = "1 Mbit/s"\npacket = "200 B"\ndscp = 46'
    for ecn, bits in {"": 0, "ecn = true": 2, 'ecn = "ect1"': 1}.items():
        sent = flow(f"{text}\n{ecn}")
        assert (sent["traffic"], sent["ds"]) == (udp, 46 << 2 | bits)
    onoff = flow('kind = "onoff"\nrate = "1 Mbit/s"\non = "exp 1 s"\noff = "300 ms"')["traffic"]
    assert (onoff["on_ns"], onoff["off_ns"]) == (
        {"law": "exponential", "mean": 10**9},
        {"law": "constant", "value": 3 * 10**8},
    )
    assert flow('kind = "ping"')["traffic"] == {
        "kind": "ping",
        "interval_ns": 10**8,
        "packet_bytes": 84,
    }
    video = flow('kind = "video"\nrate = "2 Mbit/s"\nfps = 30')["traffic"]
    assert video["frames"] == {
        "source": "model",
        "bps": 2_000_000,
        "fps": 30.0,
        "gop": 25,
        "i_ratio": 4.0,
        "cv": 0.25,
    }


def test_tcp_is_its_profile_and_what_a_flow_sets() -> None:
    linux = flow('kind = "bulk"\necn = true\ntcp = { initial_window = 4, min_rto = "1 s" }')[
        "traffic"
    ]["tcp"]
    assert (linux["congestion"], linux["mss"], linux["header_bytes"], linux["ecn"]) == (
        "cubic",
        1448,
        52,
        True,
    )
    assert (linux["initial_window"], linux["min_rto_ns"]) == (4, 10**9)
    # Without timestamps the payload gets another 12 bytes.
    bare = flow('kind = "bulk"\ntcp = { timestamps = false }')["traffic"]["tcp"]
    assert (bare["mss"], bare["header_bytes"], bare["ack_bytes"]) == (1460, 40, 40)
    ns2 = flow('kind = "bulk"\nprofile = "ns2"')["traffic"]["tcp"]
    assert (ns2["congestion"], ns2["initial_window"], ns2["sack"], ns2["delayed_ack_segments"]) == (
        "reno",
        2,
        False,
        1,
    )


def test_each_profile_has_its_vegas_and_ledbat_begins_with_two_segments() -> None:
    def tcp(text: str) -> Any:
        return flow(f'kind = "bulk"\n{text}')["traffic"]["tcp"]

    def vegas(text: str) -> list[int]:
        full = tcp(f'congestion = "vegas"\n{text}')
        return [full[f"vegas_{name}"] for name in ("alpha", "beta", "gamma")]

    assert vegas("") == [2, 4, 1]
    assert vegas('profile = "ns2"') == [1, 3, 1]
    assert vegas("tcp = { vegas_alpha = 3, vegas_gamma = 2 }") == [3, 4, 2]
    ledbat = tcp('congestion = "ledbat"')
    assert (ledbat["congestion"], ledbat["initial_window"]) == ("ledbat", 2)
    assert (ledbat["ledbat_target_ns"], ledbat["ledbat_gain"]) == (100_000_000, 1.0)
    rfc7928 = tcp(
        'congestion = "ledbat"\ntcp = { ledbat_target = "5 ms", ledbat_gain = 10.0, initial_window = 10 }'
    )
    assert (rfc7928["ledbat_target_ns"], rfc7928["ledbat_gain"], rfc7928["initial_window"]) == (
        5_000_000,
        10.0,
        10,
    )


def test_a_schedule_is_steps_from_the_rate_on() -> None:
    link = (
        loads(
            HEAD + 'schedule = [["10 s", "5 Mbit/s"], ["20 s", "0 bit/s"]]\n[[flow]]\nkind = "bulk"'
        )
        .realise(1)
        .links[0]
    )
    assert [(step.at_ns, step.bps) for step in link.rate] == [
        (0, 20_000_000),
        (10**10, 5_000_000),
        (2 * 10**10, 0),
    ]
    assert link.rate_period_ns is None


def test_the_common_schedule_does_not_override_a_direction_s_own_rate() -> None:
    text = HEAD + 'schedule = [["10 s", "5 Mbit/s"]]\nup.rate = "1 Mbit/s"\n[[flow]]\nkind = "bulk"'
    [step] = loads(text).realise(1).links[1].rate
    assert (step.at_ns, step.bps) == (0, 1_000_000)


def test_an_unlimited_link_has_no_steps() -> None:
    text = HEAD.replace('"20 Mbit/s"', '"unlimited"') + '[[flow]]\nkind = "bulk"'
    assert loads(text).realise(1).links[0].rate == ()


def test_a_trace_is_read_from_beside_the_scenario_and_repeats(tmp_path: Path) -> None:
    (tmp_path / "lte.csv").write_text("seconds,mbit\n5,20\n6,12.5\n8,0\n")
    (tmp_path / "video.txt").write_text("# s bytes\n0.00 14210\n0.04 2380\n")
    text = (
        DUMBBELL.replace('rate = "20 Mbit/s"', 'trace = "lte.csv"')
        + '[[flow]]\nkind = "video"\ntrace = "video.txt"\n'
    )
    (tmp_path / "a.toml").write_text(text)
    scenario = load(tmp_path / "a.toml")
    realised = scenario.realise(1)
    # Times count from the first row. The last step lasts as long as the one before it: 2 s.
    assert [(step.at_ns, step.bps) for step in realised.links[0].rate] == [
        (0, 20_000_000),
        (10**9, 12_500_000),
        (3 * 10**9, 0),
    ]
    assert realised.links[0].rate_period_ns == 5 * 10**9
    frames = {
        "source": "trace",
        "frames": [[0, 14210], [40_000_000, 2380]],
        "period_ns": 80_000_000,
    }
    assert written(realised)["flows"][1]["traffic"]["frames"] == frames
    # The canonical text contains the rows, so it doesn't need the file.
    assert loads(scenario.to_toml()) == scenario


@pytest.mark.parametrize(
    "rows", ["", "1.5", "0 a\n1 b", "0 5\n0 6", "1 5\n0 6", "0 -5", "0 nan", "0 1e15", "\x00"]
)
def test_a_bad_trace_is_refused_at_its_key(tmp_path: Path, rows: str) -> None:
    (tmp_path / "bad.csv").write_text(rows)
    text = DUMBBELL.replace('rate = "20 Mbit/s"', 'trace = "bad.csv"')
    with pytest.raises(ScenarioError) as refused:
        loads(text, folder=tmp_path)
    assert [(problem.dotted, problem.line) for problem in refused.value.problems] == [
        ("bottleneck.trace", 3)
    ]


def test_seeds_are_a_seed_a_count_or_a_list() -> None:
    assert loads(DUMBBELL).seeds == (1,)
    assert loads("seed = 7\n" + DUMBBELL).seeds == (7,)
    assert loads("seeds = 3\n" + DUMBBELL).seeds == (1, 2, 3)
    assert loads("seeds = [3, 8]\n" + DUMBBELL).seeds == (3, 8)


def test_time_lines_have_a_bounded_number_of_rows() -> None:
    def record(**changes: object) -> dict[str, Any]:
        return dict(written(loads(DUMBBELL).with_(**changes).realise(1))["record"])

    assert record() == {"queue_ns": 10**8, "flow_ns": 10**8, "packets": False, "headers": False}
    assert record(**{"flow.0.count": 21})["flow_ns"] == 10**9
    # Two links for ten hours in steps of 100 ms would be 720 000 rows.
    assert record(duration="10 h")["queue_ns"] == 5 * 10**9
    assert record(**{"record.queue": "20 ms"})["queue_ns"] == 20_000_000


# Long form
# --------------------------------------------------------------------------------------------------


def test_a_duplex_link_is_two() -> None:
    realised = loads(CHAIN + '[[flow]]\nkind = "bulk"\nfrom = "a"\nto = "c"').realise(1)
    assert [each.name for each in realised.links] == ["near", "near-back", "far", "far-back"]
    assert (realised.flows[0].path, realised.flows[0].back) == ((0, 2), (3, 1))


def test_routes_take_the_least_delay_then_the_fewest_hops() -> None:
    direct = '[[link]]\nname = "direct"\nfrom = "a"\nto = "c"\nrate = "1 Mbit/s"\ndelay = "{}"\n[[flow]]\nkind = "bulk"\nfrom = "a"\nto = "c"'
    for delay, path in (("13 ms", [0, 2]), ("12 ms", [4]), ("11 ms", [4])):
        assert loads(CHAIN + direct.format(delay)).realise(1).flows[0].path == tuple(path)


def test_via_names_the_path_and_the_return_path_mirrors_it() -> None:
    extra = '[[link]]\nname = "direct"\nfrom = "a"\nto = "c"\nrate = "1 Mbit/s"\ndelay = "1 ms"\n'
    routed = (
        loads(
            CHAIN + extra + '[[flow]]\nkind = "bulk"\nfrom = "a"\nto = "c"\nvia = ["near", "far"]'
        )
        .realise(1)
        .flows[0]
    )
    assert (routed.path, routed.back) == ((0, 2), (3, 1))


@pytest.mark.parametrize(
    ("entry", "key", "words"),
    [
        ('from = "a"\nto = "x"', "flow.0.to", "no link touches"),
        ('from = "a"\nto = "a"', "flow.0.to", "both"),
        ('from = "a"', "flow.0.to", "missing"),
        ('from = "a"\nto = "c"\nvia = ["far"]', "flow.0.via", "starts at"),
        ('from = "a"\nto = "c"\nvia = ["near"]', "flow.0.via", "end at"),
        ('from = "a"\nto = "c"\nvia = ["middle"]', "flow.0.via", "no link is called"),
        ('from = "a"\nto = "c"\nrtt = "23 ms"', "flow.0.rtt", "24 ms"),
        ('from = "a"\nto = "c"\ndirection = "up"', "flow.0.direction", "other form"),
    ],
)
def test_a_flow_without_a_path_is_refused(entry: str, key: str, words: str) -> None:
    (problem,) = refusal(f'{CHAIN}[[flow]]\nkind = "bulk"\n{entry}').problems
    assert problem.dotted == key
    assert words in problem.message


def test_a_chain_of_one_direction_has_no_return_path() -> None:
    text = (
        CHAIN.replace('delay = "7 ms"', 'delay = "7 ms"\nduplex = false')
        + '[[flow]]\nkind = "bulk"\nfrom = "a"\nto = "c"'
    )
    assert "no route back" in refusal(text).problems[0].message


def test_the_reference_names_every_key_word_and_link_layer() -> None:
    reference = (ROOT / "docs" / "scenario.md").read_text()
    names = {name for keys in _core.scenario_keys().values() for name in keys}
    names -= {"bottleneck", "link", "flow", "program", "programs", "record", "sweep"}
    words = {
        word
        for each in QDISCS.values()
        for variant in each.variants
        for word, _ in each.words(variant)
    }
    names |= words - {"adaptative"}
    names |= {"seed", "trace", *LINK_LAYERS}
    assert [name for name in sorted(names) if f"`{name}`" not in reference] == []


# tc's syntax
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pfifo", {"kind": "pfifo", "limit": 1000}),
        ("pfifo limit 1k", {"kind": "pfifo", "limit": 1024}),
        # Like tc, which appends p to a number of packets.
        ("pfifo limit 100p", {"kind": "pfifo", "limit": 100}),
        ("codel limit 1000p", {"limit": 1000}),
        ("sfq limit 127p", {"limit": 127}),
        ("bfifo", {"kind": "bfifo", "limit": 1_514_000}),
        ("pfifo_fast", {"kind": "pfifo_fast", "variant": "linux", "limit": 1000}),
        ("pfifo_fast variant shared limit 64", {"kind": "pfifo_fast", "variant": "shared", "limit": 64}),
        ("codel target 5000 interval 100ms", {"target_ns": 5_000_000, "interval_ns": 10**8, "ecn": False, "limit": 1000}),
        ("fq_codel", {"limit": 10240, "flows": 1024, "quantum": 1514, "ecn": True, "memory_limit": 2**25, "drop_batch": 64}),
        ("fq_codel noecn ce_threshold 1ms", {"ecn": False, "ce_threshold_ns": 1_000_000}),
        ("codel variant=rfc8289", {"variant": "rfc"}),
        # By a name that doesn't change.
        ("fq_codel variant linux6.12", {"variant": "linux"}),
        ("red variant linux6.12 limit 400000 avpkt 1000", {"variant": "linux", "limit": 400_000}),
        # tc: max = limit/4, min = max/3, burst = (2 min + max) / (3 avpkt).
        ("red limit 400000 avpkt 1000", {"max": 100_000, "min": 33_333, "burst": 55, "probability": 0.02, "bandwidth": 10**7}),
        ("red limit 400k avpkt 1000 min 30000 ecn adaptative bandwidth 1kbps", {"limit": 409_600, "max": 90_000, "bandwidth": 8_000, "adaptive": True}),
        ("red variant ns2", {"limit": 50, "min": 0.0, "max": 0.0, "weight": 0.0, "probability": 0.1, "byte_mode": True}),
        ("red variant ns3", {"limit": 25, "min": 5.0, "max": 15.0, "weight": 0.002, "probability": 0.02, "byte_mode": False}),
        ("red variant ns3 adaptive max 30", {"min": 0.0, "max": 30.0, "weight": 0.0, "adaptive": True}),
        ("adt limit 500", {"limit": 500, "utilisation": 0.99, "increase": 1.01, "weight": 0.1, "sample_ns": 3 * 10**8}),
        ("pie", {"variant": "linux", "limit": 1000, "target_ns": 15_000_000, "alpha": 2, "beta": 20, "ecn": False}),
        ("pie variant rfc8033 ecn", {"variant": "rfc", "target_ns": 15_000_000, "alpha": 2.0, "ecn": True}),
        ("pie variant docsis", {"target_ns": 10_000_000, "tupdate_ns": 16_000_000, "alpha": 4.0, "beta": 40.0}),
        ("fq_pie", {"limit": 10_240, "flows": 1024, "target_ns": 15_000_000, "ecn_prob": 10, "ecn": False}),
        ("hhf", {"limit": None, "quantum": None}),
        ("hhf hh_limit 64", {"limit": None, "hh_limit": 64}),
        ("cake bandwidth 8mbit rtt 50ms besteffort", {"bandwidth": 8_000_000, "rtt_ns": 50_000_000, "tins": "besteffort", "wash": None}),
        ("ets bands 3 quanta 3000 1500 strict 1 priomap 0 1 2", {"bands": 3, "quanta": "3000 1500", "strict": 1, "priomap": "0 1 2"}),
    ],
)  # fmt: skip
def test_tc_words_mean_what_they_mean_to_tc(text: str, expected: dict[str, object]) -> None:
    params = Qdisc.parse(text).params
    assert {name: params[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("name", "instead"), [("bbr2", 'congestion = "bbr3"'), ("BBRv3", 'congestion = "bbr3"')]
)
def test_a_congestion_control_that_no_kernel_here_has_is_refused(name: str, instead: str) -> None:
    [problem] = refusal(
        DUMBBELL.replace('kind = "bulk"', f'kind = "bulk"\ncongestion = "{name}"', 1)
    ).problems
    assert f"nor in the guest's Linux {linux.LINUX_RELEASE}" in problem.message
    assert instead in problem.hint


@pytest.mark.parametrize(
    ("text", "offset", "hint"),
    [
        ("codl", 0, "codel"),
        ("dualpi2 step_thresh 2q", 20, "ms"),
        ("cak", 0, "cake"),
        ("htb rate 1mbit", 0, "shaper"),
        ("pie targt 15ms", 4, "did you mean target"),
        ("pie target 15.0005ms", 11, "15ms"),
        ("cake besteffort diffserv4", 16, "once"),
        ("cake rtt 50ms lan", 0, "keep one"),
        ("cake variant linux", 5, "leave variant out"),
        ("choke bandwidth 10mbit", 0, "choke limit 1000"),
        ("choke limit 100", 0, "bandwidth"),
        ("choke limit 100 bandwidth 1mbit min 30 max 20", 0, "min below max"),
        ("choke limit 10 bandwidth 1mbit min 3 max 20", 0, "limit"),
        ("ets", 0, "ets bands 3"),
        ("prio priomap 1 2 x", 13, "1000"),
        ("prio bands 17", 11, "from 2 to 16"),
        ("codel targt 5ms", 6, "target"),
        ("codel target", 6, "TIME"),
        ("codel target 5 ms", 15, "known words"),
        ("codel target 5parsec", 13, "ms"),
        ("fq_codel flows 12p", 15, "write 12"),
        ("bfifo limit 100p", 12, "known units"),
        ("codel target 5 ms", 15, "write target 5ms"),
        ("fq_codel interval 100 MS", 22, "write interval 100ms"),
        ("codel 5ms", 6, "write target 5ms"),
        ("pfifo 100", 6, "write limit 100"),
        ("codel 100p", 6, "write limit 100;"),
        ("netem delay 10ms", 0, 'delay = "10 ms"'),
        ("blackhole", 0, 'loss = "100 %"'),
        ("pi2", 0, "nearest: dualpi2"),
        ("rem", 0, "nearest: pie"),
        ("ared", 0, "nearest: red variant ns2"),
        ("codel limit 010", 12, "write 10"),
        ("codel limit 1e3", 12, "1000"),
        ("codel limit 99999999999", 12, "4294967295"),
        ("codel ecn noecn", 10, "once"),
        ("codel variant paper", 14, "linux, linux7.3, linux2012, rfc, ns3"),
        ("pfifo variant linux", 6, "leave variant out"),
        ("pfifo_fast limit 0", 17, "from 1"),
        ("pfifo_fast variant rfc", 19, "linux, shared"),
        ("pfifo_fas", 0, "pfifo_fast"),
        ("red gentle limit 5", 4, "ns2"),
        ("red limit 400000", 0, "avpkt"),
        ("red limit 1000 avpkt 1000 min 2000", 0, "limit of at least 6000"),
        ("fq_codel quantum 90", 17, "256"),
        ("red limit 400000 avpkt 1000 bandwidth 50%", 38, "10mbit"),
        ("", 0, "fq_codel"),
    ],
)
def test_an_error_points_at_the_wrong_word(text: str, offset: int, hint: str) -> None:
    with pytest.raises(UnitError) as refused:
        Qdisc.parse(text)
    assert refused.value.offset == offset
    assert hint in refused.value.hint


def test_a_time_without_a_unit_is_read_as_in_tc_and_noted() -> None:
    text = DUMBBELL.replace('delay = "10 ms"', 'delay = "10 ms"\nqdisc = "fq_codel target 5"')
    scenario = loads(text, name="home.toml")
    assert scenario.realise(1).links[0].qdisc.params["target_ns"] == 5_000
    [note] = scenario.notes
    assert str(note) == (
        "home.toml:5:26: bottleneck.qdisc: target 5 is 5 us: to tc a bare number is microseconds\n"
        '     5 | qdisc = "fq_codel target 5"\n'
        "       |                          ^\n"
        "hint: write target 5ms if milliseconds are meant, else target 5us"
    )
    noted = scenario.with_(
        {
            "bottleneck.qdisc": "cake bandwidth 20Mbps",
            "bottleneck.up.shaper": "htb rate 20Mbps",
            "bottleneck.up.police": "rate 20Mbps burst 64k",
        }
    ).notes
    assert [str(note).splitlines() for note in noted] == [
        [
            f"bottleneck.{key}: {word} 20Mbps is 160 Mbit/s: to tc bps is bytes a second",
            f"hint: write {word} 20mbit if 20 Mbit/s is meant, else {word} 160mbit",
        ]
        for key, word in (("qdisc", "bandwidth"), ("up.shaper", "rate"), ("up.police", "rate"))
    ]
    for sound in (
        "codel target 5us",
        "codel target 5000",
        "codel target 5ms interval 0.1s",
        "codel limit 5",
    ):
        assert scenario.with_({"bottleneck.qdisc": sound}).notes == ()


def test_notes_of_unchanged_keys_stay_and_are_given_once() -> None:
    ways = 'up.qdisc = "codel target 3"\ndown.qdisc = "codel interval 100"\n'
    scenario = loads(HEAD + ways + '[[flow]]\nkind = "bulk"\n')
    assert [note.dotted for note in scenario.notes] == [
        "bottleneck.down.qdisc",
        "bottleneck.up.qdisc",
    ]
    changed = scenario.with_({"bottleneck.up.qdisc": "codel", "seed": 3})
    assert [(note.dotted, note.line) for note in changed.notes] == [("bottleneck.down.qdisc", 6)]
    sweep = loads(
        DUMBBELL
        + '[sweep]\n"bottleneck.qdisc" = ["codel target 5", "pfifo"]\nflow.0.count = [1, 2]\n'
    )
    for each in (sweep, sweep.with_(seed=2)):
        assert [(note.line, note.column) for note in each.notes] == [(8, 23)]
    assert [len(variant.notes) for variant in sweep.variants()] == [1, 1, 0, 0]
    assert loads(sweep.to_toml()) == sweep


@pytest.mark.parametrize(
    ("rate", "red"),
    [
        ('rate = "20 Mbit/s"', "limit 600000 min 50000 max 150000 avpkt 1000 burst 83 bandwidth 20mbit"),
        ('rate = "500 kbit/s"', "limit 60000 min 5000 max 15000 avpkt 1000 burst 8 bandwidth 500kbit"),
        # The fastest step of a schedule, the slower of line and shaper, and 10 Gbit/s where neither
        # has a rate.
        ('schedule = [["0 s", "1 Mbit/s"], ["9 s", "20 Mbit/s"]]', "limit 600000 min 50000 max 150000 avpkt 1000 burst 83 bandwidth 20mbit"),
        ('rate = "1 Gbit/s"\nshaper = "htb rate 20mbit"', "limit 600000 min 50000 max 150000 avpkt 1000 burst 83 bandwidth 20mbit"),
        ('rate = "unlimited"', "limit 300000000 min 25000000 max 75000000 avpkt 1000 burst 41666 bandwidth 10gbit"),
    ],
)  # fmt: skip
def test_a_red_without_sizes_gets_what_tc_red_recommends_for_its_link(rate: str, red: str) -> None:
    scenario = loads(DUMBBELL.replace('rate = "20 Mbit/s"', f'{rate}\nqdisc = "red ecn"'))
    realised = scenario.realise(1).links[1].qdisc
    assert realised.text == Qdisc.parse(f"red {red} ecn").text
    assert loads(scenario.to_toml()) == scenario


def test_a_red_without_sizes_follows_the_rate_when_that_changes() -> None:
    sweep = '[sweep]\n"bottleneck.rate" = ["20 Mbit/s", "500 kbit/s"]\n'
    text = DUMBBELL.replace(
        'rate = "20 Mbit/s"', 'rate = "20 Mbit/s"\nqdisc = "red bandwidth 10mbit"'
    )
    found = [variant.realise(1).links[0].qdisc for variant in loads(text + sweep).variants()]
    assert [(red.params["min"], red.params["bandwidth"]) for red in found] == [
        (50_000, 10_000_000),
        (5_000, 10_000_000),
    ]


def _words(kind: str, variant: str | None) -> st.SearchStrategy[str]:
    """Draws any sentence of a discipline's grammar."""
    words = QDISCS[kind].words(variant)
    values = {
        "PACKETS": st.integers(1, 10**6).map(str),
        "BYTES": st.integers(300, 10**6).map(str),
        "QUEUES": st.integers(1, 65536).map(str),
        "RATE": st.sampled_from(["10mbit", "1.5Mbit", "3kbps", "7"]),
        "TIME": st.sampled_from(["5ms", "100", "1.5s", "70us", "33ns"]),
        "NUMBER": st.one_of(st.floats(1e-9, 1).map(repr), st.integers(1, 16).map(str)),
        "SECONDS": st.integers(0, 100).map(str),
        "MS": st.integers(0, 10**6).map(str),
        "TIME|PACKETS": st.sampled_from(["5ms", "70us", "2p", "3pkt"]),
        "PERCENT": st.sampled_from(["0", "10", "20%"]),
        "ethernet|atm": st.sampled_from(["ethernet", "atm", "adsl"]),
        "VALUE/MASK": st.tuples(st.integers(0, 255), st.integers(0, 255)).map("%d/%#x".__mod__),
        "BAND...": st.lists(st.integers(0, 15).map(str), min_size=1, max_size=16).map(" ".join),
        "QUEUE...": st.lists(st.integers(0, 5).map(str), min_size=1, max_size=8).map(" ".join),
        "VQ...": st.lists(st.integers(0, 3).map(str), min_size=1, max_size=16).map(" ".join),
        "PACKETS...": st.lists(st.integers(0, 100).map(str), min_size=1, max_size=4).map(" ".join),
        "NUMBER...": st.lists(
            st.one_of(st.floats(1e-9, 1).map(repr), st.integers(1, 16).map(str)),
            min_size=1,
            max_size=4,
        ).map(" ".join),
        "CLASS...": st.lists(st.integers(0, 15).map(str), min_size=1, max_size=16).map(" ".join),
        "BYTES...": st.lists(st.integers(300, 10**6).map(str), min_size=1, max_size=16).map(
            " ".join
        ),
    }
    options = [
        st.sampled_from(["", word])
        if sort is None
        else st.just("") | values[sort].map(f"{word} {{}}".format)
        for word, sort in words
    ]
    head = st.just(f"{kind} variant {variant}" if variant else kind)
    return st.tuples(head, *options).map(lambda words: " ".join(word for word in words if word))


@given(
    st.sampled_from(
        [(kind, variant) for kind in QDISCS for variant in QDISCS[kind].variants]
    ).flatmap(lambda which: _words(*which))
)
def test_text_gives_params_and_params_give_the_same_text(text: str) -> None:
    try:
        qdisc = Qdisc.parse(text)
    except UnitError:
        return
    assert Qdisc.parse(qdisc.text) == qdisc
    assert Qdisc.from_params(qdisc.params) == qdisc
    assert Qdisc.parse(qdisc.text).text == qdisc.text


@given(st.text(alphabet="abcdefilmnoprqtux_ =0123456789.", max_size=60))
def test_any_words_are_read_or_refused(text: str) -> None:
    for words in (text, f"codel {text}", f"red limit 400000 avpkt 1000 {text}"):
        try:
            Qdisc.parse(words)
        except UnitError as error:
            assert 0 <= error.offset <= len(words)


def test_link_layers_have_cake_s_overheads() -> None:
    assert LinkLayer.parse("ethernet").params == {
        "header_bytes": 14,
        "overhead_bytes": 38,
        "minimum_bytes": 84,
        "cells": "none",
    }
    assert LinkLayer.parse("pppoe-llc") == LinkLayer.parse("pppoe-llcsnap")
    assert LinkLayer.parse("pppoe-ptm").overhead_bytes == 30
    custom = LinkLayer.parse("atm overhead 44 mpu 64")
    assert (custom.overhead_bytes, custom.minimum_bytes, custom.cells) == (44, 64, "atm")
    assert LinkLayer.parse(custom.text) == custom
    for wrong in ("pppoe-ptn", "atm overhead", "atm overhead x", "atm size 4", "", 5):
        with pytest.raises(UnitError):
            LinkLayer.parse(wrong)


@pytest.mark.parametrize(
    "wrong", ["gemodel", "gemodel 1% 2% 3% 4% 5%", "gilbert 1%", "200 %", -1, ""]
)
def test_a_wrong_loss_is_refused(wrong: object) -> None:
    with pytest.raises(ScenarioError):
        loads(DUMBBELL).with_({"bottleneck.loss": wrong})


# Sweeps and changes
# --------------------------------------------------------------------------------------------------


def test_a_sweep_is_every_combination_labelled_by_its_differences() -> None:
    sweep = '[sweep]\n"bottleneck.qdisc" = ["codel", "fq_codel"]\n"bottleneck.rate" = ["10 Mbit/s", "20 Mbit/s"]\n'
    variants = loads(DUMBBELL + sweep).variants()
    assert [each.label for each in variants] == [
        *(
            "codel, rate 10 Mbit/s",
            "codel, rate 20 Mbit/s",
            "fq_codel, rate 10 Mbit/s",
            "fq_codel, rate 20 Mbit/s",
        )
    ]
    first = variants[0].realise(1).links[0]
    assert (first.qdisc.kind, first.rate[0].bps) == ("codel", 10_000_000)
    assert not any(each.sweep for each in variants)


def test_a_sweep_finds_flows_by_place_name_kind_or_all() -> None:
    flows = '[[flow]]\nname = "slow"\nkind = "bulk"\n[[flow]]\nkind = "ping"\n'
    for key, counts in (
        ("flow.0.count", [7, 1]),
        ("flow.slow.count", [7, 1]),
        ("flow.ping.count", [1, 7]),
        ("flow.*.count", [7, 7]),
    ):
        (variant,) = loads(f'{HEAD}{flows}[sweep]\n"{key}" = [7]').variants()
        assert [each.count for each in variant.flows] == counts


def test_a_sweep_may_set_keys_of_tables_that_the_file_lacks() -> None:
    sweep = '[sweep]\n"bottleneck.up.qdisc" = ["codel"]\nflow.0.tcp.initial_window = [4]\n'
    (variant,) = loads(DUMBBELL + sweep).variants()
    realised = variant.realise(1)
    assert realised.links[1].qdisc.kind == "codel"
    assert realised.flows[0].tcp.initial_window == 4


def test_a_scenario_without_a_sweep_is_its_own_only_variant() -> None:
    scenario = loads(DUMBBELL)
    assert scenario.variants() == (scenario,)


def test_a_sweep_itself_is_not_run() -> None:
    with pytest.raises(ValueError, match="variants"):
        loads(DUMBBELL + '[sweep]\n"flow.0.count" = [1, 2]').realise(1)


@pytest.mark.parametrize(
    ("sweep", "column", "hint"),
    [
        ('"bottleneck.qdisc" = ["codel", "fq_codl"]', 32, "did you mean fq_codel"),
        ('"flow.0.count" = [1, 0]', 22, "range"),
        ('"flow.bulky.count" = [1]', 23, "did you mean flow.bulk"),
        ('"bottleneck.rat" = ["1 Mbit/s"]', 21, "did you mean rate"),
        ('"flow.0.rtt" = ["50 ms", "1 ms"]', 26, "at least"),
        ('"flow.0.count" = []', 18, "list of values"),
        ('"flow.0.count" = [1, 1]', 18, "once"),
        ('"seeds" = [1, 2]', 11, "every seed"),
        ('"duration.x" = [1]', 17, "x"),
    ],
)  # fmt: skip
def test_a_bad_value_of_a_sweep_is_shown_with_its_place(sweep: str, column: int, hint: str) -> None:
    (problem,) = refusal(f"{DUMBBELL}[sweep]\n{sweep}\n").problems
    assert (problem.line, problem.column) == (8, column)
    assert hint in f"{problem.message} {problem.hint}"


def test_a_huge_sweep_is_refused_before_it_is_built() -> None:
    axes = "\n".join(
        f'"flow.0.tcp.{key}" = {list(range(100, 200))}'
        for key in ("mss", "initial_window", "max_window")
    )
    assert "1000000 variants" in str(refusal(f"{DUMBBELL}[sweep]\n{axes}"))


def test_with_changes_a_key_and_checks_it() -> None:
    scenario = loads(DUMBBELL).with_(
        **{"bottleneck.qdisc": "codel", "flow.*.count": 3, "duration": "5 s"}
    )
    assert (scenario.duration, scenario.flows[0].count) == (5 * 10**9, 3)
    assert scenario.realise(1).links[0].qdisc.kind == "codel"
    assert scenario.with_(**{"bottleneck.qdisc": None}) == loads(DUMBBELL).with_(
        **{"flow.0.count": 3, "duration": "5 s"}
    )
    with pytest.raises(ScenarioError, match="did you mean codel"):
        scenario.with_(**{"bottleneck.qdisc": "codl"})


def test_setting_a_swept_key_settles_it() -> None:
    sweep = (
        '[sweep]\n"bottleneck.qdisc" = ["codel target 5", "pfifo"]\n"flow.bulk.count" = [1, 2]\n'
    )
    swept = loads(DUMBBELL + sweep)
    settled = swept.with_({"flow.*.count": 3})
    assert settled.sweep == {"bottleneck.qdisc": ["codel target 5", "pfifo"]}
    assert {variant.flows[0].count for variant in settled.variants()} == {3}
    assert settled.notes == swept.notes
    (only,) = settled.with_({"bottleneck.qdisc": "red"}).variants()
    assert only == loads(DUMBBELL).with_({"bottleneck.qdisc": "red", "flow.0.count": 3})
    assert only.notes == ()
    assert (
        swept.with_(seed=2).sweep
        == swept.with_({"bottleneck.rate": "3 Mbit/s"}).sweep
        == swept.sweep
    )


def test_a_common_value_that_both_directions_override_is_refused() -> None:
    own = loads(DUMBBELL).with_(
        **{"bottleneck.up.rate": "1 Mbit/s", "bottleneck.down.schedule": [["0 s", "2 Mbit/s"]]}
    )
    with pytest.raises(ScenarioError, match=r"set bottleneck\.up\.rate"):
        own.with_(**{"bottleneck.rate": "5 Mbit/s"})
    assert own.with_(**{"bottleneck.delay": "1 ms", "bottleneck.rate": None}).bottleneck is not None
    sweep = '[sweep]\n"bottleneck.qdisc" = ["codel"]\n'
    ways = '[bottleneck.up]\nqdisc = "pfifo"\n[bottleneck.down]\nqdisc = "bfifo"\n'
    assert "changes nothing" in str(refusal(DUMBBELL + ways + sweep))


# What is refused, and how
# --------------------------------------------------------------------------------------------


def test_an_error_gives_problem_place_and_alternative() -> None:
    text = DUMBBELL.replace('"60 s"', "60")
    assert str(refusal(text)) == (
        "home.toml:1:12: duration: a duration needs a unit; 60 is a bare number\n"
        "     1 | duration = 60\n"
        "       |            ^\n"
        'hint: write "60 s"'
    )


def test_a_missing_key_is_named_once_and_no_line_is_blamed_for_it() -> None:
    (problem,) = refusal(
        'title = "Home"\n[bottleneck]\nrate = "2 Mbit/s"\ndelay = "1 ms"\n'
    ).problems
    assert str(problem) == 'home.toml:1:1: duration is missing\nhint: write duration = "60 s"'
    (problem,) = refusal(DUMBBELL + '[[flow]]\nkind = "udp"\n').problems
    assert str(problem).splitlines()[0].endswith(": flow.1.rate is missing")


@pytest.mark.parametrize(
    "text",
    [
        "---\nduration: 5 s\n",
        "- a\n- b\n",
        "a b c\n",
        "x = \n",
        "[bottleneck\n",
        "x = [1\n",
        "x = {b = 1\n",
        "x = 5 5\n",
        "=\n",
        "]",
    ],
)
def test_invalid_toml_has_a_hint(text: str) -> None:
    (problem,) = refusal(text).problems
    assert problem.message.startswith("not TOML: ")
    assert problem.hint
    assert ("YAML" in problem.hint) == text.startswith("-")


def test_values_are_shown_as_a_scenario_has_them() -> None:
    error = refusal("flow = { x = 2, y = [true] }\n" + HEAD)
    assert any(each.message == "{x = 2, y = [true]} is not a list" for each in error.problems)


def test_the_caret_is_below_the_wrong_word_of_a_text() -> None:
    (problem,) = refusal(
        DUMBBELL.replace('delay = "10 ms"', 'delay = "10 ms"\nqdisc = "codel targt 5ms"')
    ).problems
    assert (problem.line, problem.column) == (5, 16)


def test_all_problems_are_told_at_once_in_the_order_of_the_file() -> None:
    text = """title = 5
duration = "60 parsec"
seed = "x"
colour = "red"
[bottleneck]
rate = "20 Mbps"
dely = "10 ms"
[[flow]]
kind = "bulk"
count = 1.5
congestion = "cubix"
ecn = "yes"
tcp = { initial_windw = 4 }
[[flow]]
kind = "pingg"
[[flow]]
name = "what"
"""
    problems = refusal(text).problems
    assert [(problem.line, problem.dotted) for problem in problems] == [
        (1, "title"),
        (2, "duration"),
        (3, "seed"),
        (4, "colour"),
        (6, "bottleneck.rate"),
        (7, "bottleneck.dely"),
        (10, "flow.0.count"),
        (11, "flow.0.congestion"),
        (12, "flow.0.ecn"),
        (13, "flow.0.tcp.initial_windw"),
        (15, "flow.1.kind"),
        (14 + 2, "flow.2.kind"),
    ]
    assert all(problem.hint for problem in problems)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("qdisc = fq_codel", 'in quotes: qdisc = "fq_codel"'),
        ("qdisc = netem", 'in quotes: qdisc = "netem"'),
        ("qdisc = fq_codel target 5ms  # mine", 'in quotes: qdisc = "fq_codel target 5ms"'),
        ("rate = 20 Mbit/s", 'in quotes: rate = "20 Mbit/s"'),
        ("rate = infinite", 'in quotes: rate = "infinite"'),
        ('qdisc = "codel', 'not closed: write qdisc = "codel"'),
        ("rate = “20 Mbit/s”", 'plain quotes: write rate = "20 Mbit/s"'),
        ("rate = 5,5", "rate = 5.5"),
        ('rate == "5 Mbit/s"', 'rate = "5 Mbit/s"'),
        ("bql = True", "write bql = true"),
        ("bql = on", "write bql = true"),
        ("bql = null", "leave bql out"),
        ('title: "Home"', 'this is TOML, not YAML: write title = "Home"'),
        ("  rate: 20 Mbit/s", 'this is TOML, not YAML: write rate = "20 Mbit/s"'),
        ("bottleneck:", "this is TOML, not YAML: write [bottleneck]"),
        ("bottleneck.qdisc = [pfifo, codel]", '["codel", "fq_codel"]'),
        ("rate = 5\nrate = 6", "once"),
    ],
)
def test_the_hint_for_invalid_toml_says_what_was_meant(line: str, hint: str) -> None:
    for head in ("", 'duration = "60 s"\n'):
        (problem,) = refusal(head + line + "\n").problems
        assert problem.message.startswith("not TOML: ")
        assert hint in problem.hint
    (problem,) = refusal('{"title": "Home"}').problems
    assert "not JSON" in problem.hint


@pytest.mark.parametrize(
    "text", ["x ==", "x =", "=", "x = \\", ":", "x: ", "x = [", "- a: b: c", 'x = "', "x = ,"]
)
def test_any_text_that_is_not_toml_gets_an_error(text: str) -> None:
    assert refusal(text).problems


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("mtu = 1400", "mss"),
        ('corrupt = "1 %"', "no engine"),
        ('policer = "1 Mbit/s"', "shaper"),
        ('rate = "10M"', 'write "10 Mbit/s"'),
        ('rate = "500k"', 'write "500 kbit/s"'),
    ],
)
def test_the_hint_for_a_key_that_a_link_lacks_names_the_table_that_has_it(
    line: str, hint: str
) -> None:
    head = HEAD.replace('rate = "20 Mbit/s"\n', "") if line.startswith("rate") else HEAD
    (problem,) = refusal(f'{head}{line}\n[[flow]]\nkind = "bulk"').problems
    assert hint in problem.hint


def test_both_directions_are_two_entries() -> None:
    (problem,) = refusal(DUMBBELL + 'direction = "both"').problems
    assert (
        problem.hint
        == 'write two [[flow]], one with direction = "down" and one with direction = "up"'
    )


@pytest.mark.parametrize(
    ("key", "value", "meant"),
    [
        ("qdisc", "codel", "bottleneck.qdisc"),
        ("rate", "5 Mbit/s", "bottleneck.rate"),
        ("up.rate", "5 Mbit/s", "bottleneck.up.rate"),
        ("congestion", "reno", "flow.*.congestion"),
        ("queue", "1 s", "record.queue"),
    ],
)
def test_the_hint_for_a_key_without_its_table_names_the_table_once(
    key: str, value: str, meant: str
) -> None:
    with pytest.raises(ScenarioError) as refused:
        loads(DUMBBELL).with_({key: value})
    (problem,) = refused.value.problems
    assert problem.hint == f"did you mean {meant}?"
    # The message is the same however many values the sweep has.
    (problem,) = refusal(
        f'{DUMBBELL}[sweep]\n{key} = ["{value}", "2 {value}", "3 {value}"]\n'
    ).problems
    assert problem.hint == f"did you mean {meant}?"


def test_in_the_long_form_a_key_without_its_table_is_a_link_s() -> None:
    scenario = loads(CHAIN + '[[flow]]\nkind = "bulk"\nfrom = "a"\nto = "c"')
    with pytest.raises(ScenarioError, match=r"did you mean link\.\*\.qdisc\?"):
        scenario.with_(qdisc="codel")


# Examples
# --------------------------------------------------------------------------------------------------


def test_an_example_is_loaded_by_its_name_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in SCENARIOS:
        assert load(path.stem) == load(path)


def test_a_file_goes_before_the_example_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("web").write_text(DUMBBELL)
    assert load("web").title == "web"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("home-uplink", "write home-uplink.toml"),
        ("hoem-uplink.toml", "did you mean home-uplink.toml?"),
        ("home-uplnk", "did you mean home-uplink"),
        ("many-flow", "did you mean many-flows?"),
        ("scenarios/web.toml", "web alone"),
        ("web.toml", "web alone"),
        ("xyzzy", "sojourn list scenarios"),
        ("x" * 5000, "check the name of the file"),
    ],
)
def test_the_hint_for_a_missing_file_names_the_nearest_example(
    name: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("home-uplink.toml").write_text(DUMBBELL)
    with pytest.raises(ScenarioError) as refused:
        load(name)
    (problem,) = refused.value.problems
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("duration", '"11000 d"', "unit"),
        ("duration", '"100000 h"', "too long"),
        ("duration", '"0 s"', "zero"),
        ("duration", '"-1 s"', "negative"),
        ("duration", "nan", "bare number"),
        ("duration", "inf", "bare number"),
        ("duration", "true", "not a duration"),
        ("duration", "[1]", "not a duration"),
        ("duration", "1979-05-27", "date"),
        ("warmup", '"60 s"', "leaves nothing"),
        ("seeds", "0", "0 seeds"),
        ("seeds", "[1, 1]", "different"),
        ("seeds", "[-1]", "not a seed"),
        ("title", '"a\\u0000b"', "printable"),
        ("bottleneck.rate", '"11 Tbit/s"', "too fast"),
        ("bottleneck.rate", '"0 Mbit/s"', "zero"),
        ("bottleneck.delay", '"2 h"', "too long"),
        ("bottleneck.loss", '"101 %"', "between 0 and 1"),
        ("bottleneck.qdisc", "5", "queue discipline"),
        ("bottleneck.qdisc", '"red variant ns2 min 9 max 3"', "not below"),
        ("bottleneck.schedule", "[]", "list of steps"),
        ("bottleneck.schedule", '[["5 s", "1 Mbit/s"], ["5 s", "2 Mbit/s"]]', "rise"),
        ("bottleneck.schedule", '[["5 s"]]', "pair"),
        ("bottleneck.repeat", '"5 s"', "without a schedule"),
        ("bottleneck.trace", '"no such file"', "can't read"),
        ("bottleneck.trace", '"."', "can't read"),
        ("flow", "5", "not a list"),
        ("record.queue", '"1 ns"', "too short"),
        ("record.queue", '"2 us"', "rows"),
        ("record", "5", "not a table"),
        ("sweep", "5", "not a table"),
    ],
)
def test_absurd_values_are_refused_with_the_reason(key: str, value: str, words: str) -> None:
    tables: dict[str, dict[str, str]] = {
        "": {"duration": '"60 s"'},
        "bottleneck": {"rate": '"20 Mbit/s"', "delay": '"10 ms"'},
    }
    table, _, name = key.rpartition(".")
    tables.setdefault(table, {})[name] = value
    text = "\n".join(
        (f"[{header}]\n" if header else "") + "\n".join(f"{k} = {v}" for k, v in keys.items())
        for header, keys in tables.items()
    )
    if key != "flow":
        text += '\n[[flow]]\nkind = "bulk"\n'
    error = refusal(text)
    assert any(words in problem.message for problem in error.problems), str(error)
    assert all(problem.line is not None for problem in error.problems)


@pytest.mark.parametrize(
    ("entry", "key", "words"),
    [
        ('kind = "bulk"\ncount = 100001', "flow.0.count", "100000"),
        ('kind = "bulk"\ncount = 0', "flow.0.count", "greater"),
        ('kind = "bulk"\nrtt = "19 ms"', "flow.0.rtt", "20 ms"),
        ('kind = "bulk"\nrtt = "uniform 30 ms .. 19 ms"', "flow.0.rtt", "above"),
        ('kind = "bulk"\nrtt = "every 20 ms"', "flow.0.rtt", "law"),
        ('kind = "bulk"\nrtt = ["30 ms", "40 ms"]', "flow.0.rtt", "2 RTTs for 1"),
        ('kind = "bulk"\nstart = "2 s"\nstop = "1 s"', "flow.0.stop", "before it starts"),
        ('kind = "bulk"\nname = "a/b"', "flow.0.name", "not a name"),
        ('kind = "bulk"\nname = "a.1"', "flow.0.name", "not a name"),
        ('kind = "bulk"\nvia = ["x"]', "flow.0.via", "other form"),
        (
            'kind = "bulk"\ntcp = { min_rto = "2 s", max_rto = "1 s" }',
            "flow.0.tcp.min_rto",
            "max_rto",
        ),
        ('kind = "bulk"\ntcp = { ecn = true }', "flow.0.tcp.ecn", "unknown key"),
        (
            'kind = "bulk"\ntcp = { vegas_alpha = 5 }',
            "flow.0.tcp.vegas_alpha",
            "above vegas_beta 4",
        ),
        ('kind = "bulk"\ntcp = { ledbat_target = "0 ms" }', "flow.0.tcp.ledbat_target", "zero"),
        ('kind = "transfers"', "flow.0.size", "missing"),
        ('kind = "transfers"\nsize = "pareto 50 kB 1"', "flow.0.size", "not above 1"),
        ('kind = "web"\nsize = "9 kB"\nobjects = 5\ncount = 6', "flow.0.objects", "6 connections"),
        ('kind = "stream"\nladder = ["2 Mbit/s", "1 Mbit/s"]', "flow.0.ladder", "rise"),
        ('kind = "stream"\nladder = []', "flow.0.ladder", "1 to 100 rates"),
        (
            'kind = "stream"\nahead = "1 s"',
            "flow.0.ahead",
            "less than one segment is fetched ahead",
        ),
        ('kind = "udp"\nrate = "2 Mbit/s"\naccess = "1 Mbit/s"', "flow.0.rate", "access"),
        ('kind = "udp"\nrate = "2 Mbit/s"\npacket = "20 B"', "flow.0.packet", "too small"),
        ('kind = "video"', "flow.0.rate", "missing"),
        (
            'kind = "video"\nrate = "1 Mbit/s"\nframes = [["0 s", "1 kB"]]\nrepeat = "1 s"',
            "flow.0.rate",
            "both",
        ),
        ('kind = "video"\nframes = [["0 s", "1 kB"]]', "flow.0.repeat", "repeat"),
        # Flows that would exhaust the memory: a frame of a billion packets, and an endless number
        # of packets.
        (
            'kind = "video"\nrate = "100 Mbit/s"\nfps = 0.01\npayload = "1 B"',
            "flow.0.rate",
            "a frame may have",
        ),
        (
            'kind = "video"\nrate = "30 Mbit/s"\ni_ratio = 1000\npayload = "1 B"',
            "flow.0.rate",
            "a frame may have",
        ),
        ('kind = "video"\nrate = "30 Mbit/s"\npayload = "1 B"', "flow.0.rate", "packets"),
        (
            'kind = "video"\nframes = [["0 s", "2 GB"]]\nrepeat = "1 s"\npayload = "1 kB"',
            "flow.0.frames",
            "a frame may have",
        ),
        (
            'kind = "onoff"\nrate = "30 Mbit/s"\non = "1 ns"\noff = "0 s"',
            "flow.0.on",
            "6e+10 packets",
        ),
        ('kind = "onoff"\nrate = "1 Tbit/s"', "flow.0.rate", "packets"),
        ('kind = "udp"\nrate = "10 Tbit/s"', "flow.0.rate", "5e+10 packets"),
        ('kind = "ping"\ninterval = "1 us"', "flow.0.interval", "60000000 pings"),
    ],
)
def test_an_invalid_flow_is_refused(entry: str, key: str, words: str) -> None:
    (problem,) = refusal(f"{HEAD}[[flow]]\n{entry}\n").problems
    assert problem.dotted == key
    assert words in problem.message
    assert problem.line is not None
    assert problem.line > 4


FLOOD = """
duration = "60 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
loss = "{loss}"
[[flow]]
kind = "ping"
[[flow]]
kind = "udp"
rate = "{rate}"
"""


def test_a_flood_of_which_nearly_all_is_dropped_is_refused_at_its_rate() -> None:
    # 60 s of 1.2 Gbit/s are 6 million packets of 1500 bytes. The link passes 50 000 of them.
    (problem,) = refusal(FLOOD.format(rate="1.2 Gbit/s", loss="none")).problems
    assert problem.dotted == "flow.1.rate"
    assert "5.95e+06 packets would be dropped" in problem.message
    loads(FLOOD.format(rate="1 Gbit/s", loss="none"))
    loads(FLOOD.format(rate="1.2 Gbit/s", loss="none").replace("10 Mbit/s", "1 Gbit/s"))
    # A packet that the wire loses is a row, too. In the long run a third of 20 million packets are
    # lost.
    wide = FLOOD.replace("10 Mbit/s", "10 Gbit/s")
    (problem,) = refusal(wide.format(rate="4 Gbit/s", loss="gemodel 10% 20%")).problems
    assert "6.67e+06 packets" in problem.message


UNLIMITED = 'duration = "1 s"\n[bottleneck]\nrate = "unlimited"\ndelay = "{delay}"\n[[flow]]\nkind = "bulk"\n'


def test_tcp_whose_round_trips_take_no_time_is_refused_at_the_rate() -> None:
    (problem,) = refusal(UNLIMITED.format(delay="0 s")).problems
    assert (problem.line, problem.dotted) == (3, "bottleneck.rate")
    assert "round trip of zero" in problem.message
    for more in ('rtt = "10 ms"\n', 'access = "1 Gbit/s"\n', 'jitter = "1 ms"\n'):
        loads(UNLIMITED.format(delay="0 s") + more)
    loads(UNLIMITED.format(delay="1 us"))


def test_the_two_forms_are_not_mixed_and_one_is_needed() -> None:
    assert "both given" in str(refusal(HEAD + CHAIN.split("\n", 1)[1] + '[[flow]]\nkind = "bulk"'))
    assert "neither" in str(refusal('duration = "1 s"\n[[flow]]\nkind = "bulk"'))
    assert "no [[flow]]" in str(refusal(HEAD))


def test_disciplines_that_compute_with_the_rate_need_one() -> None:
    unlimited = DUMBBELL.replace('"20 Mbit/s"', '"unlimited"')
    for qdisc in ("adt", "red variant ns2", "cake bandwidth 5mbit", "fq maxrate 5mbit"):
        error = refusal(unlimited.replace("delay", f'qdisc = "{qdisc}"\ndelay', 1))
        assert [problem.dotted for problem in error.problems] == ["bottleneck.qdisc"]


def test_dctcp_and_prague_have_the_ecn_that_they_need_and_are_refused_without() -> None:
    def of(control: str, ecn: str = "") -> str:
        return f'kind = "bulk"\ncongestion = "{control}"\n{ecn}'

    def asked(control: str, ecn: str = "") -> tuple[bool, bool]:
        tcp = flow(of(control, ecn))["traffic"]["tcp"]
        return tcp["ecn"], tcp["accecn"]

    assert [asked(control) for control in ("cubic", "dctcp", "prague")] == [
        (False, False),
        (True, False),
        (True, True),
    ]
    assert asked("prague", "ecn = true") == (True, True), "prague already implies accecn"
    assert asked("dctcp", 'ecn = "accecn"') == (True, True)
    for control in ("dctcp", "prague"):
        text = f"{HEAD}[[flow]]\n{of(control, 'ecn = false')}"
        problem = refusal(text).problems[0]
        assert (problem.dotted, problem.hint) == (
            "flow.0.congestion",
            "leave ecn out, or write ecn = true",
        )


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe", b"a = 1\nb = \xff", b"duration = \x00", b"[" * 100_000, b"\xef\xbb\xbf"],
)
def test_a_file_that_is_not_a_scenario_is_refused_with_a_place(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "odd.toml"
    path.write_bytes(data)
    with pytest.raises(ScenarioError) as refused:
        load(path)
    lines = data.decode(errors="replace").split("\n")
    for problem in refused.value.problems:
        assert problem.line is not None
        assert problem.column is not None
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1


def test_a_missing_file_a_folder_and_a_huge_file_are_refused(tmp_path: Path) -> None:
    huge = tmp_path / "huge.toml"
    with huge.open("wb") as file:
        file.truncate(100_000_000)
    for path, words in (
        (tmp_path / "none.toml", "No such file"),
        (tmp_path, "folder"),
        (huge, "larger"),
        (tmp_path / "a\0b", "NUL"),
    ):
        with pytest.raises(ScenarioError, match=words):
            load(path)


def test_the_title_of_a_file_without_one_is_its_name(tmp_path: Path) -> None:
    (tmp_path / "my-line.toml").write_text(DUMBBELL)
    assert load(tmp_path / "my-line.toml").title == "my-line"


def test_a_scenario_made_in_python_is_checked_alike() -> None:
    document = {
        "duration": "1 s",
        "bottleneck": {"rate": "1 Mbit/s", "delay": "1 ms"},
        "flow": [{"kind": "ping"}],
    }
    assert Scenario.from_document(document).flows[0].kind == "ping"
    with pytest.raises(ScenarioError, match=r"flow\.0\.rtt"):
        Scenario.from_document({**document, "flow": [{"kind": "ping", "rtt": "1 ms"}]})


def test_flows_stop_one_by_one_at_spread_times() -> None:
    text = """
title = "t"
duration = "10 s"
bottleneck = {rate = "1 Mbit/s", delay = "1 ms"}
[[flow]]
kind = "bulk"
count = 3
start = "every 1 s"
stop = "spread 4 s .. 8 s"
"""
    scenario = loads(text)
    flows = scenario.realise(1).flows
    assert [flow.stop_ns // 10**9 for flow in flows] == [4, 6, 8]
    assert loads(scenario.to_toml()) == scenario
    with pytest.raises(ScenarioError, match="before it starts"):
        loads(text.replace('"spread 4 s .. 8 s"', '["5 s", "1 s", "8 s"]'))


def test_a_path_of_too_many_links_is_refused() -> None:
    def chain(hops: int) -> str:
        links = "".join(
            f'[[link]]\nfrom = "n{i}"\nto = "n{i + 1}"\nrate = "1 Gbit/s"\ndelay = "1 us"\n'
            for i in range(hops)
        )
        return f'title = "t"\nduration = "1 s"\n{links}[[flow]]\nkind = "bulk"\nfrom = "n0"\nto = "n{hops}"\n'

    assert len(loads(chain(250)).realise(1).flows[0].path) == 250
    with pytest.raises(ScenarioError, match="crosses 251 links"):
        loads(chain(251))
