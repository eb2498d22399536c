//! Values of options. Times and sizes are read as everywhere in sojourn.

use std::ffi::OsString;
use std::net::IpAddr;
use std::str::FromStr;

use lexopt::{Arg, Parser};
use live::Failure;
use live::secret::Secret;
use values::quantity::{self, MAX_SIZE, TIME, Times};
use values::{Value, Wrong, dscp};

/// Characters of a secret, at least: a proof that is overheard can be tried against guesses at
/// leisure.
const LEAST_SECRET: usize = 8;
/// Where a secret may be beside the command line.
pub const SECRET: &str = "SOJOURN_SECRET";

/// What can't be understood.
pub fn wrong(error: lexopt::Error) -> Failure {
    Failure::new(error.to_string(), "sojourn-probe --help tells of the options")
}

/// An option that is not known here, or a word too many.
pub fn unexpected(arg: Arg<'_>) -> Failure {
    wrong(arg.unexpected())
}

/// The text behind an option.
pub fn text(parser: &mut Parser) -> Result<String, Failure> {
    let value = parser.value().map_err(wrong)?;
    value.into_string().map_err(|value| {
        Failure::new(format!("'{}' is no text", value.to_string_lossy()), "write it in UTF-8")
    })
}

/// A whole number within bounds.
pub fn number<N: FromStr + PartialOrd + std::fmt::Display>(
    parser: &mut Parser,
    option: &str,
    least: N,
    most: N,
) -> Result<N, Failure> {
    let given = text(parser)?;
    given.parse().ok().filter(|number| (&least..=&most).contains(&number)).ok_or_else(|| {
        Failure::new(format!("{option}: '{given}' is not a number from {least} to {most}"), "")
    })
}

/// A time above zero, ns. `days`: also in days and weeks.
pub fn time(parser: &mut Parser, what: &str, example: &str, days: bool) -> Result<i64, Failure> {
    let times = Times { what, example, zero: false, days, ..TIME };
    let given = text(parser)?;
    quantity::parse_duration(&Value::Text(given), &times).map(|ns| ns as i64).map_err(refused)
}

/// A size, bytes.
pub fn size(parser: &mut Parser) -> Result<u64, Failure> {
    let given = text(parser)?;
    quantity::parse_size(&Value::Text(given), "a size", 1, MAX_SIZE).map_err(refused)
}

/// A codepoint by its name or number.
pub fn codepoint(parser: &mut Parser) -> Result<u8, Failure> {
    let given = text(parser)?;
    let number = given.parse().map(Value::Int);
    let value = number.unwrap_or_else(|_| Value::Text(given.to_ascii_lowercase()));
    dscp::parse(&value).map_err(refused)
}

fn refused(Wrong { message, hint, .. }: Wrong) -> Failure {
    Failure::new(message, hint)
}

/// An address of this host.
pub fn address(parser: &mut Parser) -> Result<IpAddr, Failure> {
    let given = text(parser)?;
    given.parse().map_err(|_| {
        Failure::new(
            format!("'{given}' is not an IP address"),
            "give one of this host's, or 0.0.0.0 or :: for all",
        )
    })
}

/// A secret: a word, or @FILE. Without one the environment's.
pub fn secret(given: Option<OsString>) -> Result<Secret, Failure> {
    let Some(given) = given.or_else(|| std::env::var_os(SECRET)) else {
        return Ok(Secret::default());
    };
    let given = given.to_string_lossy();
    let word = match given.strip_prefix('@') {
        None => given.to_string(),
        Some(file) => {
            let read = std::fs::read_to_string(file).map_err(|error| {
                Failure::new(format!("--secret: can't read {file}: {error}"), "")
            })?;
            if read.trim().is_empty() {
                return Err(Failure::new(format!("--secret: {file} is empty"), ""));
            }
            read.trim().to_string()
        }
    };
    if !word.is_empty() && word.chars().count() < LEAST_SECRET {
        return Err(Failure::new(
            format!("--secret: a secret has {LEAST_SECRET} characters at least"),
            "openssl rand -hex 16 makes one",
        ));
    }
    Ok(Secret::new(&word))
}
