//! Our own echo: a datagram that says who it is and when it was sent, and comes back with when it
//! turned round.
//!
//! Layout, little-endian: mark (4 bytes), sequence (4), sent (8), turned (8); from 40 bytes on also
//! token (8), heard (8); zeros up to the size asked for. `turned` and `heard` are 0 on the way out.
//! On the way back `turned` is in the clock of whoever turned it, and `heard` tells which of the 64
//! requests up to this one he got: what is lost on the way out is told from what is lost on the way
//! back. The token is what a server gave its client to know him by: it answers nobody else, and
//! never with more bytes than it got.

/// Bytes of the layout without token and `heard`.
pub const BYTES: usize = 24;
/// Bytes of the whole layout.
pub const WHOLE: usize = 40;
const MARK: [u8; 4] = *b"sjp1";

/// A request or its echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    /// Counts requests.
    pub sequence: u32,
    /// When it was sent, ns, on the sender's clock.
    pub sent: i64,
    /// When it turned round, ns, on the far end's clock; 0: not yet.
    pub turned: i64,
    /// Whose it is; 0: there is nobody to tell it from.
    pub token: u64,
    /// Bit `i`: the request `i` before this one has been heard; 0: not told.
    pub heard: u64,
}

impl Echo {
    /// The datagram, `size` bytes long, at least as long as what it holds.
    pub fn write(&self, size: usize) -> Vec<u8> {
        let whole = self.token != 0 || self.heard != 0;
        let least = if whole { WHOLE } else { BYTES };
        let mut bytes = Vec::with_capacity(size.max(least));
        bytes.extend(MARK);
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(self.sent.to_le_bytes());
        bytes.extend(self.turned.to_le_bytes());
        if whole {
            bytes.extend(self.token.to_le_bytes());
            bytes.extend(self.heard.to_le_bytes());
        }
        bytes.resize(size.max(least), 0);
        bytes
    }

    /// From a datagram; `None` if it is not one of ours.
    pub fn parse(bytes: &[u8]) -> Option<Echo> {
        bytes.get(..BYTES)?.strip_prefix(&MARK)?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let (token, heard) = if bytes.len() < WHOLE { (0, 0) } else { (long(24), long(32)) };
        Some(Echo {
            sequence: word(4),
            sent: long(8) as i64,
            turned: long(16) as i64,
            token,
            heard,
        })
    }
}

/// Which requests of one client have been heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    latest: Option<u32>,
    /// Bit `i`: the request `i` before the latest.
    bits: u64,
}

impl Heard {
    /// A request came; what its echo tells.
    pub fn hear(&mut self, sequence: u32) -> u64 {
        let latest = self.latest.unwrap_or(sequence);
        let ahead = sequence.wrapping_sub(latest);
        if ahead < 1 << 31 {
            self.bits = self.bits.checked_shl(ahead).unwrap_or(0) | 1;
            self.latest = Some(sequence);
            return self.bits;
        }
        // One that was overtaken.
        let behind = latest.wrapping_sub(sequence);
        if behind >= u64::BITS {
            return 1;
        }
        self.bits |= 1 << behind;
        self.bits >> behind
    }

    /// The latest request and those of the 64 up to it, if one has come.
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
    fn a_token_makes_it_longer_and_comes_back() {
        let echo = Echo { sequence: 3, token: u64::MAX, heard: 5, ..Echo::default() };
        assert_eq!(echo.write(0).len(), WHOLE);
        assert_eq!(Echo::parse(&echo.write(0)), Some(echo));
        assert_eq!(Echo::default().write(0).len(), BYTES);
        let cut = Echo::parse(&echo.write(0)[..WHOLE - 1]).unwrap();
        assert_eq!((cut.sequence, cut.token), (3, 0));
    }

    #[test]
    fn what_was_heard_is_told_with_every_echo() {
        let mut heard = Heard::default();
        assert_eq!(heard.latest(), None);
        assert_eq!(heard.hear(u32::MAX), 0b1);
        assert_eq!(heard.hear(0), 0b11);
        // 1 and 2 are missing; 1 comes late.
        assert_eq!(heard.hear(3), 0b11001);
        assert_eq!(heard.hear(1), 0b111);
        assert_eq!(heard.latest(), Some((3, 0b11101)));
        // A gap longer than the window, and one from before it.
        assert_eq!(heard.hear(200), 0b1);
        assert_eq!(heard.hear(100), 0b1);
        assert_eq!(heard.latest(), Some((200, 0b1)));
        assert_eq!(heard.hear(200), 0b1);
    }
}
