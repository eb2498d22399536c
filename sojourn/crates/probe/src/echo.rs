//! Our own echo: a datagram with its send time, which the server returns with its own receive time
//! added.
//!
//! Layout, little-endian: mark (4 bytes), sequence (4), sent (8), turned (8). From 40 bytes on also
//! token (8) and received bits (8). Zeros fill the rest up to the requested size. `turned` and
//! `received_bits` are 0 in a request. In an echo, `turned` is in the server's clock.
//! `received_bits` lists which of the last 64 requests, up to this one, reached the server: this
//! separates loss in one direction from loss in the other. The server gives each client a token. It
//! answers only requests with a known token, and never with more bytes than the request had.

/// Bytes of the layout without token and `received_bits`.
pub const BYTES: usize = 24;
/// Bytes of the layout with token and `received_bits`.
pub const FULL_BYTES: usize = 40;
const MARK: [u8; 4] = *b"sjp1";

/// A request or its echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    /// Number of the request.
    pub sequence: u32,
    /// Send time, ns, on the sender's clock.
    pub sent: i64,
    /// Time at which the server returned it, ns, on the server's clock; 0 in a request.
    pub turned: i64,
    /// The client's token; 0 if the server needs none.
    pub token: u64,
    /// Bit `i`: the request `i` before this one reached the server; 0: unknown.
    pub received_bits: u64,
}

impl Echo {
    /// Returns the datagram, `size` bytes long, or longer if the fields need more.
    pub fn write(&self, size: usize) -> Vec<u8> {
        let full = self.token != 0 || self.received_bits != 0;
        let least = if full { FULL_BYTES } else { BYTES };
        let mut bytes = Vec::with_capacity(size.max(least));
        bytes.extend(MARK);
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(self.sent.to_le_bytes());
        bytes.extend(self.turned.to_le_bytes());
        if full {
            bytes.extend(self.token.to_le_bytes());
            bytes.extend(self.received_bits.to_le_bytes());
        }
        bytes.resize(size.max(least), 0);
        bytes
    }

    /// Parses a datagram; `None` if it is not an echo of ours.
    pub fn parse(bytes: &[u8]) -> Option<Echo> {
        bytes.get(..BYTES)?.strip_prefix(&MARK)?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let (token, received_bits) =
            if bytes.len() < FULL_BYTES { (0, 0) } else { (long(24), long(32)) };
        Some(Echo {
            sequence: word(4),
            sent: long(8) as i64,
            turned: long(16) as i64,
            token,
            received_bits,
        })
    }
}

/// The requests of one client that reached the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedRequests {
    latest: Option<u32>,
    /// Bit `i`: the request `i` before the latest.
    bits: u64,
}

impl ReceivedRequests {
    /// Records a request, and returns the bits for its echo.
    pub fn record(&mut self, sequence: u32) -> u64 {
        let latest = self.latest.unwrap_or(sequence);
        let ahead = sequence.wrapping_sub(latest);
        if ahead < 1 << 31 {
            self.bits = self.bits.checked_shl(ahead).unwrap_or(0) | 1;
            self.latest = Some(sequence);
            return self.bits;
        }
        // The request was reordered: a later one came before it.
        let behind = latest.wrapping_sub(sequence);
        if behind >= u64::BITS {
            return 1;
        }
        self.bits |= 1 << behind;
        self.bits >> behind
    }

    /// Returns the latest request and the bits of the last 64 up to it; `None` before the first.
    pub fn latest(&self) -> Option<(u32, u64)> {
        self.latest.map(|latest| (latest, self.bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_read_as_it_was_written_and_garbage_is_not() {
        let echo = Echo { sequence: 70_000, sent: -5, turned: 1 << 60, ..Echo::default() };
        let bytes = echo.write(100);
        assert_eq!(bytes.len(), 100);
        assert_eq!(Echo::parse(&bytes), Some(echo));
        assert_eq!(Echo::parse(&bytes[..BYTES - 1]), None);
        assert_eq!(Echo::parse(&bytes[1..]), None);
    }

    #[test]
    fn an_echo_with_a_token_is_longer_and_returns_the_token() {
        let echo = Echo { sequence: 3, token: u64::MAX, received_bits: 5, ..Echo::default() };
        assert_eq!(echo.write(0).len(), FULL_BYTES);
        assert_eq!(Echo::parse(&echo.write(0)), Some(echo));
        assert_eq!(Echo::default().write(0).len(), BYTES);
        let cut = Echo::parse(&echo.write(0)[..FULL_BYTES - 1]).unwrap();
        assert_eq!((cut.sequence, cut.token), (3, 0));
    }

    #[test]
    fn every_echo_reports_the_received_requests() {
        let mut received = ReceivedRequests::default();
        assert_eq!(received.latest(), None);
        assert_eq!(received.record(u32::MAX), 0b1);
        assert_eq!(received.record(0), 0b11);
        // 1 and 2 are missing; 1 arrives late.
        assert_eq!(received.record(3), 0b11001);
        assert_eq!(received.record(1), 0b111);
        assert_eq!(received.latest(), Some((3, 0b11101)));
        // A gap longer than the window, then a request from before the window.
        assert_eq!(received.record(200), 0b1);
        assert_eq!(received.record(100), 0b1);
        assert_eq!(received.latest(), Some((200, 0b1)));
        assert_eq!(received.record(200), 0b1);
    }
}
