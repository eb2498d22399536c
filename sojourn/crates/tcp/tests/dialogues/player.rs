//! A small packetdrill. A script is a table with one line for each event: a segment that arrives, a
//! segment that must leave, or a condition.
//!
//! Every line may begin with a time: `+0.1` is 0.1 s after the line before, `@1.5` is 1.5 s after
//! the start. Then one of these follows:
//!
//! | line | meaning |
//! |---|---|
//! | `< ack 3 sack 5..6 8..10 win 65535 ece echo 0.2` | an ACK reaches the sender; `sack` gives half-open ranges; without `win` the window is as before; without `echo` it echoes the stamp of the earliest segment it acknowledges; `oneway 0.05`: the delay it reports; `times 3`: sent three times |
//! | `> seq 4` , `> seq 4..8 again` | the sender sends these; `again`: as retransmissions; also `cwr`, `len 500`; `ect` or `not-ect`; `push` or `no-push` |
//! | `> nothing` | it sends no more; also implied before the next event |
//! | `timer` | the sender's (or receiver's) deadline is exactly now |
//! | `stop` | the application stops |
//! | `write 3` | an application (`play_application`) writes three more segments' worth of bytes; `write 500 B`: 500 bytes |
//! | `< seq 4 ce` | a segment reaches the receiver; also `again`, `cwr`, `len 500`, `stamp 0.1` (else: sent now) |
//! | `> ack 5 sack 7..8 ece win 4000 echo 0.1` | the receiver's answer; without `sack`, `ece` and `oneway` the answer must not have them |
//! | `cwnd == 7` | also ssthresh, inflight, retransmits, timeouts, recoveries, reductions, undos, probes, rto, srtt, window, delivered; `>=` and `<=` too |
//! | `# text` | a remark, also after a line |
//!
//! Windows are in segments, times in seconds. Each deadline that passes and each segment that
//! leaves must be in the script.

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::str::FromStr;
use tcp::{
    AccEcnOption, AckSegment, MAX_SACK_BLOCKS, Millis, Receiver, Segment, Sender, TcpParams,
};
use units::{Ecn, Span, Time};

/// Plays a script against a sender of endless data.
pub fn play(params: &TcpParams, script: &str) {
    play_sender(params, None, script);
}

/// Plays a script against a sender of `bytes` bytes.
pub fn play_transfer(params: &TcpParams, bytes: u64, script: &str) {
    play_sender(params, Some(bytes), script);
}

/// Plays a script against a sender whose application writes when the script says so.
pub fn play_application(params: &TcpParams, script: &str) {
    play_by(Sender::new(params, None).with_application(params), params, script);
}

/// Plays a script against a receiver.
pub fn play_receiver(params: &TcpParams, script: &str) {
    let mut stage =
        ReceiverStage { receiver: Receiver::new(params), mss: params.mss, sent: VecDeque::new() };
    run(&mut stage, script);
}

fn play_sender(params: &TcpParams, bytes: Option<u64>, script: &str) {
    play_by(Sender::new(params, bytes), params, script);
}

fn play_by(sender: Sender, params: &TcpParams, script: &str) {
    let mut stage = SenderStage {
        sender,
        produced: 0,
        params: params.clone(),
        window: Receiver::new(params).window_bytes(),
        stamps: HashMap::new(),
        sent: VecDeque::new(),
        complete: false,
    };
    stage.pump(Time::ZERO);
    run(&mut stage, script);
}

/// One line of a script without its time.
struct Line<'a> {
    number: usize,
    text: &'a str,
    words: VecDeque<&'a str>,
}

impl<'a> Line<'a> {
    fn fail(&self, what: impl Display) -> ! {
        panic!("script line {}: `{}`: {what}", self.number, self.text)
    }

    fn check(&self, holds: bool, what: impl Display) {
        if !holds {
            self.fail(what);
        }
    }

    fn next(&mut self) -> &'a str {
        self.words.pop_front().unwrap_or_else(|| self.fail("a word is missing"))
    }

    /// Takes the next word if it is this one.
    fn take(&mut self, word: &str) -> bool {
        let matches = self.words.front() == Some(&word);
        if matches {
            self.words.pop_front();
        }
        matches
    }

    fn number<T: FromStr>(&mut self) -> T {
        let word = self.next();
        word.parse().unwrap_or_else(|_| self.fail(format!("`{word}` is not a number of this kind")))
    }

    fn seconds(&mut self) -> Time {
        time(self.number())
    }

    fn span(&mut self) -> Span {
        self.seconds().since(Time::ZERO)
    }

    /// `1 2896 1448`: the counters of an AccECN option, with all three.
    fn counters(&mut self) -> AccEcnOption {
        AccEcnOption { bytes: [self.number(), self.number(), self.number()], fields: 3, size: 12 }
    }

    /// `4..8`, or `4` for `4..5`.
    fn range(&mut self) -> (u32, u32) {
        let word = self.next();
        let (first, end) = word.split_once("..").unwrap_or((word, ""));
        match (first.parse::<u32>(), end.parse()) {
            (Ok(first), Ok(end)) => (first, end),
            (Ok(first), Err(_)) if end.is_empty() => (first, first + 1),
            _ => self.fail(format!("`{word}` is not a range")),
        }
    }

    fn ranges(&mut self) -> Vec<(u32, u32)> {
        let mut ranges = Vec::new();
        while self.words.front().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        {
            ranges.push(self.range());
        }
        ranges
    }
}

fn time(seconds: f64) -> Time {
    Time(Span::from_secs_f64(seconds).0)
}

trait Stage {
    /// `< …`
    fn arrive(&mut self, line: &mut Line, now: Time);
    /// `> …`
    fn leave(&mut self, line: &mut Line);
    /// Fails if something has left that the script does not expect.
    fn quiet(&self, line: &Line);
    fn deadline(&self) -> Option<Time>;
    fn on_deadline(&mut self, now: Time);
    fn stop(&mut self, line: &Line);
    /// `write …`
    fn write(&mut self, line: &mut Line, now: Time);
    /// The left side of a comparison.
    fn value(&self, name: &str) -> Option<f64>;
}

fn run(stage: &mut impl Stage, script: &str) {
    let mut now = Time::ZERO;
    let end = script.lines().count();
    for (index, text) in script.lines().enumerate() {
        let words = text.split('#').next().unwrap_or("").split_whitespace().collect();
        let mut line = Line { number: index + 1, text: text.trim(), words };
        let Some(&first) = line.words.front() else { continue };
        let then = match (first.strip_prefix('+'), first.strip_prefix('@')) {
            (Some(span), _) => {
                now + Span(time(span.parse().unwrap_or_else(|_| line.fail("not a time"))).0)
            }
            (_, Some(at)) => time(at.parse().unwrap_or_else(|_| line.fail("not a time"))),
            _ => now,
        };
        if first.starts_with(['+', '@']) {
            line.words.pop_front();
            line.check(then >= now, "time runs backwards");
        }
        if then > now {
            stage.quiet(&line);
        }
        now = then;
        let due = stage.deadline();
        if line.take("timer") {
            stage.quiet(&line);
            line.check(due == Some(now), format!("the deadline is {due:?}, not {now:?}"));
            stage.on_deadline(now);
        } else {
            line.check(
                due.is_none_or(|due| due >= now),
                format!("the deadline {due:?} has passed"),
            );
            match line.words.front().copied() {
                Some("<") => {
                    line.next();
                    stage.quiet(&line);
                    stage.arrive(&mut line, now);
                }
                Some(">") => {
                    line.next();
                    stage.leave(&mut line);
                }
                Some("stop") => {
                    line.next();
                    stage.stop(&line);
                }
                Some("write") => {
                    line.next();
                    stage.quiet(&line);
                    stage.write(&mut line, now);
                }
                _ => compare(stage, &mut line),
            }
        }
        line.check(line.words.is_empty(), "unknown words at the end");
    }
    let last = Line { number: end, text: "the end", words: VecDeque::new() };
    stage.quiet(&last);
}

fn compare(stage: &impl Stage, line: &mut Line) {
    let name = line.next();
    let Some(is) = stage.value(name) else { line.fail(format!("`{name}` cannot be compared")) };
    let relation = line.next();
    let wanted = if line.take("none") { f64::INFINITY } else { line.number() };
    let holds = match relation {
        "==" => is == wanted || (is - wanted).abs() < 1e-9,
        ">=" => is >= wanted,
        "<=" => is <= wanted,
        _ => line.fail("==, >= or <="),
    };
    line.check(holds, format!("{name} is {is}"));
}

struct SenderStage {
    sender: Sender,
    /// Bytes that the application has produced.
    produced: u64,
    params: TcpParams,
    window: u64,
    /// The time of the last transmission of each segment.
    stamps: HashMap<u32, Time>,
    sent: VecDeque<Segment>,
    complete: bool,
}

impl SenderStage {
    fn pump(&mut self, now: Time) {
        while let Some(segment) = self.sender.poll(now) {
            self.stamps.insert(segment.seq, segment.stamp);
            self.sent.push_back(segment);
        }
    }

    fn segments(&self, bytes: u64) -> f64 {
        (bytes / u64::from(self.params.mss)) as f64
    }
}

impl Stage for SenderStage {
    fn arrive(&mut self, line: &mut Line, now: Time) {
        line.check(line.words.front() == Some(&"ack"), "a sender receives ACKs");
        line.next();
        let number: u32 = line.number();
        let mut ack = AckSegment {
            ack: number,
            echo: Time::NEVER,
            window: self.window,
            sacks: [(0, 0); MAX_SACK_BLOCKS],
            sack_count: 0,
            ace: 0,
            accecn: None,
            ecn: Ecn::NotEct,
            one_way: None,
            syn: false,
            stamp: Millis(0),
        };
        if self.params.timestamps {
            let earliest = self.sender.outstanding().0;
            ack.echo = self.stamps.get(&earliest).copied().unwrap_or(Time::NEVER);
        }
        let mut times = 1;
        while !line.words.is_empty() {
            match line.next() {
                "times" => times = line.number(),
                "sack" => {
                    let ranges = line.ranges();
                    ack.sacks[..ranges.len()].copy_from_slice(&ranges);
                    ack.sack_count = ranges.len() as u8;
                }
                "win" => self.window = line.number(),
                "ece" => ack.ace = 1,
                "ace" => ack.ace = line.number(),
                "counters" => ack.accecn = Some(line.counters()),
                "echo" => ack.echo = line.seconds(),
                "oneway" => ack.one_way = Some(line.span()),
                word => line.fail(format!("an ACK has no `{word}`")),
            }
        }
        ack.window = self.window;
        for _ in 0..times {
            self.complete = self.sender.on_ack(&ack, now).complete;
            self.pump(now);
        }
    }

    fn leave(&mut self, line: &mut Line) {
        if line.take("nothing") {
            return self.quiet(line);
        }
        line.check(line.words.front() == Some(&"seq"), "a sender sends segments");
        line.next();
        let (first, end) = line.range();
        let (mut again, mut cwr, mut ecn, mut len) = (false, false, None, self.params.mss);
        let mut push = None;
        while !line.words.is_empty() {
            match line.next() {
                "again" => again = true,
                "cwr" => cwr = true,
                "ect" => ecn = Some(Ecn::Ect0),
                "ect1" => ecn = Some(Ecn::Ect1),
                "not-ect" => ecn = Some(Ecn::NotEct),
                "push" => push = Some(true),
                "no-push" => push = Some(false),
                "len" => len = line.number(),
                word => line.fail(format!("a segment has no `{word}`")),
            }
        }
        for seq in first..end {
            let Some(sent) = self.sent.pop_front() else {
                line.fail(format!("{seq} has not been sent"))
            };
            let (ecn, push) = (ecn.unwrap_or(sent.ecn), push.unwrap_or(sent.push));
            let wanted = Segment { seq, len, retransmit: again, cwr, ecn, push, ..sent };
            line.check(sent == wanted, format!("{sent:?}"));
        }
    }

    fn quiet(&self, line: &Line) {
        if let Some(sent) = self.sent.front() {
            line.fail(format!("unexpected before it: {sent:?}"));
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.sender.deadline()
    }

    fn on_deadline(&mut self, now: Time) {
        self.sender.on_deadline(now);
        self.pump(now);
    }

    fn stop(&mut self, _: &Line) {
        self.sender.stop();
    }

    fn write(&mut self, line: &mut Line, now: Time) {
        let amount: u64 = line.number();
        self.produced += if line.take("B") { amount } else { amount * u64::from(self.params.mss) };
        self.sender.produce(self.produced, now);
        self.pump(now);
    }

    fn value(&self, name: &str) -> Option<f64> {
        let stats = self.sender.stats();
        Some(match name {
            "cwnd" => self.segments(self.sender.cwnd_bytes()),
            "ssthresh" => {
                self.sender.ssthresh_bytes().map_or(f64::INFINITY, |bytes| self.segments(bytes))
            }
            "inflight" => self.segments(self.sender.inflight_bytes()),
            "retransmits" => stats.retransmits as f64,
            "timeouts" => stats.timeouts as f64,
            "recoveries" => stats.fast_recoveries as f64,
            "probes" => stats.probes as f64,
            "undos" => stats.undos as f64,
            "reductions" => stats.ecn_reductions as f64,
            "rto" => self.sender.rto().as_secs_f64(),
            "srtt" => self.sender.srtt()?.as_secs_f64(),
            "complete" => f64::from(u8::from(self.complete)),
            _ => return None,
        })
    }
}

struct ReceiverStage {
    receiver: Receiver,
    mss: u32,
    sent: VecDeque<AckSegment>,
}

impl Stage for ReceiverStage {
    fn arrive(&mut self, line: &mut Line, now: Time) {
        line.check(line.words.front() == Some(&"seq"), "a receiver receives segments");
        line.next();
        let (first, end) = line.range();
        let mut segment = Segment {
            seq: 0,
            len: self.mss,
            stamp: now,
            retransmit: false,
            cwr: false,
            ace: 0,
            ecn: Ecn::Ect0,
            syn: false,
            push: false,
            echo: None,
        };
        while !line.words.is_empty() {
            match line.next() {
                "ce" => segment.ecn = Ecn::Ce,
                "ect1" => segment.ecn = Ecn::Ect1,
                "not-ect" => segment.ecn = Ecn::NotEct,
                "cwr" => segment.cwr = true,
                "push" => segment.push = true,
                "again" => segment.retransmit = true,
                "len" => segment.len = line.number(),
                "stamp" => segment.stamp = line.seconds(),
                word => line.fail(format!("a segment has no `{word}`")),
            }
        }
        for seq in first..end {
            self.sent.extend(self.receiver.on_segment(&Segment { seq, ..segment }, now));
        }
    }

    fn leave(&mut self, line: &mut Line) {
        if line.take("nothing") {
            return self.quiet(line);
        }
        line.check(line.words.front() == Some(&"ack"), "a receiver sends ACKs");
        line.next();
        let Some(sent) = self.sent.pop_front() else { line.fail("no ACK was sent") };
        let mut wanted = AckSegment {
            sack_count: 0,
            ace: 0,
            accecn: None,
            one_way: None,
            ack: line.number(),
            ..sent
        };
        let mut sacks = Vec::new();
        while !line.words.is_empty() {
            match line.next() {
                "sack" => sacks = line.ranges(),
                "ece" => wanted.ace = 1,
                "ace" => {
                    // Parts of the option that the script does not name are not compared.
                    wanted.ace = line.number();
                    wanted.accecn = sent.accecn;
                }
                "counters" => {
                    let counters = sent.accecn.map(|option| option.bytes);
                    let wanted = line.counters();
                    line.check(counters == Some(wanted.bytes), format!("{counters:?}"));
                }
                "win" => wanted.window = line.number(),
                "echo" => {
                    wanted.echo = if line.take("none") { Time::NEVER } else { line.seconds() }
                }
                "oneway" => wanted.one_way = Some(line.span()),
                word => line.fail(format!("an ACK has no `{word}`")),
            }
        }
        wanted.sack_count = sacks.len() as u8;
        let blocks = &sent.sacks[..usize::from(sent.sack_count)];
        line.check(sent == wanted && blocks == sacks, format!("{sent:?}"));
    }

    fn quiet(&self, line: &Line) {
        if let Some(sent) = self.sent.front() {
            line.fail(format!("unexpected before it: {sent:?}"));
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.receiver.deadline()
    }

    fn on_deadline(&mut self, now: Time) {
        self.sent.extend(self.receiver.on_deadline(now));
    }

    fn stop(&mut self, line: &Line) {
        line.fail("only a sender stops");
    }

    fn write(&mut self, line: &mut Line, _: Time) {
        line.fail("a receiver writes nothing");
    }

    fn value(&self, name: &str) -> Option<f64> {
        Some(match name {
            "window" => self.receiver.window_bytes() as f64,
            "delivered" => self.receiver.delivered_bytes() as f64,
            _ => return None,
        })
    }
}
