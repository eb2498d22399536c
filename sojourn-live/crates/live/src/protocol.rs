//! What client and server say to each other: lines of JSON over TCP, one message each.
//!
//! ```text
//! client                                                    server
//! {"do":"hello","version":1}                          ->
//!                                                     <-    {"say":"challenge","nonce":…}               if there is a secret
//! {"do":"prove","proof":…}                            ->
//!                                                     <-    {"say":"welcome","token":…,"caps":{…},…}     or refused, and the end
//! {"do":"ask","streams":4,"seconds":40,…}             ->                 may all of that be?
//!                                                     <-    {"say":"granted"}                            or refused
//! {"do":"mark","dscp":46}                             ->                 let echoes bear it (RFC 2474)
//!                                                     <-    {"say":"granted"}
//! {"do":"clock","at":…}                               ->                 at any time, now and then: also a sign of life
//!                                                     <-    {"say":"clock","asked":…,"at":…}
//! {"do":"load","load":1,"direction":"down",…}         ->
//!                                                     <-    {"say":"ready","load":1}
//! (data connections: {"do":"stream","token":…,"load":1,"stream":0}, a line, then only data one way)
//!                                                     <-    {"say":"complete","load":1}                  all of them have come
//! {"do":"go","load":1}                                ->                 whoever sends begins to
//! {"do":"stop","load":1}                              ->                 or the seconds that were asked for are over
//!                                                     <-    {"say":"samples","load":1,"rows":[…]}        …
//!                                                     <-    {"say":"over","load":1,"why":""}
//! {"do":"heard"}                                      ->
//!                                                     <-    {"say":"heard","latest":…,"bits":…}          of the echoes by UDP
//! {"do":"bye"}                                        ->
//! ```
//! Control and data connections come in on one port; the first line tells which it is. The token,
//! which a data connection and every echo must bear, makes sure that only one who has been let in
//! gets anything.
//!
//! A line has at most `LINE` bytes towards the server and `ANSWER` towards the client; a longer one
//! ends the connection.

use std::io::{self, Error, ErrorKind, Read};

use serde::{Deserialize, Serialize};

use crate::caps::Caps;

/// Of what is said here. Another one is refused.
pub const VERSION: u32 = 1;
/// Longest line from a client, bytes with its end.
pub const LINE: usize = 1024;
/// Longest line from a server.
pub const ANSWER: usize = 64 * 1024;

/// Which way the data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From server to client.
    Down,
    /// From client to server.
    Up,
}

impl Direction {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Direction::Down => "down",
            Direction::Up => "up",
        }
    }
}

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// First on a control connection.
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
        /// From the welcome.
        token: u64,
        /// Of which load it is part.
        load: u32,
        /// Its number in the load, from 0.
        stream: u32,
    },
    /// May this be measured?
    Ask {
        /// Connections of one load.
        streams: u32,
        /// Of all loads together.
        seconds: u32,
        /// The server's senders' congestion control; `None`: its default.
        congestion: Option<String>,
    },
    /// What does your clock show?
    Clock {
        /// The client's own, ns; comes back.
        at: i64,
    },
    /// Make a load ready.
    Load {
        /// Its number, which the client chooses: one that it has not had.
        load: u32,
        /// Which way.
        direction: Direction,
        /// Connections.
        streams: u32,
        /// For how long at most, ms.
        milliseconds: u32,
        /// The sender's congestion control; `None`: its default.
        congestion: Option<String>,
        /// From sample to sample, ms.
        sample_ms: u32,
        /// The codepoint of the sender's packets.
        #[serde(default, skip_serializing_if = "is_none")]
        dscp: u8,
        /// Whether samples are to say what ECN told the sender.
        #[serde(default, skip_serializing_if = "is_false")]
        ecn: bool,
    },
    /// Let the echoes to me bear this codepoint. A server before 0.3 refuses it.
    Mark {
        /// 0 to 63.
        dscp: u8,
    },
    /// Begin.
    Go {
        /// Which load.
        load: u32,
    },
    /// End.
    Stop {
        /// Which load.
        load: u32,
    },
    /// Which echoes by UDP have you heard?
    Heard,
    /// That was all.
    Bye,
}

// What an older server does not know is said only where it is asked for.
fn is_none(dscp: &u8) -> bool {
    *dscp == 0
}

fn is_false(asked: &bool) -> bool {
    !asked
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase", deny_unknown_fields)]
pub enum Reply {
    /// Show that you have the secret.
    Challenge {
        /// A new one each time.
        nonce: String,
    },
    /// You are let in.
    Welcome {
        /// `VERSION`.
        version: u32,
        /// The software's.
        software: String,
        /// The kernel's.
        kernel: String,
        /// To be borne by data connections and echoes.
        token: u64,
        /// What may be asked for.
        caps: Caps,
        /// The default congestion control of its senders.
        congestion: String,
    },
    /// No.
    Refused {
        /// In words for the person at the client.
        why: String,
    },
    /// It may be.
    Granted,
    /// What the server's clock shows.
    Clock {
        /// From the request.
        asked: i64,
        /// ns since some moment.
        at: i64,
    },
    /// The load's connections may come.
    Ready {
        /// Which.
        load: u32,
    },
    /// They all have.
    Complete {
        /// Which.
        load: u32,
    },
    /// Some of a load's samples, on the server's clock.
    Samples {
        /// Which.
        load: u32,
        /// `load::Sample`s.
        rows: Vec<crate::load::Row>,
    },
    /// The load is over, and all its samples have been said.
    Over {
        /// Which.
        load: u32,
        /// Why, if not because it was to end.
        why: String,
    },
    /// The echoes heard.
    Heard {
        /// Number of the latest request; `None`: none came.
        latest: Option<u32>,
        /// Bit `i`: the one `i` before it came.
        bits: u64,
    },
    /// The server ends.
    Ending {
        /// In words.
        why: String,
    },
}

/// A message as its line.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(message).expect("messages are plain values");
    bytes.push(b'\n');
    bytes
}

/// Cuts what comes in into lines.
#[derive(Debug)]
pub struct Lines {
    most: usize,
    bytes: Vec<u8>,
}

impl Lines {
    /// Of at most `most` bytes each.
    pub fn new(most: usize) -> Lines {
        Lines { most, bytes: Vec::new() }
    }

    /// Reads once, not more than one line may have; how much came: 0 is the end.
    pub fn read(&mut self, from: &mut impl Read) -> io::Result<usize> {
        let had = self.bytes.len();
        self.bytes.resize(had + self.most, 0);
        let result = from.read(&mut self.bytes[had..]);
        self.bytes.truncate(had + *result.as_ref().unwrap_or(&0));
        result
    }

    /// The next line without its end; `None`: it has not come in full. A line that is too long is
    /// an error.
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

    /// What has come in and not been taken out.
    pub fn rest(&self) -> usize {
        self.bytes.len()
    }
}

/// What a line says.
pub fn parse<'a, M: Deserialize<'a>>(line: &'a [u8]) -> io::Result<M> {
    serde_json::from_slice(line).map_err(|e| Error::new(ErrorKind::InvalidData, e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines_of(chunks: &[&[u8]], most: usize) -> io::Result<Vec<Vec<u8>>> {
        let mut lines = Lines::new(most);
        let mut found = Vec::new();
        for chunk in chunks {
            let mut from = *chunk;
            while !from.is_empty() {
                lines.read(&mut from)?;
                while let Some(line) = lines.next_line()? {
                    found.push(line);
                }
            }
        }
        Ok(found)
    }

    #[test]
    fn a_message_is_its_line() {
        let go = Request::Go { load: 3 };
        assert_eq!(line(&go), b"{\"do\":\"go\",\"load\":3}\n");
        assert_eq!(parse::<Request>(br#"{"do":"go","load":3}"#).unwrap(), go);
        assert_eq!(parse::<Request>(br#"{"do":"heard"}"#).unwrap(), Request::Heard);
        for wrong in
            [&b"{}"[..], b"", b"\xff", br#"{"do":"go"}"#, br#"{"do":"go","load":3,"x":1}"#, b"3"]
        {
            assert_eq!(parse::<Request>(wrong).unwrap_err().kind(), ErrorKind::InvalidData);
        }
    }

    #[test]
    fn lines_come_out_whole_however_they_come_in() {
        let found = lines_of(&[b"on", b"e\ntwo\n", b"\nthr", b"ee\n"], 16).unwrap();
        assert_eq!(found, [&b"one"[..], b"two", b"", b"three"]);
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
        fn no_bytes_make_it_panic_or_hold_more_than_two_lines(
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
