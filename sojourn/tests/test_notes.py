"""Notes of a scenario: settings that are accepted but change nothing in the run."""

import pytest

from sojourn import Scenario, loads

HEAD = """duration = "6 s"
warmup = "1 s"
[bottleneck]
rate = "20 Mbit/s"
delay = "10 ms"
"""
FLOW = '[[flow]]\nkind = "bulk"\n'


def notes(scenario: Scenario) -> list[tuple[str, int | None, str]]:
    return [(note.dotted, note.line, note.message) for note in scenario.notes]


@pytest.mark.parametrize(
    ("lines", "key", "message"),
    [
        ('start = "20 s"', "start", "it never starts: the run ends at 6 s"),
        ('start = "6 s"', "start", "it never starts: the run ends at 6 s"),
        ('count = 3\nstart = "uniform 7 s .. 9 s"', "start", "none of its 3 flows starts"),
        ('count = 10\nstart = "every 2 s"', "start", "7 of its 10 flows never start"),
        ('start = "poisson 1 s after 7 s"', "start", "it never starts"),
        ('stop = "1 s"', "stop", "it stops within the warm-up of 1 s"),
        ("tcp = { vegas_alpha = 3 }", "tcp.vegas_alpha", "it is vegas's"),
        (
            'congestion = "bbr"\ntcp = { beta_ecn = 0.8 }',
            "tcp.beta_ecn",
            "it is reno's and cubic's",
        ),
        ('tcp = { fast_recovery = "tahoe" }', "tcp.fast_recovery", "SACK shows"),
    ],
)
def test_keys_of_a_flow_without_effect_are_noted(lines: str, key: str, message: str) -> None:
    (note,) = loads(HEAD + FLOW + lines).notes
    assert note.dotted == f"flow.0.{key}"
    assert message in note.message
    assert note.source in lines.split("\n")


@pytest.mark.parametrize(
    "lines",
    [
        'start = "5 s"',
        'count = 500\nstart = "poisson 27 ms"',
        'count = 3\nstart = "uniform 5 s .. 9 s"',
        'stop = "2 s"',
        'congestion = "vegas"\ntcp = { vegas_alpha = 3 }',
        'tcp = { fast_recovery = "tahoe", sack = false }',
        'profile = "ns2"\ntcp = { fast_recovery = "tahoe" }',
    ],
)
def test_keys_of_a_flow_with_an_effect_are_not_noted(lines: str) -> None:
    assert loads(HEAD + FLOW + lines).notes == ()


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        ('up.rate = "2 Mbit/s"\ndown.rate = "9 Mbit/s"', ["rate"]),
        ('up.rate = "2 Mbit/s"\ndown.schedule = [["0 s", "9 Mbit/s"]]', ["rate"]),
        ('up.rate = "2 Mbit/s"', []),
        ('qdisc = "codel"\nup.qdisc = "red"\ndown.qdisc = "pie"', ["qdisc"]),
        ('schedule = [["0 s", "9 Mbit/s"]]', ["rate"]),
        ('schedule = [["1 s", "9 Mbit/s"]]', []),
        ('delay_schedule = [["0 s", "9 ms"]]', ["delay"]),
        ('down.rate = "3 Mbit/s"\ndown.schedule = [["0 s", "9 Mbit/s"]]', ["down.rate"]),
        ("overtake = true", ["overtake"]),
        ('overtake = true\nup.jitter = "1 ms"', []),
        ('up.overtake = true\ndown.jitter = "1 ms"', ["up.overtake"]),
        ('up.rate = "unlimited"\nup.qdisc = "codel"', ["up.qdisc"]),
        ('up.rate = "unlimited"\nqdisc = "codel"', []),
        ('up.rate = "unlimited"\nup.qdisc = "codel"\nup.shaper = "htb rate 1mbit"', []),
    ],
)
def test_keys_of_a_link_without_effect_are_noted_once(lines: str, keys: list[str]) -> None:
    scenario = loads(HEAD + lines + "\n" + FLOW)
    assert [note.dotted for note in scenario.notes] == [f"bottleneck.{key}" for key in keys]
    assert all("changes nothing" in note.message for note in scenario.notes)


def test_keys_of_the_frame_model_beside_recorded_frames_are_noted() -> None:
    video = '[[flow]]\nkind = "video"\nframes = [["0 s", "9 kB"]]\nrepeat = "40 ms"\ngop = 9\n'
    assert notes(loads(HEAD + video)) == [
        ("flow.0.gop", 10, "gop changes nothing: the frames are recorded")
    ]


def test_a_point_of_a_sweep_that_never_starts_is_noted_there() -> None:
    sweep = '[sweep]\nduration = ["30 s", "6 s"]\n"bottleneck.qdisc" = ["pfifo", "codel"]\n'
    late = FLOW + 'start = "20 s"\n'
    swept = loads(HEAD.replace('"6 s"', '"60 s"') + late + sweep)
    # The note is at the value that causes it, and appears once.
    note = "with duration 6 s, pfifo: flow.0.start: it never starts: the run ends at 6 s"
    assert notes(swept)[0][1:] == (10, note)
    # A note that applies to every point is at the flow itself.
    both = loads(HEAD + late + sweep.replace('"30 s", ', ""))
    assert notes(both) == [("flow.0.start", 8, "it never starts: the run ends at 6 s")]
    # The sweep replaces the scenario's own duration, which therefore gets no note.
    longer = loads(HEAD + late + '[sweep]\nduration = ["30 s", "40 s"]\n')
    assert notes(longer) == []
    assert [len(each.notes) for each in both.variants()] == [1, 1]


def test_a_key_that_some_point_of_a_sweep_needs_is_not_noted() -> None:
    ways = 'down.rate = "9 Mbit/s"\novertake = true\n'
    sweep = '[sweep]\n"bottleneck.up.rate" = ["1 Mbit/s"]\n"bottleneck.jitter" = ["none", "1 ms"]\n'
    assert notes(loads(HEAD + ways + FLOW + sweep)) == []


def test_a_note_disappears_with_its_cause() -> None:
    late = loads(HEAD + "overtake = true\n" + FLOW + 'start = "20 s"\n')
    assert [note.line for note in late.notes] == [9, 6]
    assert late.with_(duration="60 s").notes == late.notes[1:]
    assert late.with_({"bottleneck.jitter": "1 ms"}).notes == late.notes[:1]
    # A value set by code causes no note about the file; a setting without effect is noted.
    plain = loads(HEAD + 'down.rate = "9 Mbit/s"\n' + FLOW)
    assert plain.with_({"bottleneck.up.rate": "1 Mbit/s"}).notes == ()
    (note,) = plain.with_({"bottleneck.overtake": True}).notes
    assert note.dotted == "bottleneck.overtake"
