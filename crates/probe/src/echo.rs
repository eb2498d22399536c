//! Our own echo: a datagram that says who it is and when it was sent, and comes back with when it turned round.
//!
//! Layout, little-endian: mark (4 bytes), sequence (4), sent (8), turned (8); zeros up to the size asked for. `turned` is 0
//! on the way out and in the clock of whoever turned it on the way back.

/// Bytes of the layout.
pub const BYTES: usize = 24;
const MARK: [u8; 4] = *b"sjp1";

/// A request or its echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Counts requests.
    pub sequence: u32,
    /// When it was sent, ns, on the sender's clock.
    pub sent: i64,
    /// When it turned round, ns, on the far end's clock; 0: not yet.
    pub turned: i64,
}

impl Echo {
    /// The datagram, `size` bytes long, at least `BYTES`.
    pub fn write(&self, size: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size.max(BYTES));
        bytes.extend(MARK);
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(self.sent.to_le_bytes());
        bytes.extend(self.turned.to_le_bytes());
        bytes.resize(size.max(BYTES), 0);
        bytes
    }

    /// From a datagram; `None` if it is not one of ours.
    pub fn parse(bytes: &[u8]) -> Option<Echo> {
        let body = bytes.get(..BYTES)?.strip_prefix(&MARK)?;
        let long = |at: usize| i64::from_le_bytes(std::array::from_fn(|i| body[at + i]));
        let sequence = u32::from_le_bytes(std::array::from_fn(|i| body[i]));
        Some(Echo { sequence, sent: long(4), turned: long(12) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_read_as_it_was_written_and_garbage_is_not() {
        let echo = Echo { sequence: 70_000, sent: -5, turned: 1 << 60 };
        let bytes = echo.write(100);
        assert_eq!(bytes.len(), 100);
        assert_eq!(Echo::parse(&bytes), Some(echo));
        assert_eq!(Echo::parse(&bytes[..BYTES - 1]), None);
        assert_eq!(Echo::parse(&bytes[1..]), None);
    }
}
