"""Cards with several queues: the keys of a link, mq and cake_mq in the simulator."""

from pathlib import Path

import pytest

import sojourn
from sojourn.scenario import ScenarioError, loads

CARD = """
duration = "4 s"
warmup = "1 s"
[bottleneck]
rate = "20 Mbit/s"
delay = "5 ms"
link_layer = "linux"
[bottleneck.down]
qdisc = "mq fq_codel"
queues = 3
pinned = [0, 0, 0, 1]
[[flow]]
kind = "bulk"
count = 4
rtt = "20 ms"
"""


def goodputs(text: str, engine: str = "sim") -> list[float]:
    run = sojourn.run(loads(text), engine=engine, seeds=1)
    flows = sojourn.summary(run).summary["flows"]
    return [flow["goodput_mbps"]["mean"] for flow in flows]


def test_a_flow_alone_on_its_queue_has_as_much_as_all_that_share_another() -> None:
    *three, alone = goodputs(CARD)
    assert alone == pytest.approx(sum(three), rel=0.05)
    assert max(three) < 1.3 * min(three)


def test_the_queues_of_cake_mq_have_equal_shares_of_its_rate() -> None:
    cakes = CARD.replace("20 Mbit/s", "1 Gbit/s").replace("mq fq_codel", "cake_mq bandwidth 20mbit")
    *three, alone = goodputs(cakes)
    assert alone == pytest.approx(sum(three), rel=0.05)
    assert sum(three) + alone == pytest.approx(19, rel=0.05)


def test_mq_with_one_queue_equals_its_discipline(tmp_path: Path) -> None:
    one = CARD.replace("queues = 3", "queues = 1").replace("[0, 0, 0, 1]", "[0]")
    plain = CARD.replace("mq fq_codel", "fq_codel").replace("queues = 3\n", "")
    plain = plain.replace("pinned = [0, 0, 0, 1]\n", "")
    # The hashes use different random streams, so flows may share a queue in only one of the two.
    assert sum(goodputs(one)) == pytest.approx(sum(goodputs(plain)), rel=0.02)


@pytest.mark.parametrize(
    ("old", "new", "place", "problem", "hint"),
    [
        (
            "mq fq_codel",
            "fq_codel",
            "queues",
            "one discipline for all 3 queues of the card",
            "mq fq_codel",
        ),
        ("queues = 3\n", "", "qdisc", "for a card with several queues", "queues = 4"),
        ("[0, 0, 0, 1]", "[0, 3]", "pinned", "there are 0 to 2", "raise queues"),
        ("[0, 0, 0, 1]", "[-1]", "pinned", "not the number of a queue", "pinned = [0, 1]"),
        ("queues = 3", "queues = 0", "queues", "out of range", "within that range"),
        ("queues = 3", "queues = 3\nring = 64", "ring", "for one queue", "leave ring out"),
        (
            "queues = 3",
            'queues = 3\nshaper = "htb rate 1mbit"',
            "shaper",
            "for one queue",
            "leave shaper out",
        ),
    ],
)
def test_settings_that_do_not_fit_a_card_are_refused_with_their_place(
    old: str, new: str, place: str, problem: str, hint: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        loads(CARD.replace(old, new, 1))
    message = str(caught.value)
    assert f"bottleneck.down.{place}" in message
    assert problem in message
    assert hint in message
    assert "^" in message


def test_pinned_alone_is_refused() -> None:
    text = CARD.replace("queues = 3\n", "").replace("mq fq_codel", "fq_codel")
    with pytest.raises(ScenarioError, match="pinned without queues"):
        loads(text)


def test_a_card_s_keys_survive_the_canonical_text() -> None:
    scenario = loads(CARD)
    again = loads(scenario.to_toml())
    link = next(link for link in again.realise(1).links if link.name == "down")
    assert (link.queues, [link.pinned_to(flow) for flow in range(5)]) == (3, [0, 0, 0, 1, 0])
    assert link.qdisc.text == "mq fq_codel"
    assert link.qdisc.child is not None
    assert link.qdisc.child.kind == "fq_codel"
    assert scenario.realise(1) == again.realise(1)
