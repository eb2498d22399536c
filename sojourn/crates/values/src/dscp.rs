//! The codepoint of a flow's packets: `dscp = "cs0"`, the default of a host.
//!
//! A DSCP is a number from 0 to 63, the upper six bits of the byte in the IP header that was called
//! TOS before. It has a name in RFC 2474 (cs0 to cs7), 2597 (af11 to af43), 3246 (ef), 5865 (va) or
//! 8622 (le). The old words for TOS bits are accepted too, as in OpenSSH's IPQoS: the byte is four
//! times the DSCP, so `throughput` (0x08) is 2.

use crate::text::{did_you_mean, nearest};
use crate::value::{Value, quoted};
use crate::wrong::Wrong;

/// Every name; if two have the same number, the first is written.
const NAMES: [(&str, u8); 26] = [
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
    ("va", 44),
    ("le", 1),
    // RFC 1349's bits of the TOS byte: 0x10, 0x08, 0x04.
    ("lowdelay", 4),
    ("throughput", 2),
    ("reliability", 1),
];

/// Other words for these.
const ALIASES: &[(&[&str], &str)] = &[
    (&["be", "default", "df", "none", "best-effort", "besteffort", "normal"], "cs0"),
    (&["bulk", "scp", "background", "bk"], "throughput"),
    (&["interactive", "ssh", "low-delay", "minimize-delay"], "lowdelay"),
    (&["voice", "voip", "expedited"], "ef"),
    (&["scavenger", "lbe"], "le"),
];

/// A codepoint from 0 to 63, by its name or as the number itself.
pub fn parse(value: &Value) -> Result<u8, Wrong> {
    let text = match value {
        Value::Int(number @ 0..64) => return Ok(*number as u8),
        Value::Int(number) => {
            let hint = if (64..256).contains(number) {
                let dscp = (number >> 2) as u8;
                format!("as a TOS byte {number} is the DSCP {dscp}: write {}", written(dscp))
            } else {
                "write a number from 0 to 63, or a name like ef".to_owned()
            };
            return Err(Wrong::new(format!("{number} is not a DSCP"), hint));
        }
        Value::Text(text) => text,
        _ => {
            let hint = "write a name like \"cs1\", or a number from 0 to 63";
            return Err(Wrong::new(format!("{} is not a DSCP", quoted(value)), hint));
        }
    };
    if let Some((_, dscp)) = NAMES.iter().find(|(name, _)| name == text) {
        return Ok(*dscp);
    }
    let message = format!("{} is not the name of a DSCP", quoted(value));
    let hexadecimal = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) => {
            (1..=2).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_hexdigit())
        }
        None => (1..=3).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit()),
    };
    if number {
        let hint = "write the DSCP without quotes, 0 to 63; it is a quarter of the TOS byte";
        return Err(Wrong::new(message, hint));
    }
    let known = "known: cs0 to cs7, af11 to af43, ef, va, le, lowdelay, throughput, reliability, or a number from 0 to 63";
    let lower = text.to_ascii_lowercase();
    let alias = ALIASES.iter().find(|(words, _)| words.contains(&&*lower)).map(|(_, name)| *name);
    let guess = alias.or_else(|| nearest(text, NAMES.map(|(name, _)| name)));
    Err(Wrong::new(message, did_you_mean(guess, known)))
}

/// The name, or the number if it has no name.
pub fn format(dscp: u8) -> Value {
    match NAMES.iter().find(|(_, number)| *number == dscp) {
        Some((name, _)) => (*name).into(),
        None => Value::Int(dscp.into()),
    }
}

/// The DSCP as a scenario file contains it.
fn written(dscp: u8) -> String {
    match format(dscp) {
        Value::Text(name) => format!("\"{name}\""),
        _ => dscp.to_string(),
    }
}
