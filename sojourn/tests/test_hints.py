"""The scenario language's hints for unknown keys of a table, and for single brackets."""

import re

import pytest

from sojourn import _core, loads
from sojourn.scenario import ScenarioError, dotted_key

WHOLE = 'duration = "6 s"\n'
LINK = '[bottleneck]\nrate = "20 Mbit/s"\ndelay = "10 ms"\n'
FLOW = '[[flow]]\nkind = "bulk"\n'
RECORD = "[record]\n"
LINE = 'from = "a"\nto = "b"\nrate = "20 Mbit/s"\ndelay = "10 ms"\n'
FLOW_OF_KIND = {
    "transfers": 'size = "1 kB"\n',
    "web": 'size = "1 kB"\n',
    "udp": 'rate = "1 Mbit/s"\n',
    "onoff": 'rate = "1 Mbit/s"\n',
    "video": 'rate = "1 Mbit/s"\n',
    "capture": 'packets = [["0 s", "100 B"]]\n',
}


def hint(text: str) -> str:
    with pytest.raises(ScenarioError) as refused:
        loads(text)
    (problem,) = [each for each in refused.value.problems if "missing" not in each.message]
    assert problem.message == "unknown key"
    return problem.hint


def in_link(line: str) -> str:
    return hint(WHOLE + LINK + line + "\n" + FLOW)


def in_flow(line: str, kind: str = "bulk") -> str:
    return hint(WHOLE + LINK + f'[[flow]]\nkind = "{kind}"\n{line}\n')


def test_the_hint_for_a_key_of_another_table_names_that_table() -> None:
    assert in_link('rtt = "50 ms"').startswith("rtt belongs to a [[flow]]")
    assert in_flow('delay = "5 ms"').startswith("delay belongs to a link")
    assert in_flow('qdisc = "codel"') == "qdisc is a key of [bottleneck]"
    assert in_flow('speed = "1 Mbit/s"', "ping") == (
        "rate is a key of a [[flow]] of kind bulk, udp, onoff or video, and of [bottleneck]"
    )
    assert in_link('cc = "bbr"') == (
        "congestion is a key of a [[flow]] of kind bulk, transfers, requests, web or stream"
    )
    assert in_link('congestoin = "bbr"').startswith("did you mean congestion? congestion is a key")
    assert in_link("seed = 3") == "seed is a key of the whole file: write it above the first table"
    assert in_flow("mss = 1400") == "mss is a key of a [[flow]]'s tcp: tcp = { mss = … }"
    assert in_flow('tcp = { rate = "1 Mbit/s" }') == (
        "rate is a key of the flow itself, not of its tcp"
    )
    assert in_flow("tcp = { ecn = true }") == "ecn is a key of the flow itself, not of its tcp"
    assert in_flow('up.rate = "1 Mbit/s"').endswith('a flow has direction = "up" or "down"')
    assert in_link("record.queue = 3") == "record is a table of the whole file: [record]"
    assert in_link('file = "a.pcapng"') == "file is a key of a [[flow]] of kind capture"


def test_the_hint_prefers_keys_of_the_same_table() -> None:
    assert in_link('queue = "codel"').startswith("did you mean qdisc?")
    assert in_link('Dealy = "1 ms"').startswith("did you mean delay?")
    assert in_flow('fil = "a.pcapng"', "capture").startswith("did you mean file?")
    assert in_link("limit = 100") == (
        "limit is a word of the queue discipline: write it into qdisc, as for tc"
    )
    assert "limit is a word" not in in_flow("limit = 100")


def test_in_the_long_form_the_hint_names_the_table_link() -> None:
    links = f"[[link]]\n{LINE}"
    assert hint(f'{WHOLE}{links}{FLOW}from = "a"\nto = "b"\nqdisc = "red"\n') == (
        "qdisc is a key of [[link]]"
    )


def test_every_key_of_every_table_has_a_hint_in_every_other_table() -> None:
    """If a hint guesses the intended key, it names a key of this table, or the table that has the
    key."""
    tables = _core.scenario_keys()
    everywhere = {key for keys in tables.values() for key in keys}
    places = {
        "bottleneck": WHOLE + LINK + "{} = 0\n" + FLOW,
        "record": WHOLE + LINK + FLOW + RECORD + "{} = 0\n",
        "tcp": WHOLE + LINK + FLOW + "tcp = {{ {} = 0 }}\n",
        **{
            kind: WHOLE
            + LINK
            + f'[[flow]]\nkind = "{kind}"\n{FLOW_OF_KIND.get(kind, "")}{{}} = 0\n'
            for kind in ("bulk", "ping", "capture")
        },
    }
    for table, text in places.items():
        taken = {*tables[table], "trace", "delay_trace", "file", "interface", "src", "dst"}
        for key in sorted(everywhere - taken - {"label"}):
            answer = hint(text.format(key))
            guess = re.match(r"did you mean (\S+)\?", answer)
            if guess:
                assert guess[1] in taken or f"{guess[1]} is a key of" in answer, (
                    table,
                    key,
                    answer,
                )
            else:
                # A message for the key itself, or for the key that replaces it.
                assert not answer.startswith("known keys"), (table, key, answer)


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("up", "bottleneck.up.rate"),
        ("upload", "bottleneck.up.rate"),
        ("down", "bottleneck.down.rate"),
        ("rate", "bottleneck.rate"),
        ("queue", "record.queue"),
        ("record", "record.queue"),
        ("mss", "flow.*.tcp.mss"),
        ("duration", "duration"),
        ("sweep", None),
    ],
)
def test_the_hint_for_an_option_names_a_key_that_can_be_set(word: str, key: str | None) -> None:
    assert dotted_key(word) == key
    if key and "rate" in key:
        assert loads(WHOLE + LINK + FLOW).with_({key: "5 Mbit/s"})


def test_the_hint_for_a_value_in_place_of_a_table_names_a_key_of_it() -> None:
    scenario = loads(WHOLE + LINK + FLOW)
    for key, meant in (("bottleneck.up", "up.rate"), ("record", "record.queue")):
        with pytest.raises(ScenarioError) as refused:
            scenario.with_({key: "5 Mbit/s"})
        assert refused.value.problems[0].hint == f"write a key of it, such as {meant}"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (f'{LINK}[flow]\nkind = "bulk"\n', 5, "is not a list"),
        # The second [[flow]] is correct. The first is the mistake.
        (f'{LINK}[flow]  # one\nkind = "bulk"\n{FLOW}', 5, "[flow] is a single table"),
        (f'{LINK}{FLOW}[flow]\nkind = "ping"\n', 7, "[flow] is a single table"),
        (f"[link]\n{LINE}[[link]]\n{LINE}{FLOW}", 2, "[link] is a single table"),
    ],
)
def test_the_error_for_one_bracket_instead_of_two_has_its_place(
    text: str, line: int, message: str
) -> None:
    with pytest.raises(ScenarioError) as refused:
        loads(WHOLE + text)
    problem = refused.value.problems[0]
    assert (problem.line, message in problem.message) == (line, True)
    name = "link" if "link" in message else "flow"
    assert f"[[{name}]], in double brackets" in problem.hint


def test_two_brackets_instead_of_one_get_a_hint() -> None:
    with pytest.raises(ScenarioError) as refused:
        loads(WHOLE + LINK.replace("[bottleneck]", "[[bottleneck]]") + FLOW)
    assert (
        refused.value.problems[0].hint
        == "there is only one: write [bottleneck], in single brackets"
    )


def test_the_hint_for_sqm_explains_what_it_is() -> None:
    with pytest.raises(ScenarioError) as refused:
        loads(WHOLE + LINK + 'qdisc = "sqm"\n' + FLOW)
    (problem,) = refused.value.problems
    assert 'qdisc = "fq_codel" and shaper = "htb rate' in problem.hint
    assert "sfq?" not in problem.hint
