//! The size of a scenario: flows that would fill the memory, or stop the clock from advancing, are
//! refused.
//!
//! Datagrams, video and pings are sent however full the network is, and each may become a row of a
//! table. Only its round trip limits a TCP flow: with a round trip of zero it never leaves the
//! first instant. Scenarios that are only slow are accepted.

use crate::laws::Spread;
use crate::links::{Link, Way};
use crate::model::{Capture, Flow, Kind, Periods, Scenario, Udp, Video};
use crate::problem::{Key, Problem, below};
use values::general;
use values::quantity::{format_duration, format_rate, format_size};

/// The most packets that the open-loop flows of an entry send.
const MAX_PACKETS: u64 = 100_000_000;
/// The most rows of `drops`: some 100 bytes each while they are written.
const MAX_DROPPED: u64 = 5_000_000;
/// The most rows of `probe`, as for a time line.
const MAX_PINGS: u128 = 20_000_000;
/// The most packets of a frame, all sent in one instant: 40 MB.
const MAX_FRAME: f64 = 1_000_000.0;
/// The shortest round trip of TCP if no rate limits it, ns.
const LEAST_ROUND: u64 = 1_000;
/// Standard deviations: one normal number in 30 000 is further above its mean.
const UNLIKELY: f64 = 4.0;

/// Returns the problem if an entry sends too much, with the key to change.
pub(crate) fn check_amount(
    flow: &Flow,
    scenario: &Scenario,
    way: &Way,
    links: &[Link],
    at: &Key,
) -> Vec<Problem> {
    let span = span(flow, scenario.duration);
    let problem = match &flow.kind {
        Kind::Bulk(..)
        | Kind::Transfers(..)
        | Kind::Requests(..)
        | Kind::Web(..)
        | Kind::Stream(..) => clocked(flow, scenario, way, links),
        Kind::Call() => datagrams(flow, &Udp::call(), span, at),
        Kind::Udp(udp) => datagrams(flow, udp, span, at),
        Kind::OnOff(udp, periods) => on_off(flow, udp, periods, span, at),
        Kind::Ping(ping) => {
            let count = u128::from(flow.entry.count);
            let pings = count * u128::from(span / ping.interval);
            (pings > MAX_PINGS).then(|| {
                let least = format_duration((count * u128::from(span)).div_ceil(MAX_PINGS) as u64);
                let message = format!("that makes {pings} pings; the most is {MAX_PINGS}");
                Problem::new(message, format!("write \"{least}\" or more"), below(at, "interval"))
            })
        }
        Kind::Video(own) => video(flow, own, span, at),
        Kind::Capture(own) => {
            let packets = captured(flow, own, span);
            too_many(packets, "write a longer repeat".to_owned(), below(at, "repeat"))
        }
        // What a program sends is not known.
        Kind::Program(_) => None,
    };
    problem.into_iter().collect()
}

/// Refuses open-loop flows that send far more than their route carries: each dropped packet is a
/// row.
///
/// Each entry is taken alone on its route, at the fastest rate that each link ever has, so that
/// every refused scenario would certainly drop too many packets.
pub(crate) fn check_dropped(
    flows: &[Flow],
    ways: &[Way],
    links: &[Link],
    duration: u64,
) -> Option<Problem> {
    let dropped: Vec<f64> =
        flows.iter().zip(ways).map(|(flow, way)| dropped(flow, way, links, duration)).collect();
    let sum: f64 = dropped.iter().sum();
    if sum <= MAX_DROPPED as f64 {
        return None;
    }
    let most = (0..flows.len()).rev().max_by(|a, b| dropped[*a].total_cmp(&dropped[*b]))?;
    let packets = general(sum, 3);
    let what = format!(
        "about {packets} packets would be dropped; the most that a run records is {MAX_DROPPED}"
    );
    let hint = "write a lower rate, larger packets, or a shorter run";
    Some(Problem::new(what, hint, vec!["flow".into(), most.into(), "rate".into()]))
}

/// The fewest packets of the entry that the links of its route drop or its wires lose.
fn dropped(flow: &Flow, way: &Way, links: &[Link], duration: u64) -> f64 {
    let span = span(flow, duration);
    let (packets, size) = match &flow.kind {
        Kind::Call() => (udp_packets(flow, &Udp::call(), span), Udp::call().packet),
        Kind::Udp(udp) => (udp_packets(flow, udp, span), udp.packet),
        Kind::OnOff(udp, periods) => (on_off_packets(flow, udp, periods, span), udp.packet),
        Kind::Video(own) => {
            (video_packets(flow, own, span), own.payload + u64::from(traffic::RTP_HEADERS))
        }
        // TCP sends what its route carries; probes and captures send a written number of packets.
        Kind::Bulk(..)
        | Kind::Transfers(..)
        | Kind::Requests(..)
        | Kind::Web(..)
        | Kind::Stream(..)
        | Kind::Ping(_)
        | Kind::Capture(_)
        | Kind::Program(_) => return 0.0,
    };
    let mut left = packets;
    for line in way.path.iter().map(|index| &links[*index].line) {
        let fastest = line.steps.iter().map(|(_, bps)| *bps).max();
        let shaper = line.shaper.as_ref().map(|shaper| shaper.params.bps);
        let police = line.police.as_ref().map(|police| police.params.bps);
        if let Some(bps) = fastest.into_iter().chain(shaper).chain(police).min() {
            left = left.min(bps as f64 * duration as f64 / 8e9 / size as f64);
        }
        left *= 1.0 - line.loss.mean();
    }
    packets - left
}

/// The longest time that a flow of the entry sends, ns.
fn span(flow: &Flow, duration: u64) -> u64 {
    let entry = &flow.entry;
    let end = entry.stop.as_ref().map_or(duration, |stop| duration.min(stop.most(entry.count)));
    end.saturating_sub(entry.start.least())
}

fn clocked(flow: &Flow, scenario: &Scenario, way: &Way, links: &[Link]) -> Option<Problem> {
    let crossed = || way.path.iter().chain(&way.back).map(|index| &links[*index].line);
    if flow.entry.access.is_some()
        || crossed().any(|line| !line.steps.is_empty() || line.shaper.is_some())
    {
        return None;
    }
    let shortest = flow.entry.rtt.as_ref().map_or_else(|| way.delay(links), Spread::least);
    if shortest + flow.entry.jitter >= LEAST_ROUND {
        return None;
    }
    let least = format_duration(LEAST_ROUND);
    let hint = format!("write a rate, or delays that make {least} at least");
    let what =
        "TCP over links without a rate has a round trip of zero: the clock would not advance";
    Some(Problem::new(what, hint, rate_key(&links[way.path[0]], scenario)))
}

/// The key of a link's rate.
fn rate_key(link: &Link, scenario: &Scenario) -> Key {
    if let Some(bottleneck) = &scenario.bottleneck {
        let own = if link.name == "up" { &bottleneck.ways.up } else { &bottleneck.ways.down };
        if own.as_ref().is_some_and(|own| own.rate.is_some()) {
            return below(&below(&link.key, &*link.name), "rate");
        }
    }
    below(&link.key, "rate")
}

fn too_many(packets: f64, hint: String, key: Key) -> Option<Problem> {
    (packets > MAX_PACKETS as f64).then(|| {
        let packets = general(packets, 3);
        Problem::new(format!("that makes {packets} packets; the most is {MAX_PACKETS}"), hint, key)
    })
}

fn count(flow: &Flow) -> f64 {
    f64::from(flow.entry.count)
}

fn udp_packets(flow: &Flow, udp: &Udp, span: u64) -> f64 {
    count(flow) * span as f64 / 1e9 * udp.rate as f64 / 8.0 / udp.packet as f64
}

fn on_off_packets(flow: &Flow, udp: &Udp, periods: &Periods, span: u64) -> f64 {
    // Each on period begins with a packet, however short the period is.
    let (on, off) = (periods.on.mean().max(1.0), periods.off.mean());
    count(flow) * span as f64 / (on + off) + udp_packets(flow, udp, span) * on / (on + off)
}

fn video_packets(flow: &Flow, video: &Video, span: u64) -> f64 {
    if let Some(frames) = &video.frames {
        let repeats = video.repeat.map_or(1.0, |repeat| span as f64 / repeat as f64);
        let packets: u64 = frames.iter().map(|(_, size)| size.div_ceil(video.payload)).sum();
        return count(flow) * repeats * packets as f64;
    }
    let Some(rate) = video.rate else { return 0.0 };
    count(flow) * span as f64 / 1e9 * (video.fps + rate as f64 / 8.0 / video.payload as f64)
}

fn captured(flow: &Flow, own: &Capture, span: u64) -> f64 {
    let times = own.repeat.map_or(1.0, |repeat| (span as f64 / repeat as f64).max(1.0));
    count(flow) * times * own.packets.len() as f64
}

fn datagrams(flow: &Flow, udp: &Udp, span: u64, at: &Key) -> Option<Problem> {
    let packets = udp_packets(flow, udp, span);
    too_many(packets, slower(udp.rate, packets, "larger packets"), below(at, "rate"))
}

fn on_off(flow: &Flow, udp: &Udp, periods: &Periods, span: u64, at: &Key) -> Option<Problem> {
    let times = count(flow) * span as f64 / (periods.on.mean().max(1.0) + periods.off.mean());
    if times > MAX_PACKETS as f64 {
        let least = format_duration((count(flow) * span as f64 / MAX_PACKETS as f64).ceil() as u64);
        return too_many(
            times,
            format!("write on and off that make {least} or more together"),
            below(at, "on"),
        );
    }
    let packets = on_off_packets(flow, udp, periods, span);
    too_many(packets, slower(udp.rate, packets, "larger packets"), below(at, "rate"))
}

fn video(flow: &Flow, video: &Video, span: u64, at: &Key) -> Option<Problem> {
    let (largest, place) = match (&video.frames, video.rate) {
        (Some(frames), _) => {
            (frames.iter().map(|(_, size)| *size).max().unwrap_or(0) as f64, "frames")
        }
        (None, Some(rate)) => {
            let mean = rate as f64 / 8.0 / video.fps;
            // An I frame of a group, as in crates/traffic, with a random size.
            let sigma = libm::sqrt(libm::log(1.0 + video.cv * video.cv));
            let gop = f64::from(video.gop);
            let intra = video.i_ratio * gop * mean / (video.i_ratio + gop - 1.0);
            (intra * libm::exp(UNLIKELY * sigma - sigma * sigma / 2.0), "rate")
        }
        (None, None) => return None,
    };
    let packets = largest / video.payload as f64;
    if packets > MAX_FRAME {
        let what =
            format!("a frame may have {} packets; the most is {MAX_FRAME}", general(packets, 3));
        let payload = format_size(((largest / MAX_FRAME).ceil() as u64).min(65_000));
        let hint = format!("write payload = \"{payload}\" or more, or smaller frames");
        return Some(Problem::new(what, hint, below(at, place)));
    }
    let packets = video_packets(flow, video, span);
    let hint = match video.rate {
        None => "write larger payloads or a shorter run".to_owned(),
        Some(rate) => slower(rate, packets, "larger payloads"),
    };
    too_many(packets, hint, below(at, place))
}

fn slower(rate: u64, packets: f64, other: &str) -> String {
    let least = format_rate(((rate as f64 * MAX_PACKETS as f64 / packets.max(1.0)) as u64).max(1));
    format!("write rate = \"{least}\" or less, {other}, or a shorter run")
}
