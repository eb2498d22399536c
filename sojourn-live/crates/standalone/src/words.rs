//! The text of `--help`, with the current defaults.

use live::caps::Caps;
use live::session::{Kind, PORT, Plan};
use rpm::server::Options as RpmOptions;
use values::quantity::{format_duration, format_size};

use crate::arguments::SECRET;

/// Returns the whole text.
pub fn help() -> String {
    let Caps { seconds, bytes, streams, clients } = Caps::default();
    let rpm = RpmOptions::default();
    let plan = Plan::usual("", PORT);
    let time = |ns: i64| format_duration(ns as u64);
    format!(
        "\
sojourn-probe {version}: the servers and a client of sojourn, without Python

sojourn-probe serve [OPTIONS]               receive and send load, return probes
  --bind ADDRESS     listen at this address; may be repeated; 0.0.0.0 and ::
                     are all addresses [loopback]
  --port N           TCP and UDP port; 0: any free port [{PORT}]
  --for TIME         stop after this time: 10min, 7d [run until stopped]
  --once             stop when the first client has left
  --bytes SIZE       bytes sent and received per client and hour [{bytes}]
  --seconds N        seconds of load per client and hour; both directions count twice [{seconds}]
  --streams N        TCP connections in one direction [{streams}]
  --clients N        simultaneous sessions; one client may have a quarter of them [{clients}]
  --secret WORD|@FILE  admit only clients with this secret [environment variable {SECRET}]
  -q                 no messages

sojourn-probe measure [OPTIONS] HOST[:PORT]  delay idle and under load, goodput
  HOST runs sojourn-probe serve, or sojourn serve.
  --port N           the server's port [{PORT}]
  --secret WORD|@FILE  the server's secret, if it has one [environment variable {SECRET}]
  -4, -6             IPv4 only, IPv6 only
  -n, --streams N    TCP connections in each loaded direction [{own_streams}]
  --cc NAME          congestion control of the senders [each host's default]
  --dscp NAME|N      DSCP of streams and probes, both directions: ef, cs1, le, 0 to 63 [cs0]
  --ecn              also test how the path changes ECN and DSCP, and whether a queue marks
  -l, --length TIME  length of each loaded phase [{length}]
  --idle TIME        length of each idle phase [{idle}]
  --phase KIND       idle, download, upload or both; repeat for several phases, in order
                     [idle download upload both idle]
  --ping TARGET      udp, icmp (both: the server), gateway, \"hop 2\", or any host; may be
                     repeated; the numbers are those of the first one that answers
                     [udp icmp gateway \"hop 2\"]
  --interval TIME    time between probes of a target [{interval}]
  --iface IFACE      interface whose qdisc is sampled, or none [the one towards the server]
  --json             print one JSON object instead of text
  -o FILE            save the session for sojourn import FILE, after each phase
  --force            let -o replace the content of FILE
  -q                 no progress, no messages

sojourn-probe rpm serve [OPTIONS]           serve clients that measure responsiveness
  --bind ADDRESS     as above
  --port N           TCP port; 0: any free port [{rpm_port}]
  --for TIME         stop after this time [run until stopped]
  --name HOST        additional name for the self-signed certificate; may be repeated
  --cert FILE, --key FILE  certificate chain and key, PEM [self-signed]
  --cert-out FILE    write the self-signed certificate to FILE
  --bytes SIZE       bytes per client and hour [{rpm_bytes}]
  --seconds N        longest lifetime of a connection [{rpm_seconds}]
  --connections N    simultaneous connections per client [{connections}]
  -q                 no messages",
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

/// Formats rows below a header; the first column is text, the others are numbers.
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

/// Returns three significant digits, as in sojourn's tables: 0.123, 12.3, 1234.
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
