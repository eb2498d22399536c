//! The protocol between client and server: lines of JSON over TCP, one message per line.
//!
//! ```text
//! client                                                    server
//! {"do":"hello","version":1}                          ->
//!                                                     <-    {"say":"challenge","nonce":…}               if there is a secret
//! {"do":"prove","proof":…}                            ->
//!                                                     <-    {"say":"welcome","token":…,"caps":{…},…}     or refused; then the server closes
//! {"do":"ask","streams":4,"seconds":40,…}             ->                 is all of this allowed?
//!                                                     <-    {"say":"granted"}                            or refused
//! {"do":"mark","dscp":46}                             ->                 use it in echoes (RFC 2474)
//!                                                     <-    {"say":"granted"}
//! {"do":"clock","at":…}                               ->                 at any time; also the keep-alive
//!                                                     <-    {"say":"clock","asked":…,"at":…}
//! {"do":"load","load":1,"direction":"down",…}         ->
//!                                                     <-    {"say":"ready","load":1}
//! (data connections: {"do":"stream","token":…,"load":1,"stream":0}, one line, then data in one direction)
//!                                                     <-    {"say":"complete","load":1}                  all are connected
//! {"do":"go","load":1}                                ->                 the sender starts
//! {"do":"stop","load":1}                              ->                 or when the requested time is over
//!                                                     <-    {"say":"samples","load":1,"rows":[…]}        …
//!                                                     <-    {"say":"over","load":1,"why":""}
//! {"do":"heard"}                                      ->
//!                                                     <-    {"say":"heard","latest":…,"bits":…}          for echo requests by UDP
//! {"do":"bye"}                                        ->
//! ```
//! Control and data connections use one port; the first line identifies the kind. Every data
//! connection and every echo must contain the token, so only admitted clients get any data.
//!
//! A line has at most `LINE` bytes towards the server and `ANSWER` towards the client; a longer
//! line ends the connection.

use std::io::{self, Error, ErrorKind, Read};

use serde::{Deserialize, Serialize};

use crate::caps::Caps;

/// Version of this protocol; the server refuses any other.
pub const VERSION: u32 = 1;
/// Longest line from a client, bytes, including its newline.
pub const LINE: usize = 1024;
/// Longest line from a server, bytes.
pub const ANSWER: usize = 64 * 1024;

/// Direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From server to client.
    Down,
    /// From client to server.
    Up,
}

impl Direction {
    /// Returns its word in messages.
    pub fn word(self) -> &'static str {
        match self {
            Direction::Down => "down",
            Direction::Up => "up",
        }
    }
}

/// A client's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// The first message on a control connection.
    Hello {
        /// `VERSION`.
        version: u32,
    },
    /// The answer to a challenge.
    Prove {
        /// `secret::prove` of its nonce.
        proof: String,
    },
    /// First, and alone, on a data connection.
    Stream {
        /// The token from the welcome.
        token: u64,
        /// Number of the load that it belongs to.
        load: u32,
        /// Its number in the load, from 0.
        stream: u32,
    },
    /// Asks whether a measurement is allowed.
    Ask {
        /// Connections of one load.
        streams: u32,
        /// Seconds of all loads together.
        seconds: u32,
        /// Congestion control of the server's senders; `None`: its default.
        congestion: Option<String>,
    },
    /// Asks for the server's clock.
    Clock {
        /// The client's own clock, ns; the reply repeats it.
        at: i64,
    },
    /// Prepares a load.
    Load {
        /// Its number, chosen by the client; must be new.
        load: u32,
        /// Direction of the data.
        direction: Direction,
        /// Connections.
        streams: u32,
        /// Largest duration, ms.
        milliseconds: u32,
        /// The sender's congestion control; `None`: its default.
        congestion: Option<String>,
        /// Interval between samples, ms.
        sample_ms: u32,
        /// DSCP codepoint of the sender's packets.
        #[serde(default, skip_serializing_if = "is_none")]
        dscp: u8,
        /// Whether samples must contain ECN's values of the sender.
        #[serde(default, skip_serializing_if = "is_false")]
        ecn: bool,
    },
    /// Sets the codepoint of the echoes to this client. A server before 0.3 refuses it.
    Mark {
        /// 0 to 63.
        dscp: u8,
    },
    /// Starts a load.
    Go {
        /// The load's number.
        load: u32,
    },
    /// Ends a load.
    Stop {
        /// The load's number.
        load: u32,
    },
    /// Asks which UDP echo requests have arrived.
    #[serde(rename = "heard")]
    Received,
    /// Ends the session.
    Bye,
}

// Fields that older servers do not know are sent only if they are used.
fn is_none(dscp: &u8) -> bool {
    *dscp == 0
}

fn is_false(needed: &bool) -> bool {
    !needed
}

/// A server's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase", deny_unknown_fields)]
pub enum Reply {
    /// Demands a proof of the secret.
    Challenge {
        /// A random value, new for each challenge.
        nonce: String,
    },
    /// The client is admitted.
    Welcome {
        /// `VERSION`.
        version: u32,
        /// The server's software version.
        software: String,
        /// The server's kernel release.
        kernel: String,
        /// Token for data connections and echoes.
        token: u64,
        /// The server's limits.
        caps: Caps,
        /// Default congestion control of the server's senders.
        congestion: String,
    },
    /// The request is refused.
    Refused {
        /// The reason, for the client's user.
        why: String,
    },
    /// The request is granted.
    Granted,
    /// The server's clock.
    Clock {
        /// `at` of the request.
        asked: i64,
        /// ns since an unspecified start.
        at: i64,
    },
    /// The load's connections may be opened.
    Ready {
        /// The load's number.
        load: u32,
    },
    /// All connections of the load are established.
    Complete {
        /// The load's number.
        load: u32,
    },
    /// Some samples of a load, on the server's clock.
    Samples {
        /// The load's number.
        load: u32,
        /// The samples.
        rows: Vec<crate::load::Row>,
    },
    /// The load has ended, and all its samples were sent.
    Over {
        /// The load's number.
        load: u32,
        /// The reason; empty for the normal end.
        why: String,
    },
    /// The UDP echo requests that have arrived.
    #[serde(rename = "heard")]
    Received {
        /// Number of the latest request; `None`: none arrived.
        latest: Option<u32>,
        /// Bit `i`: the request `i` before the latest arrived.
        bits: u64,
    },
    /// The server ends the session.
    Ending {
        /// The reason.
        why: String,
    },
}

/// Returns a message as a line.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(message).expect("messages are plain values");
    bytes.push(b'\n');
    bytes
}

/// Splits received bytes into lines.
#[derive(Debug)]
pub struct Lines {
    most: usize,
    bytes: Vec<u8>,
}

impl Lines {
    /// Creates a splitter for lines of at most `most` bytes.
    pub fn new(most: usize) -> Lines {
        Lines { most, bytes: Vec::new() }
    }

    /// Reads once, at most the length of one line. Returns the number of bytes; 0 is the end of the
    /// stream.
    pub fn read(&mut self, from: &mut impl Read) -> io::Result<usize> {
        let had = self.bytes.len();
        self.bytes.resize(had + self.most, 0);
        let result = from.read(&mut self.bytes[had..]);
        self.bytes.truncate(had + *result.as_ref().unwrap_or(&0));
        result
    }

    /// Returns the next line without its newline; `None` if it is incomplete. Fails if a line is
    /// too long.
    pub fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(end) = self.bytes.iter().take(self.most).position(|&b| b == b'\n') else {
            return if self.bytes.len() < self.most {
                Ok(None)
            } else {
                Err(Error::new(
                    ErrorKind::InvalidData,
                    format!("a line of more than {} bytes", self.most),
                ))
            };
        };
        let rest = self.bytes.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.bytes, rest);
        line.pop();
        Ok(Some(line))
    }

    /// Returns the number of bytes received but not returned yet.
    pub fn rest(&self) -> usize {
        self.bytes.len()
    }
}

/// Parses a line.
pub fn parse<'a, M: Deserialize<'a>>(line: &'a [u8]) -> io::Result<M> {
    serde_json::from_slice(line).map_err(|e| Error::new(ErrorKind::InvalidData, e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines_of(chunks: &[&[u8]], most: usize) -> io::Result<Vec<Vec<u8>>> {
        let mut lines = Lines::new(most);
        let mut collected = Vec::new();
        for chunk in chunks {
            let mut from = *chunk;
            while !from.is_empty() {
                lines.read(&mut from)?;
                while let Some(line) = lines.next_line()? {
                    collected.push(line);
                }
            }
        }
        Ok(collected)
    }

    #[test]
    fn a_message_is_decoded_from_the_line_that_encodes_it() {
        let go = Request::Go { load: 3 };
        assert_eq!(line(&go), b"{\"do\":\"go\",\"load\":3}\n");
        assert_eq!(parse::<Request>(br#"{"do":"go","load":3}"#).unwrap(), go);
        assert_eq!(parse::<Request>(br#"{"do":"heard"}"#).unwrap(), Request::Received);
        for wrong in
            [&b"{}"[..], b"", b"\xff", br#"{"do":"go"}"#, br#"{"do":"go","load":3,"x":1}"#, b"3"]
        {
            assert_eq!(parse::<Request>(wrong).unwrap_err().kind(), ErrorKind::InvalidData);
        }
    }

    #[test]
    fn lines_are_read_whole_however_their_bytes_arrive() {
        let lines = lines_of(&[b"on", b"e\ntwo\n", b"\nthr", b"ee\n"], 16).unwrap();
        assert_eq!(lines, [&b"one"[..], b"two", b"", b"three"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_an_error() {
        assert!(lines_of(&[b"12345678"], 8).is_err());
        assert!(lines_of(&[b"1234567"], 8).unwrap().is_empty());
        assert_eq!(lines_of(&[b"1234567\n"], 8).unwrap(), [b"1234567"]);
        assert!(lines_of(&[b"12345678\n"], 8).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_cause_no_panic_and_at_most_two_lines_are_buffered(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20)
        ) {
            let mut lines = Lines::new(32);
            'all: for chunk in &chunks {
                let mut from = chunk.as_slice();
                while !from.is_empty() {
                    lines.read(&mut from).unwrap();
                    loop {
                        match lines.next_line() {
                            Ok(Some(line)) => drop(parse::<Request>(&line)),
                            Ok(None) => break,
                            Err(_) => break 'all,
                        }
                    }
                    prop_assert!(lines.rest() <= 64);
                }
            }
        }
    }
}
