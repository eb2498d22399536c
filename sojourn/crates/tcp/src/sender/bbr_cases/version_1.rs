//! The same cases for version 1, whose Up and Down are the phases of 5/4 and 3/4. The cases are
//! unchanged, so version 1 fails those whose subject the draft corrects. docs/tcp.md contains the
//! table, which the last test here checks.

use super::*;
use std::panic::catch_unwind;

/// The phases of ProbeBW's cycle with gains of 5/4 and 3/4.
const UP: usize = 0;
const DOWN: usize = 1;

/// Version 1 over a path with a queue of two BDPs, as in `Path::v3`.
fn v1(mbit: f64, rtt_ms: u64) -> Path {
    Path::new(CongestionKind::Bbr, mbit, rtt_ms, Path::v3(mbit, rtt_ms).buffer)
}

impl Path {
    fn reach_phase(&mut self, phase: usize) {
        self.until(30.0, "the phase is reached", |path| path.bbr().phase() == Some(phase));
    }
}

fn case_1() {
    let mut path = v1(10.0, 40);
    path.until(10.0, "Startup ends", |path| !path.bbr().in_startup());
    assert!(path.bbr().in_drain());
    assert!(path.bbr().segments_per_second() / path.link() > 0.98);
}

fn case_2() {
    let mut path = v1(50.0, 40);
    path.write(0.5 * path.link());
    path.run(0.5);
    path.loses = every(10);
    path.until(2.0, "Startup ends", |path| !path.bbr().in_startup());
}

fn case_3() {
    let mut path = v1(10.0, 40);
    path.until(10.0, "Drain", |path| path.bbr().in_drain());
    let over = path.in_flight();
    path.until(5.0, "Drain ends", |path| !path.bbr().in_drain());
    let enough = path.bbr().path_holds();
    assert!(path.in_flight() <= enough + 1.0 && over > enough);
}

fn case_4() {
    let mut path = v1(10.0, 40);
    path.until(10.0, "Drain", |path| path.bbr().in_drain());
    path.bps /= 5;
    let began = path.bbr().rounds();
    path.until(20.0, "Drain ends", |path| !path.bbr().in_drain());
    let rounds = path.bbr().rounds() - began;
    assert!(rounds <= 4, "Drain took {rounds} round trips");
}

fn case_5() {
    let mut path = v1(10.0, 40);
    path.reach_phase(UP);
    let began = path.bbr().rounds();
    path.until(5.0, "Up ends", |path| path.bbr().phase() != Some(UP));
    let rounds = path.bbr().rounds() - began;
    assert_eq!((path.bbr().phase(), path.dropped), (Some(DOWN), 0));
    assert!(rounds >= 3, "Up took {rounds} round trips, so there was no plateau");
}

fn case_6() {
    let mut path = v1(50.0, 40);
    path.reach_phase(UP);
    path.write(0.5 * path.link());
    let end = path.sender.nxt;
    path.until(1.0, "all segments are application-limited", |path| path.sender.una > end);
    assert_eq!(path.bbr().phase(), Some(UP));
    path.loses = every(10);
    path.until(1.0, "Up ends", |path| path.bbr().phase() != Some(UP));
}

fn case_7() {
    let mut path = v1(50.0, 40);
    path.reach_phase(UP);
    path.write(0.3 * path.link());
    path.until(20.0, "Up ends", |path| path.bbr().phase() != Some(UP));
    assert!(path.bbr().in_probe_rtt(), "after only ten seconds without a lower RTT");
    let mut path = v1(50.0, 40);
    path.write(0.3 * path.link());
    path.run(9.0);
    assert!(path.bbr().in_startup());
}

fn case_8() {
    let mut path = v1(10.0, 40);
    path.reach_phase(UP);
    path.reach_phase(DOWN);
    path.until(5.0, "Down ends", |path| path.bbr().phase() != Some(DOWN));
    let most = path.bbr().path_holds();
    assert!(path.in_flight() <= most + 1.0, "{} of {most}", path.in_flight());
}

fn case_10() {
    let mut path = v1(10.0, 40);
    path.until(8.0, "ProbeRTT", |path| path.bbr().in_probe_rtt());
}

fn case_11() {
    let mut path = v1(10.0, 40);
    path.run(3.0);
    path.write(0.0);
    path.until(2.0, "it is idle", |path| path.in_flight() == 0.0);
    // Longer than version 1's ten seconds.
    path.now += Span::from_secs(11);
    path.writes = None;
    path.pump();
    assert!(path.bbr().is_restarting());
    path.until(1.0, "an ACK", |path| !path.bbr().is_restarting());
    assert!(!path.bbr().in_probe_rtt());
}

fn case_12() {
    let mut path = Path::new(CongestionKind::Bbr, 20.0, 40, 1000);
    path.gather = Some(Span::from_millis(20));
    path.run(3.0);
    let (cwnd, link, bdp) = (path.sender.control.cwnd(), path.link(), path.bdp());
    assert!(cwnd > 2.0 * bdp, "{cwnd} of {bdp}");
    let share = path.bbr().segments_per_second() / link;
    assert!((0.95..1.3).contains(&share), "{share}");
}

fn case_13() {
    let mut path = v1(20.0, 40);
    path.reach_phase(UP);
    path.reach_phase(DOWN + 1);
    path.gather = Some(Span::from_millis(30));
    path.run(0.5);
    let (cwnd, bdp) = (path.sender.control.cwnd(), path.bdp());
    assert!(cwnd > 2.2 * bdp, "cwnd {cwnd} of {bdp}");
    let share = path.utilisation(0.6);
    assert!(share > 0.95, "{share} of the link");
}

fn case_14() {
    less_than_a_segment(CongestionKind::Bbr);
}

fn case_15() {
    let mut path = Path::new(CongestionKind::Bbr, 10.0, 40, 400);
    path.run(4.0);
    path.bps *= 10;
    path.run(6.0);
    assert!(path.utilisation(2.0) > 0.9);
}

fn case_16() {
    let mut path = v1(100.0, 40);
    path.buffer = 100;
    path.run(4.0);
    path.bps /= 10;
    let link = path.link();
    path.until(3.0, "the bandwidth falls", |path| path.bbr().segments_per_second() < 3.0 * link);
    path.until(12.0, "it falls to the link's", |path| {
        path.bbr().segments_per_second() < 1.05 * link
    });
    assert!(path.utilisation(5.0) > 0.85);
}

fn case_17() {
    let mut path = v1(100.0, 40);
    let per_second = 0.1 * path.link();
    path.policer = Some((per_second, 50.0, 50.0, Time::ZERO));
    path.run(5.0);
    let (sent, dropped) = (path.sent, path.dropped);
    let share = path.utilisation(10.0) / 0.1;
    let lost = (path.dropped - dropped) as f64 / (path.sent - sent) as f64;
    assert!(share > 0.75, "{share} of the policer's rate");
    assert!(lost < 0.05, "{lost} were lost");
}

fn case_18() {
    let mut path = v1(50.0, 40);
    path.reach_phase(UP);
    let (cwnd, undos) = (path.sender.control.cwnd(), path.sender.stats.undos);
    path.reorder();
    path.until(1.0, "an undo", |path| path.sender.stats.undos > undos);
    let after = path.sender.control.cwnd();
    assert!(after >= cwnd, "cwnd {after} after the undo, {cwnd} before");
}

fn case_19() {
    let mut path = v1(50.0, 40);
    path.reach_phase(UP);
    let (cwnd, undos) = (path.sender.control.cwnd(), path.sender.stats.undos);
    path.stalled_until = path.now + Span::from_millis(600);
    path.until(1.0, "a timeout", |path| path.sender.stats.timeouts > 0);
    path.until(2.0, "an undo", |path| path.sender.stats.undos > undos);
    let after = path.sender.control.cwnd();
    assert!(after >= 0.9 * cwnd, "cwnd {after} after the undo, {cwnd} before");
}

fn case_20() {
    let mut path = v1(50.0, 40);
    path.write(0.3 * path.link());
    path.until(12.0, "ProbeRTT", |path| path.bbr().in_probe_rtt());
    path.until(2.0, "ProbeRTT ends", |path| !path.bbr().in_probe_rtt());
    assert!(path.bbr().in_startup());
}

/// The result of a case for version 1.
enum V1 {
    Passes(fn()),
    /// The case fails with this message.
    Fails(fn(), &'static str),
    /// Version 1 lacks the subject of the case.
    Lacks,
}

use V1::{Fails, Lacks, Passes};

/// In the draft's order: the title of a case, the case for version 3, and its result for version 1.
const CASES: [(&str, fn(), V1); 22] = [
    ("Startup ends on a plateau", case_1_startup_ends_on_a_bandwidth_plateau, Passes(case_1)),
    (
        "Startup, application-limited, ends on loss",
        case_2_startup_ends_on_loss_when_application_limited,
        Fails(case_2, "Startup ends: not within 2 s"),
    ),
    (
        "Drain ends by the segments in flight",
        case_3_drain_ends_by_what_is_in_flight,
        Passes(case_3),
    ),
    ("Drain ends by time", case_4_drain_ends_by_time, Fails(case_4, "Drain took 11 round trips")),
    (
        "Up ends on a plateau",
        case_5_up_ends_on_a_bandwidth_plateau,
        Fails(case_5, "Up took 1 round trips"),
    ),
    (
        "Up, application-limited, ends on loss",
        case_6_up_ends_on_loss_when_application_limited,
        Passes(case_6),
    ),
    (
        "Up and Startup, application-limited, without loss stay",
        case_7_up_and_startup_never_end_when_application_limited_without_loss,
        Passes(case_7),
    ),
    ("Down ends by the segments in flight", case_8_down_ends_by_what_is_in_flight, Passes(case_8)),
    ("Down ends by time, to Refill", case_9_down_ends_after_its_time, Lacks),
    (
        "ProbeRTT after five seconds",
        case_10_probe_rtt_comes_after_five_seconds_and_ends,
        Fails(case_10, "ProbeRTT: not within 8 s"),
    ),
    ("no ProbeRTT after a pause", case_11_an_idle_sender_skips_probe_rtt, Passes(case_11)),
    (
        "Startup with aggregated ACKs",
        case_12_startup_finds_the_bandwidth_where_acks_gather,
        Passes(case_12),
    ),
    (
        "a cruise with aggregated ACKs",
        case_13_a_cruise_does_not_stall_where_acks_gather,
        Passes(case_13),
    ),
    ("less than a segment in the path", case_14_less_than_a_segment_in_the_path, Passes(case_14)),
    ("ten times the bandwidth", case_15_ten_times_the_bandwidth_is_found, Passes(case_15)),
    (
        "a tenth of the bandwidth",
        case_16_a_fall_to_a_tenth_of_the_bandwidth_is_detected,
        Passes(case_16),
    ),
    (
        "a policer: its rate, less than 5 % lost",
        case_17_a_policer_s_rate_is_kept,
        Fails(case_17, "0.0547"),
    ),
    (
        "a spurious fast recovery is undone",
        case_18_a_spurious_fast_recovery_is_undone,
        Passes(case_18),
    ),
    ("a spurious timeout is undone", case_19_a_spurious_timeout_is_undone, Passes(case_19)),
    (
        "ProbeRTT in Startup returns there",
        case_20_probe_rtt_during_startup_returns_to_startup,
        Passes(case_20),
    ),
    (
        "a loss in Up lowers `inflight_longterm`",
        case_21_a_loss_in_up_lowers_the_bound_that_is_set,
        Lacks,
    ),
    (
        "Refill, application-limited, leaves the bandwidth",
        case_22_an_application_limited_refill_leaves_the_bandwidth,
        Lacks,
    ),
];

/// The message of a case that panics.
fn failure(case: fn()) -> Option<String> {
    let message = catch_unwind(case).err()?;
    let text = message.downcast_ref::<String>().cloned();
    Some(text.or_else(|| Some((*message.downcast_ref::<&str>()?).to_owned())).unwrap_or_default())
}

fn verdict(failed: bool) -> &'static str {
    if failed { "fail" } else { "pass" }
}

/// Runs all cases for both versions. Each row of the page must contain the results.
#[test]
fn docs_tcp_has_the_results_of_both_versions() {
    let page = include_str!("../../../../../../docs/tcp.md");
    for (number, (title, v3, v1)) in (1..).zip(CASES) {
        let v1 = match v1 {
            Lacks => "",
            Passes(case) | Fails(case, _) => {
                let message = failure(case);
                let wanted = if let Fails(_, wanted) = v1 { Some(wanted) } else { None };
                let alike = message.as_deref().zip(wanted).is_some_and(|(a, b)| a.contains(b));
                assert!(alike || (message.is_none() && wanted.is_none()), "{number}: {message:?}");
                verdict(message.is_some())
            }
        };
        let cell = if v1.is_empty() { " |".to_owned() } else { format!(" {v1} |") };
        let row = format!("| {number} | {title} | {} |{cell}", verdict(failure(v3).is_some()));
        assert!(page.lines().any(|line| line == row), "docs/tcp.md lacks: {row}");
    }
}
