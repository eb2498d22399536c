//! What a server grants its clients, and how it refuses more.

use serde::{Deserialize, Serialize};

/// The most that clients may ask for. A source is a `probe::source`: whoever has one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    /// Seconds of load of one source in an hour, each direction counted by itself.
    pub seconds: u32,
    /// Bytes sent and received for one source in an hour.
    pub bytes: u64,
    /// Connections of one load.
    pub streams: u32,
    /// Clients at once; of one source a quarter of them.
    pub clients: u32,
}

impl Default for Caps {
    fn default() -> Caps {
        Caps { seconds: 1800, bytes: 100_000_000_000, streams: 64, clients: 8 }
    }
}

impl Caps {
    /// Why so many seconds of load are too many, if so many milliseconds have been granted in this
    /// hour already.
    pub fn seconds(&self, had_ms: u64, asked_ms: u64) -> Result<(), String> {
        if had_ms.saturating_add(asked_ms) <= u64::from(self.seconds) * 1000 {
            return Ok(());
        }
        Err(format!(
            "this server grants a client {} s of load in an hour, both directions added; {} s are used, {} s were asked for",
            self.seconds,
            had_ms.div_ceil(1000),
            asked_ms.div_ceil(1000)
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
        Err(format!(
            "this server grants {} streams in one direction; {asked} were asked for",
            self.streams
        ))
    }

    /// Why a further client can't be let in where so many are present, and so many of its own
    /// source.
    pub fn clients(&self, present: usize, own: usize) -> Result<(), String> {
        if present >= self.clients as usize {
            return Err(format!(
                "this server has {} clients at once already, as many as it may; try later",
                self.clients
            ));
        }
        let each = self.clients.div_ceil(4);
        if own >= each as usize {
            return Err(format!(
                "this server has {each} clients of your address at once already; try later"
            ));
        }
        Ok(())
    }

    /// Why a load ends whose source has moved so many bytes in this hour.
    pub fn bytes(&self, moved: u64) -> Result<(), String> {
        if moved < self.bytes {
            return Ok(());
        }
        Err(format!(
            "the server's cap of {} MB for a client in an hour is reached",
            self.bytes / 1_000_000
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_within_is_granted_and_more_is_refused_in_words() {
        let caps = Caps { seconds: 10, bytes: 5_000_000, streams: 2, clients: 1 };
        assert_eq!(
            (caps.seconds(4000, 6000), caps.streams(2), caps.clients(0, 0), caps.bytes(4_999_999)),
            (Ok(()), Ok(()), Ok(()), Ok(()))
        );
        assert!(caps.seconds(4000, 7000).unwrap_err().contains("10 s of load in an hour"));
        assert!(caps.seconds(1, u64::MAX).is_err());
        assert!(caps.streams(3).unwrap_err().contains("2 streams"));
        assert!(caps.streams(0).is_err());
        assert!(
            caps.clients(1, 0)
                .unwrap_err()
                .contains("1 clients at once already, as many as it may")
        );
        let caps = Caps { clients: 8, ..caps };
        assert_eq!((caps.clients(7, 1), caps.clients(4, 0)), (Ok(()), Ok(())));
        assert!(caps.clients(2, 2).unwrap_err().contains("2 clients of your address"));
        assert!(caps.bytes(5_000_000).unwrap_err().contains("5 MB"));
    }
}
