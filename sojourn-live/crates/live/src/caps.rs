//! The limits of a server for its clients, and the refusals.

use serde::{Deserialize, Serialize};

/// The limits for clients. A source is a `probe::source`: all clients of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    /// Seconds of load of one source per hour; load in both directions counts twice.
    pub seconds: u32,
    /// Bytes sent and received for one source per hour.
    pub bytes: u64,
    /// Connections of one load.
    pub streams: u32,
    /// Simultaneous clients; one source may have a quarter of them.
    pub clients: u32,
}

impl Default for Caps {
    fn default() -> Caps {
        Caps { seconds: 1800, bytes: 100_000_000_000, streams: 64, clients: 8 }
    }
}

impl Caps {
    /// Fails if a request for `requested_ms` of load exceeds the limit, when `granted_ms` were
    /// already granted in this hour.
    pub fn seconds(&self, granted_ms: u64, requested_ms: u64) -> Result<(), String> {
        if granted_ms.saturating_add(requested_ms) <= u64::from(self.seconds) * 1000 {
            return Ok(());
        }
        Err(format!(
            "this server grants a client {} s of load in an hour, both directions added; {} s are used, {} s were requested",
            self.seconds,
            granted_ms.div_ceil(1000),
            requested_ms.div_ceil(1000)
        ))
    }

    /// Fails if a load of so many connections is not allowed.
    pub fn streams(&self, requested: u32) -> Result<(), String> {
        if requested == 0 {
            return Err("a load needs at least one stream".into());
        }
        if requested <= self.streams {
            return Ok(());
        }
        Err(format!(
            "this server grants {} streams in one direction; {requested} were requested",
            self.streams
        ))
    }

    /// Fails if there is no room for another client, with `present` clients of which `own` have the
    /// same source.
    pub fn clients(&self, present: usize, own: usize) -> Result<(), String> {
        if present >= self.clients as usize {
            return Err(format!(
                "this server already serves {} clients, its limit; try later",
                self.clients
            ));
        }
        let each = self.clients.div_ceil(4);
        if own >= each as usize {
            return Err(format!(
                "this server already serves {each} clients from your address; try later"
            ));
        }
        Ok(())
    }

    /// Fails if a source has reached the limit of bytes per hour.
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
    fn a_load_within_the_limits_is_granted_and_more_is_refused_with_a_message() {
        let caps = Caps { seconds: 10, bytes: 5_000_000, streams: 2, clients: 1 };
        assert_eq!(
            (caps.seconds(4000, 6000), caps.streams(2), caps.clients(0, 0), caps.bytes(4_999_999)),
            (Ok(()), Ok(()), Ok(()), Ok(()))
        );
        assert!(caps.seconds(4000, 7000).unwrap_err().contains("10 s of load in an hour"));
        assert!(caps.seconds(1, u64::MAX).is_err());
        assert!(caps.streams(3).unwrap_err().contains("2 streams"));
        assert!(caps.streams(0).is_err());
        assert!(caps.clients(1, 0).unwrap_err().contains("already serves 1 clients, its limit"));
        let caps = Caps { clients: 8, ..caps };
        assert_eq!((caps.clients(7, 1), caps.clients(4, 0)), (Ok(()), Ok(())));
        assert!(caps.clients(2, 2).unwrap_err().contains("2 clients from your address"));
        assert!(caps.bytes(5_000_000).unwrap_err().contains("5 MB"));
    }
}
