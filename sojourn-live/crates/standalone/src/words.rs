//! What `--help` says, with the defaults as they are.

use live::caps::Caps;
use live::session::{Kind, PORT, Plan};
use rpm::server::Options as RpmOptions;
use values::quantity::{format_duration, format_size};

use crate::arguments::SECRET;

/// All of it.
pub fn help() -> String {
    let Caps { seconds, bytes, streams, clients } = Caps::default();
    let rpm = RpmOptions::default();
    let plan = Plan::usual("", PORT);
    let time = |ns: i64| format_duration(ns as u64);
    format!(
        "\
sojourn-probe {version}: the servers and a client of sojourn, without Python

sojourn-probe serve [OPTIONS]               take and give load, turn probes round
  --bind ADDRESS     listen there; may be repeated; 0.0.0.0 and :: are all [loopback]
  --port N           TCP and UDP; 0: any [{PORT}]
  --for TIME         stop after this time: 10min, 7d [when told to]
  --once             stop when the first client that came is gone
  --bytes SIZE       sent and received for a client in an hour [{bytes}]
  --seconds N        of load for a client in an hour, each direction by itself [{seconds}]
  --streams N        TCP connections in one direction [{streams}]
  --clients N        sessions at once; a client may have a quarter of them [{clients}]
  --secret WORD|@FILE  let in only clients that have it [the environment's {SECRET}]
  -q                 no talk

sojourn-probe measure [OPTIONS] HOST[:PORT]  delay idle and under load, goodput
  HOST runs sojourn-probe serve, or sojourn serve.
  --port N           the server's [{PORT}]
  --secret WORD|@FILE  the server's, if it has one [the environment's {SECRET}]
  -4, -6             IPv4 only, IPv6 only
  -n, --streams N    TCP connections in each loaded direction [{own_streams}]
  --cc NAME          congestion control of the senders [each host's own]
  --dscp NAME|N      codepoint of streams and probes, both ways: ef, cs1, le, 0 to 63 [cs0]
  --ecn              also what becomes of ECN and DSCP on the way, and whether a queue marks
  -l, --length TIME  of each loaded phase [{length}]
  --idle TIME        of each idle phase [{idle}]
  --phase KIND       idle, download, upload or both; in this order, may be repeated
                     [idle download upload both idle]
  --ping TARGET      udp, icmp (both: the server), gateway, \"hop 2\", or any host; the first that
                     answers is what numbers are of; may be repeated [udp icmp gateway \"hop 2\"]
  --interval TIME    from probe to probe of a target [{interval}]
  --iface IFACE      whose qdisc is watched, or none [that towards the server]
  --json             one JSON object instead of text
  -o FILE            keep everything for sojourn import FILE, from the end of the first phase on
  --force            -o may replace what is in FILE
  -q                 no progress, no talk

sojourn-probe rpm serve [OPTIONS]           serve clients that measure responsiveness
  --bind ADDRESS     as above
  --port N           TCP; 0: any [{rpm_port}]
  --for TIME         stop after this time [when told to]
  --name HOST        also a name that its certificate is for; may be repeated
  --cert FILE, --key FILE  its certificate chain and key, PEM [made at start]
  --cert-out FILE    write the certificate made at start there
  --bytes SIZE       moved for a client in an hour [{rpm_bytes}]
  --seconds N        that a connection may live [{rpm_seconds}]
  --connections N    that a client may have at once [{connections}]
  -q                 no talk",
        version = env!("CARGO_PKG_VERSION"),
        bytes = format_size(bytes),
        own_streams = plan.streams,
        length = time(Kind::Both.usual_ns()),
        idle = time(Kind::Idle.usual_ns()),
        interval = time(plan.probe_interval_ns),
        rpm_port = rpm.at[0].port(),
        rpm_bytes = format_size(rpm.bytes),
        rpm_seconds = rpm.seconds,
        connections = rpm.connections,
    )
}

/// Rows below a header; the first column is of words, the others are numbers.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Three digits, as sojourn's tables have them: 0.123, 12.3, 1234.
pub fn three(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    let digits = match value.abs() {
        0.0 => return "0".into(),
        size => 2 - (size.log10().floor() as i32).clamp(-1, 2),
    };
    format!("{value:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_fits_a_terminal() {
        assert!(help().lines().all(|line| line.chars().count() <= 100), "{}", help());
    }

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.0, 0.1234, 1.234, 20.06, 203.4, 1234.5, f64::NAN].map(three);
        assert_eq!(shown, ["0", "0.123", "1.23", "20.1", "203", "1234", "-"]);
    }
}
