"""Flows between two programs of the host: their hosts in the plan, and in the guest their numbers,
output and bytes."""

import importlib.util
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from debian import FOLDERS, programs_of

import sojourn
from sojourn import engine, guest_programs, report
from sojourn.cli import status, work
from sojourn.cli.verify import described
from sojourn.engine import estimate
from sojourn.engine.kernel.engine import KernelEngine
from sojourn.engine.kernel.guest.endings import GuestError
from sojourn.engine.kernel.observed.archive import NEVER, Archive
from sojourn.engine.kernel.observed.flows import observed_flow
from sojourn.engine.kernel.plan import guest_plan, program_plan
from sojourn.engine.kernel.plan.fits import problems_of
from sojourn.engine.verify import verify
from sojourn.errors import UserError
from sojourn.records import Run
from sojourn.records.pcapng import capture
from sojourn.scenario import Scenario, loads
from sojourn.scenario.realised import Realised

LINE = """
title = "a line"
duration = "4 s"
bottleneck = { rate = "10 Mbit/s", delay = "10 ms", qdisc = "fq_codel" }
"""
ANSWERS = """
import socket, sys, time
if sys.argv[1] == "serve":
    server = socket.create_server((sys.argv[2], 80))
    while True:
        line, _ = server.accept()
        size = int(line.recv(20))
        line.sendall(bytes(size))
        line.close()
else:
    for size in sys.argv[3:]:
        begun = time.monotonic()
        line = socket.create_connection((sys.argv[2], 80))
        line.send(size.encode())
        got = 0
        while part := line.recv(65536):
            got += len(part)
        print(got, f"{time.monotonic() - begun:.6f}", flush=True)
"""
"""A server of the standard library: sends as many bytes as the client asks for."""


def flow(server: str, client: str, more: str = "") -> str:
    return f"\n[[flow]]\nname = 'web'\nkind = 'program'\nserver = '''{server}'''\nclient = '''{client}'''\n{more}\n"


PAIR = flow("serve {address}", "fetch {server} from {address}")


def realised(text: str) -> Realised:
    return loads(text).realise(1)


def machine(**values: Any) -> guest_plan.Machine:
    return guest_plan.Machine("simnic", own=True, ipv6=False, **values)


def plan_of(text: str) -> Mapping[str, Any]:
    return guest_plan.plan(realised(text), machine()).plan


# ------------------------------------------------------------------------------------- the plan


def test_both_programs_have_hosts_of_their_own_and_their_addresses_in_their_words() -> None:
    plan = plan_of(LINE + PAIR + "[[flow]]\nkind = 'ping'\n" + "[[flow]]\nkind = 'bulk'\n")
    server, client = plan["programs"]
    web, ping, bulk = plan["flows"]
    assert [server["name"], client["name"]] == ["web-server", "web-client"]
    assert server["namespace"] == web["from"]["namespace"]
    assert client["namespace"] == web["to"]["namespace"]
    assert server["argv"] == ["serve", web["from"]["address"]]
    assert client["argv"] == ["fetch", web["from"]["address"], "from", web["to"]["address"]]
    alone = {server["namespace"], client["namespace"]}
    others = {each[end]["namespace"] for each in (ping, bulk) for end in ("from", "to")}
    assert len(alone) == 2
    assert not alone & others


def test_programs_of_equal_flows_share_no_host() -> None:
    plan = plan_of(LINE + flow("s", "c", "count = 3"))
    assert len({one["namespace"] for one in plan["programs"]}) == 6
    assert len({flow["port"] for flow in plan["flows"]}) == 3


def test_a_server_starts_before_the_run_and_its_client_at_the_start_of_the_flow() -> None:
    server, client = plan_of(LINE + flow("s", "c", "start = '1 s'\nstop = '3 s'"))["programs"]
    assert (server["start_ns"], client["start_ns"]) == (None, 10**9)
    assert server["stop_ns"] == client["stop_ns"] == 3 * 10**9
    assert "stop_ns" not in plan_of(LINE + PAIR)["programs"][0]


def test_a_host_sends_from_the_address_to_which_there_are_routes() -> None:
    plan = plan_of(LINE + PAIR)
    (web,) = plan["flows"]
    steps = [step for step in plan["setup"] if step["do"] == "run" and step["argv"][0] == "ip"]
    for end in (web["from"], web["to"]):
        (text,) = [step["stdin"] for step in steps if step["namespace"] == end["namespace"]]
        (route,) = re.findall(r"route add default .*", text)
        assert route.endswith(f" src {end['address']}")
        assert f"address add {end['address']}/32" in text


def test_the_packets_are_captured_at_the_hosts_own_devices() -> None:
    plan = plan_of(LINE + PAIR)
    (web,) = plan["flows"]
    moves = next(step for step in plan["setup"] if step.get("namespace") is None and "argv" in step)
    for end, device in zip(("from", "to"), web["traffic"]["devices"], strict=True):
        assert f"link set dev {device} netns {web[end]['namespace']}" in moves["stdin"]


def test_hosts_of_programs_have_the_tcp_of_bulk() -> None:
    def settings(text: str, number: int) -> set[tuple[str, str]]:
        plan = plan_of(text)
        name = plan["flows"][number]["from"]["namespace"]
        return {
            (step["path"], step["text"])
            for step in plan["setup"]
            if step["do"] == "write" and step["namespace"] == name
        }

    both = LINE + PAIR + "[[flow]]\nkind = 'bulk'\n"
    assert settings(both, 0) == settings(both, 1)


def test_a_plan_without_programs_is_unchanged() -> None:
    plan = plan_of(LINE + "[[flow]]\nkind = 'bulk'\n[[flow]]\nkind = 'ping'\n")
    assert "programs" not in plan
    assert " src " not in json.dumps(plan)


def test_memory_grows_with_the_number_of_programs() -> None:
    def memory(count: int) -> int:
        text = LINE + flow("s", "c", f"count = {count}")
        return guest_plan.plan(realised(text), machine()).memory_mb

    assert memory(8) - memory(1) >= 14 * 128 - 256


# ------------------------------------------------------------------------------ who refuses them


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("sim", "the simulator has no programs"),
        ("kernel-7.3", "the engine kernel-7.3 runs no programs"),
        ("kernel-qemu", "the engine kernel-qemu runs no programs"),
    ],
)
def test_other_engines_refuse_flows_of_programs(name: str, why: str) -> None:
    with pytest.raises(UserError) as caught:
        sojourn.run(loads(LINE + PAIR), engine=name)
    assert why in caught.value.problem
    assert "-e kernel" in caught.value.hint


def test_netns_refuses_flows_of_programs() -> None:
    (problem,) = problems_of(realised(LINE + PAIR), "veth", False, (6, 12))
    assert "this host's files and network" in problem.why


def test_a_replay_refuses_programs() -> None:
    with pytest.raises(GuestError, match="no programs of the host"):
        KernelEngine("kernel-uml", "uml").recordings(realised(LINE + PAIR), lambda _: True)


def test_programs_can_not_be_pinned_to_a_queue() -> None:
    line = """
duration = "4 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
qdisc = "mq fq_codel"
queues = 2
pinned = [0, 1]
"""
    found = problems_of(realised(line + PAIR), "simnic", True, (6, 12))
    assert {(each.where, each.why) for each in found} == {
        (f"link '{name}': pinned", "programs choose their own ports, by which flows are pinned")
        for name in ("down", "up")
    }


SWEPT = """
[[flow]]
name = "web"
kind = "program"
server = "serve {address}"
client = "x"
[sweep]
"flow.web.client" = ["fetch {server} from {address}", "y"]
"""


@pytest.mark.parametrize("text", [PAIR, SWEPT])
def test_permission_is_asked_for_with_the_programs_of_every_variant(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "check", lambda *_: None)
    monkeypatch.setattr(guest_programs, "_allowed", False)
    found = loads(LINE + text)
    with pytest.raises(UserError) as caught:
        work.permit([found], "kernel", False)
    assert "host at net: serve {address}" in caught.value.problem
    assert "host at home: fetch {server} from {address}" in caught.value.problem


def test_check_shows_both_programs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(LINE + flow("serve {address}", "fetch {server}", "start = '2 s'"))
    assert status(["check", "--json", str(file)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["node"], one["start_s"]) for one in shown["programs"]] == [
        ("web-server", "net", 0.0),
        ("web-client", "home", 2.0),
    ]
    assert [one["kind"] for one in shown["flows"]] == ["program"]


def test_a_program_that_this_host_lacks_is_named_before_a_guest_starts(tmp_path: Path) -> None:
    def lacking(text: str) -> list[str]:
        return program_plan.absent(realised(LINE + text))

    assert lacking(flow("sh -c true", "/bin/sh x")) == []
    assert lacking(flow("no-such-server {address}", "/usr/bin/no-such-client")) == [
        "no-such-server",
        "/usr/bin/no-such-client",
    ]
    # Other programs may create these files in the guest, so the check can't tell that they are
    # missing.
    assert lacking(flow("/tmp/made", "./made")) == []
    assert lacking(flow("made", "made", "env = { PATH = '/tmp:/usr/bin' }")) == []
    (tmp_path / "mine").touch()
    seen = f"[programs]\nsees = ['/usr', '{tmp_path}']"
    assert lacking(flow(f"{tmp_path}/mine", f"{tmp_path}/other") + seen) == [f"{tmp_path}/other"]


def test_check_names_a_program_that_is_not_installed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "x.toml"
    file.write_text(LINE + flow("sh -c true", "no-such-client {server}"))
    assert status(["check", str(file)]) == 0
    assert "this host has no program no-such-client" in capsys.readouterr().out


def test_the_estimate_is_that_of_a_flow_that_fills_the_line() -> None:
    programs = estimate.expected_packets(realised(LINE + PAIR))
    bulk = estimate.expected_packets(realised(LINE + "[[flow]]\nkind = 'bulk'\n"))
    assert programs == pytest.approx(bulk, rel=0.05)
    unlimited = 'duration = "1 s"\nbottleneck = { rate = "unlimited", delay = "1 ms" }\n'
    assert estimate.expected_packets(realised(unlimited + PAIR)) > 0


# -------------------------------------------------------------------------- from rows to tables


def archive(samples: int, retransmits: int) -> Archive:
    about = {
        "sent_packets": 5,
        "sent_bytes": 7500,
        "received_packets": 4,
        "payload_bytes": 5792,
        "retransmits": retransmits,
        "packets": 6,
    }
    carried = {"flow": [0, 0], "t_ns": [50, 100], "payload_bytes": [10, 30], "retransmits": [0, 1]}
    rtts = {"flow": [0], "samples": [samples], "sum_ns": [9], "min_ns": [4], "max_ns": [5]}
    tables = {"carried": carried, "rtts": rtts}
    arrays = {
        name: {column: np.array(values) for column, values in table.items()}
        for name, table in tables.items()
    }
    return Archive({"flows": [about]}, arrays)


def test_a_row_of_programs_contains_only_values_from_their_packets() -> None:
    seen = observed_flow(0, realised(LINE + PAIR), archive(samples=2, retransmits=3))
    row = seen.totals(7, 40)
    assert (row["sent_packets"], row["sent_bytes"], row["received_packets"]) == (5, 7500, 4)
    assert (row["delivered_bytes"], row["retransmits"], row["lost_packets"]) == (5792, 3, 7)
    assert (row["rtt_samples"], row["rtt_sum_ns"], row["timeouts"]) == (2, 9, NEVER)
    assert seen.received() == 6
    line = seen.line(np.array([0, 50, 100]))
    assert line["delivered_bytes"].tolist() == [10, 30]
    assert set(line["cwnd_bytes"].tolist()) == {NEVER}


def test_without_tcp_neither_rtt_nor_retransmissions_are_known() -> None:
    seen = observed_flow(0, realised(LINE + PAIR), archive(samples=0, retransmits=NEVER))
    row = seen.totals(0, 40)
    assert row["retransmits"] == row["rtt_samples"] == row["rtt_max_ns"] == NEVER
    assert np.isnan(row["rtt_sum_ns"])


# ----------------------------------------------------------------------------------- in the guest


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_programs, "_allowed", True)


def run_of(found: Scenario, folder: Path) -> Run:
    run = sojourn.run(found, engine="kernel-uml", out=folder)
    assert run.meta.invalid == ()
    return run


def printed(run: Run, name: str) -> str:
    record = guest_programs.read(run, 1)
    assert record is not None
    one = next(each for each in record.programs if each.name == name)
    return guest_programs.output_of(run, 1, one)


def answering(folder: Path, sizes: Sequence[int], more: str = "", line: str = LINE) -> Scenario:
    """A flow whose client asks for these sizes, one after another."""
    (folder / "answers.py").write_text(ANSWERS)
    client = f"python3 answers.py fetch {{server}} {' '.join(map(str, sizes))}"
    pair = flow("python3 answers.py serve {address}", client, f"files = ['answers.py']\n{more}")
    return loads(line + pair, folder=folder)


@pytest.mark.long
def test_a_flow_has_the_bytes_that_its_programs_count_and_is_the_same_in_two_runs(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    sizes = (1, 100_000, 1_000_000)
    found = answering(tmp_path, sizes, "start = '100 ms'\nrtt = '40 ms'")
    first, second = (run_of(found, tmp_path / name) for name in ("one", "two"))
    assert first.sums(1) == second.sums(1)
    rows = [line.split() for line in printed(first, "web-client").splitlines()]
    assert [int(got) for got, _ in rows] == list(sizes)
    # Two round trips for a connection, a request and a byte.
    assert float(rows[0][1]) == pytest.approx(0.080, abs=0.002)
    # A megabyte at 10 Mbit/s, with 1448 bytes of payload in a packet of 1500, and some round trips.
    assert 0.83 < float(rows[2][1]) < 1.4
    row = first.table("flows", 1).row(0, named=True)
    repeated = row["retransmits"] * 1448
    assert sum(sizes) <= row["delivered_bytes"] <= sum(sizes) + repeated
    assert row["sent_packets"] - row["received_packets"] == row["lost_packets"]
    assert row["rtt_samples"] > 100
    assert row["rtt_min_ns"] == pytest.approx(row["base_rtt_ns"], rel=0.05)
    line = first.table("flow", 1)
    assert line["delivered_bytes"].max() == row["delivered_bytes"]
    assert line["cwnd_bytes"].null_count() == line.height
    assert first.table("links", 1).height == 2
    page = report.render([first])
    assert "python3 answers.py fetch {server}" in page
    assert rows[2][1] in page
    (group,) = sojourn.summary(first).runs[0]["groups"]
    assert (group["kind"], "late_rate" in group) == ("program", False)
    assert group["goodput_mbps"] == pytest.approx(row["delivered_bytes"] * 8 / 4e6)


@pytest.mark.long
def test_the_tcp_of_a_program_is_that_of_bulk(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    line = LINE.replace('"4 s"', '"12 s"\nwarmup = "2 s"')
    found = answering(tmp_path, [20_000_000], "rtt = '40 ms'", line)
    ours = run_of(found, tmp_path / "ours")
    bulk = run_of(loads(line + "[[flow]]\nkind = 'bulk'\nrtt = '40 ms'\n"), tmp_path / "bulk")

    def numbers(run: Run) -> tuple[float, float]:
        row = run.table("links", 1).filter(pl.col("link") == "down").row(0, named=True)
        return row["sent_bytes"], row["sojourn_sum_ns"] / row["sent_packets"]

    (sent, wait), (sent_bulk, wait_bulk) = numbers(ours), numbers(bulk)
    assert sent == pytest.approx(sent_bulk, rel=0.01)
    assert wait == pytest.approx(wait_bulk, rel=0.1)


@pytest.mark.long
def test_an_upload_by_the_client_counts_as_the_flow_s_data(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    (tmp_path / "up.py").write_text(
        "import socket, sys\n"
        "if sys.argv[1] == 'serve':\n"
        "    line, _ = socket.create_server((sys.argv[2], 80)).accept()\n"
        "    got = 0\n"
        "    while part := line.recv(65536):\n"
        "        got += len(part)\n"
        "    print(got)\n"
        "else:\n"
        "    socket.create_connection((sys.argv[2], 80)).sendall(bytes(300_000))\n"
    )
    pair = flow(
        "python3 up.py serve {address}",
        "python3 up.py send {server}",
        "files = ['up.py']\ndirection = 'up'",
    )
    run = run_of(loads(LINE + pair, folder=tmp_path), tmp_path / "run")
    assert printed(run, "web-server") == "300000\n"
    row = run.table("flows", 1).row(0, named=True)
    assert 300_000 <= row["delivered_bytes"] <= 300_000 + 1448 * row["retransmits"]
    record = guest_programs.read(run, 1)
    assert record is not None
    assert [one.status for one in record.programs] == [0, 0]


@pytest.mark.long
def test_a_protocol_over_udp_has_no_rtt_and_losses_are_counted(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    found = sojourn.load("own-protocol")
    first, second = (run_of(found, tmp_path / name) for name in ("one", "two"))
    assert first.sums(1) == second.sums(1)
    assert printed(first, "transfer-client").startswith("2400000 bytes in ")
    again = int(re.findall(r", (\d+) of them", printed(first, "transfer-server"))[0])
    row = first.table("flows", 1).filter(pl.col("flow") == "transfer").row(0, named=True)
    # The line loses a hundredth of some two thousand chunks.
    assert 5 < again < 60
    assert row["lost_packets"] == row["sent_packets"] - row["received_packets"]
    assert row["lost_packets"] > 5
    assert row["rtt_samples"] is None
    assert row["retransmits"] is None
    assert row["delivered_bytes"] >= 2000 * 1204


@pytest.mark.long
def test_runs_with_headers_and_sweeps_take_flows_of_programs(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    line = LINE.replace("4 s", "2 s") + "[record]\nheaders = true\n"
    found = answering(tmp_path, [20_000], line=line)
    swept = found.with_(
        sweep={
            "flow.web.client": [
                f"python3 answers.py fetch {{server}} {size}" for size in (20_000, 60_000)
            ]
        }
    )
    runs = [run_of(one, tmp_path / str(at)) for at, one in enumerate(swept.variants())]
    got = [printed(run, "web-client").split()[0] for run in runs]
    assert got == ["20000", "60000"]
    headers = runs[0].table("headers", 1)
    assert set(headers["flow"].to_list()) == {"web"}
    assert set(headers["protocol"].to_list()) == {6}
    # One connection, both ways.
    assert set(headers["connection"].to_list()) == {0}
    assert set(headers["reply"].to_list()) == {0, 1}
    assert len(capture(runs[0], 1)) > 1000
    (again,) = verify([runs[0]])
    assert again.equal
    assert again.same_twice


@pytest.mark.long
def test_verify_names_a_program_that_differs_from_run_to_run(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    """The program reads a file of the host that this test changes between the two runs. So the
    output differs, as with a program that asks the processor for random numbers."""
    seen = tmp_path / "seen"
    seen.mkdir()
    text = LINE.replace("4 s", "1 s") + flow("sleep 9", f"wc -c {seen}/growing")
    text += f"[programs]\nsees = ['/usr', '{seen}']\n"
    growing = seen / "growing"
    growing.write_bytes(b"x")
    run = run_of(loads(text), tmp_path / "run")
    length = iter(range(2, 100))

    def grow(_: object) -> None:
        growing.write_bytes(bytes(next(length)))

    (one,) = verify([run], jobs=1, progress=grow)
    assert one.same_twice is False
    assert not one.equal
    assert "two runs of seed 1 differ now" in described(one)


OF_DEBIAN: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "fping": ("program.fping", {"fping": "fping"}),
    "iperf3": ("flow.upload", {"iperf3": "iperf3"}),
    "irtt": ("flow.call", {"irtt": "irtt"}),
    "ngtcp2": (
        "flow.quic",
        {"gtlsserver": "ngtcp2-server", "gtlsclient": "ngtcp2-client", "openssl": "openssl"},
    ),
}
"""Examples with programs of Debian: whose variables they are, and the packages of its programs."""


def of_debian(name: str, folder: Path) -> Scenario:
    """An example whose programs this host has, or that see the unpacked packages."""
    whose, wanted = OF_DEBIAN[name]
    sees, variables = programs_of(wanted, folder)
    found = sojourn.load(name)
    return found.with_({"programs.sees": sees, f"{whose}.env": variables}) if variables else found


def twice(found: Scenario, folder: Path) -> Run:
    """Runs it twice and returns the first Run."""
    first, second = (run_of(found, folder / each) for each in ("one", "two"))
    assert first.sums(1) == second.sums(1)
    return first


def last_status(run: Run) -> int | None:
    """The exit status of the last program: a flow's client."""
    record = guest_programs.read(run, 1)
    assert record is not None
    return record.programs[-1].status


@pytest.mark.long
def test_the_example_of_iperf3_agrees_with_its_packets(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    run = twice(of_debian("iperf3", tmp_path / "debian"), tmp_path)
    assert last_status(run) == 0, printed(run, "upload-client")
    # What iperf3 reads from TCP_INFO is what its packets show.
    (again,) = re.findall(r" (\d+) +sender", printed(run, "upload-client"))
    assert run.table("flow", 1)["retransmits"].max() == int(again)


@pytest.mark.long
def test_twenty_runs_of_iperf3_have_the_same_bytes(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    found = of_debian("iperf3", tmp_path / "debian")
    seen = {json.dumps(run_of(found, tmp_path / str(at)).sums(1)) for at in range(20)}
    assert len(seen) == 1


@pytest.mark.long
def test_the_example_of_web_fetch_runs(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    for program in ("curl", "lighttpd"):
        # lighttpd looks for its modules where it was built for, so it has to be installed.
        if not any((Path(folder) / program).exists() for folder in FOLDERS):
            pytest.skip(f"{program} is not installed")
    run = twice(sojourn.load("web-fetch"), tmp_path)
    assert last_status(run) == 0, printed(run, "fetch-client")


@pytest.mark.long
def test_fping_waits_as_long_as_our_ping(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    run = twice(of_debian("fping", tmp_path / "debian"), tmp_path)
    shown = printed(run, "fping")
    assert last_status(run) == 0, shown
    waited = [float(each) for each in re.findall(r"bytes, ([\d.]+) ms", shown)]
    lost = shown.count("timed out")
    assert len(waited) + lost == 160
    ours = run.table("probe", 1).filter(pl.col("t_ns").is_between(3 * 10**9, 19 * 10**9))
    mean = ours["rtt_ns"].mean()
    assert isinstance(mean, float)
    assert sum(waited) / len(waited) == pytest.approx(mean / 1e6, rel=0.05)
    assert abs(lost - ours["rtt_ns"].null_count()) < 8


@pytest.mark.long
def test_irtt_counts_the_packets_that_its_flow_has(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    found = of_debian("irtt", tmp_path / "debian").with_({"record.packets": True})
    run = twice(found, tmp_path)
    measured = json.loads(printed(run, "call-client"))
    row = run.table("flows", 1).filter(pl.col("flow") == "call").row(0, named=True)
    asked = measured["stats"]["packets_sent"]
    # 15 s of one each 20 ms, less the time that opening takes.
    assert 745 <= asked <= 750
    # Beside its requests irtt sends two packets to open and close.
    assert row["sent_packets"] == asked + 2
    assert row["lost_packets"] == measured["stats"]["upstream_loss_percent"] == 0
    # cake serves the call before the upload: its RTT is that of the path and hardly more.
    assert measured["stats"]["rtt"]["median"] == pytest.approx(20.5e6, abs=0.5e6)
    assert_delays_are_those_of_the_queue(run, measured)


def assert_delays_are_those_of_the_queue(run: Run, measured: Mapping[str, Any]) -> None:
    """Less its time in the queue, each packet takes 10 ms on the wire, 0.16 ms for its 200 bytes at 10
    Mbit/s, and some system calls."""
    delays = [each["delay"]["send"] for each in measured["round_trips"] if each.get("delay")]
    packets = run.table("packets", 1).filter((pl.col("flow") == "call") & (pl.col("link") == "up"))
    waits = packets.sort("t_ns")["sojourn_ns"].to_list()[1:-1]
    rest = [delay - wait for delay, wait in zip(delays, waits, strict=True)]
    assert 10_160_000 < min(rest) <= max(rest) < 10_180_000


@pytest.mark.long
def test_a_quic_of_debian_shares_with_tcp(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    shares(twice(of_debian("ngtcp2", tmp_path / "debian"), tmp_path))


@pytest.mark.long
def test_a_quic_of_python_shares_with_tcp(
    guest_for_programs: str, allowed: None, tmp_path: Path
) -> None:
    found = sojourn.load("aioquic")
    own = importlib.util.find_spec("aioquic")
    if own is not None and own.submodule_search_locations:
        folder = str(Path(own.submodule_search_locations[0]).parent)
        found = found.with_(
            {"programs.sees": ["/usr", folder], "flow.quic.env": {"PYTHONPATH": folder}}
        )
    elif subprocess.run(["/usr/bin/python3", "-c", "import aioquic"], check=False).returncode:
        pytest.skip("no Python here has aioquic: pip install aioquic")
    shares(twice(found, tmp_path))


def shares(run: Run) -> None:
    """The client of QUIC got its 8 MB, and had about half of the line while it did."""
    assert last_status(run) == 0, printed(run, "quic-client")
    (took_ms,) = re.findall(r"8000000 bytes in (\d+) ms", printed(run, "quic-client"))
    assert 0.4 < 8 * 8000 / int(took_ms) / 10 < 0.6
    # Beside the stream a packet has QUIC's header and checksum, some 40 of 1200 bytes.
    line = run.table("flow", 1).filter(pl.col("flow") == "quic")
    assert 8_000_000 < line["delivered_bytes"].to_list()[-1] < 8_500_000
