//! Values of options. Times and sizes have the same syntax as everywhere in sojourn.

use std::ffi::OsString;
use std::net::IpAddr;
use std::str::FromStr;

use lexopt::{Arg, Parser};
use live::Failure;
use live::secret::Secret;
use values::quantity::{self, MAX_SIZE, TIME, Times};
use values::{Value, Wrong, dscp};

/// Shortest secret, characters: an observer of a proof can try guesses offline.
const LEAST_SECRET: usize = 8;
/// The environment variable for the secret.
pub const SECRET: &str = "SOJOURN_SECRET";

/// Converts an error of the parser.
pub fn wrong(error: lexopt::Error) -> Failure {
    Failure::new(error.to_string(), "see sojourn-probe --help for the options")
}

/// Returns the error for an unknown option or a surplus word.
pub fn unexpected(arg: Arg<'_>) -> Failure {
    wrong(arg.unexpected())
}

/// Returns the text after an option.
pub fn text(parser: &mut Parser) -> Result<String, Failure> {
    let value = parser.value().map_err(wrong)?;
    value.into_string().map_err(|value| {
        Failure::new(
            format!("'{}' is not valid UTF-8", value.to_string_lossy()),
            "write it in UTF-8",
        )
    })
}

/// Returns an integer within bounds.
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

/// Returns a time above zero, ns. `days`: accept days and weeks too.
pub fn time(parser: &mut Parser, what: &str, example: &str, days: bool) -> Result<i64, Failure> {
    let times = Times { what, example, zero: false, days, ..TIME };
    let given = text(parser)?;
    quantity::parse_duration(&Value::Text(given), &times).map(|ns| ns as i64).map_err(refused)
}

/// Returns a size, bytes.
pub fn size(parser: &mut Parser) -> Result<u64, Failure> {
    let given = text(parser)?;
    quantity::parse_size(&Value::Text(given), "a size", 1, MAX_SIZE).map_err(refused)
}

/// Returns a DSCP codepoint from its name or number.
pub fn codepoint(parser: &mut Parser) -> Result<u8, Failure> {
    let given = text(parser)?;
    let number = given.parse().map(Value::Int);
    let value = number.unwrap_or_else(|_| Value::Text(given.to_ascii_lowercase()));
    dscp::parse(&value).map_err(refused)
}

fn refused(Wrong { message, hint, .. }: Wrong) -> Failure {
    Failure::new(message, hint)
}

/// Returns an address of this host.
pub fn address(parser: &mut Parser) -> Result<IpAddr, Failure> {
    let given = text(parser)?;
    given.parse().map_err(|_| {
        Failure::new(
            format!("'{given}' is not an IP address"),
            "give one of this host's, or 0.0.0.0 or :: for all",
        )
    })
}

/// Returns the secret: a word, or @FILE; without the option, that of the environment.
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
            format!("--secret: a secret needs at least {LEAST_SECRET} characters"),
            "`openssl rand -hex 16` creates one",
        ));
    }
    Ok(Secret::new(&word))
}
