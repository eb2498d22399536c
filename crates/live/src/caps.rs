//! What a server grants its clients, and how it refuses more.

use serde::{Deserialize, Serialize};

/// The most that clients may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    /// Seconds of load of one client, each direction counted by itself.
    pub seconds: u32,
    /// Bytes sent and received for one client.
    pub bytes: u64,
    /// Connections of one load.
    pub streams: u32,
    /// Clients at once.
    pub clients: u32,
}

impl Default for Caps {
    fn default() -> Caps {
        Caps { seconds: 300, bytes: 100_000_000_000, streams: 64, clients: 8 }
    }
}

impl Caps {
    /// Why so many seconds of load are too many.
    pub fn seconds(&self, asked: u32) -> Result<(), String> {
        if asked <= self.seconds {
            return Ok(());
        }
        Err(format!(
            "this server grants a client {} s of load, both directions added; {asked} s were asked for",
            self.seconds
        ))
    }

    /// Why so many connections are too many, or too few.
    pub fn streams(&self, asked: u32) -> Result<(), String> {
        if asked == 0 {
            return Err("a load of no streams was asked for".into());
        }
        if asked <= self.streams {
            return Ok(());
        }
        Err(format!("this server grants {} streams in one direction; {asked} were asked for", self.streams))
    }

    /// Why a further client can't be let in.
    pub fn clients(&self, present: usize) -> Result<(), String> {
        if present < self.clients as usize {
            return Ok(());
        }
        Err(format!("this server has {} clients at once already, as many as it may; try later", self.clients))
    }

    /// Why a load ends that has moved so many bytes.
    pub fn bytes(&self, moved: u64) -> Result<(), String> {
        if moved < self.bytes {
            return Ok(());
        }
        Err(format!("the server's cap of {} MB for a client is reached", self.bytes / 1_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_within_is_granted_and_more_is_refused_in_words() {
        let caps = Caps { seconds: 10, bytes: 5_000_000, streams: 2, clients: 1 };
        assert_eq!(
            (caps.seconds(10), caps.streams(2), caps.clients(0), caps.bytes(4_999_999)),
            (Ok(()), Ok(()), Ok(()), Ok(()))
        );
        assert!(caps.seconds(11).unwrap_err().contains("10 s of load"));
        assert!(caps.streams(3).unwrap_err().contains("2 streams"));
        assert!(caps.streams(0).is_err());
        assert!(caps.clients(1).unwrap_err().contains("try later"));
        assert!(caps.bytes(5_000_000).unwrap_err().contains("5 MB"));
    }
}
