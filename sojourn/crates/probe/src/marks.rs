//! Datagrams that ask what becomes of the DS field (RFC 2474, RFC 3168) on the way there and back.
//!
//! Each is sent with some DS field, and asks for a reply with another. The reply says with which
//! field the request came; with which one it came itself the client's kernel says. They are no
//! echoes (`echo`): a server that does not know them does not answer.
//!
//! Layout, little-endian: mark (4 bytes), number (4), token (8), the field that the reply is to bear
//! (1), that of the request as it came (1), whether this is said (1), zeros up to 32 bytes.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use crate::sys;

/// Bytes of a request, and of its reply.
pub const BYTES: usize = 32;
const MARK: [u8; 4] = *b"sjm1";

/// A request or its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// Counts requests.
    pub number: u32,
    /// Whose it is.
    pub token: u64,
    /// The DS field that the reply is to bear.
    pub wanted: u8,
    /// With which one the request came; `None`: not said.
    pub came: Option<u8>,
}

impl Marked {
    /// The datagram.
    pub fn write(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&MARK);
        bytes[4..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.token.to_le_bytes());
        bytes[16] = self.wanted;
        bytes[17] = self.came.unwrap_or(0);
        bytes[18] = self.came.is_some().into();
        bytes
    }

    /// From a datagram; `None` if it is not one.
    pub fn parse(bytes: &[u8]) -> Option<Marked> {
        bytes.get(..BYTES)?.strip_prefix(&MARK)?;
        Some(Marked {
            number: u32::from_le_bytes(bytes[4..8].try_into().ok()?),
            token: u64::from_le_bytes(bytes[8..16].try_into().ok()?),
            wanted: bytes[16],
            came: (bytes[18] == 1).then_some(bytes[17]),
        })
    }
}

/// Lets a socket hear with which DS field datagrams come (`Datagram::ds`).
pub fn hear(fd: &impl AsRawFd, family: IpAddr) -> io::Result<()> {
    if family.is_ipv4() {
        sys::set_option(fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)
    } else {
        sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

    use super::*;
    use crate::sys::{Batch, Kind};

    #[test]
    fn a_request_is_read_as_it_was_written_and_garbage_is_not() {
        let asked = Marked { number: 7, token: u64::MAX, wanted: 0xb8, came: None };
        assert_eq!(Marked::parse(&asked.write()), Some(asked));
        let told = Marked { came: Some(0), ..asked };
        assert_eq!(Marked::parse(&told.write()), Some(told));
        assert_eq!(Marked::parse(&told.write()[..BYTES - 1]), None);
        assert_eq!(Marked::parse(&crate::echo::Echo::default().write(64)), None);
    }

    #[test]
    fn each_datagram_has_its_own_field_and_the_receiver_hears_it() {
        for here in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let (from, to) = (
                sys::socket(Kind::Datagram, here).unwrap(),
                sys::socket(Kind::Datagram, here).unwrap(),
            );
            // A host may have no IPv6.
            let Ok(()) = sys::bind(&to, SocketAddr::new(here, 0)) else { continue };
            hear(&to, here).unwrap();
            let at = sys::local_address(&to).unwrap();
            let fields = [0x00, 0x01, 0x02, 0x03, 0xb8, 0xff];
            for ds in fields {
                sys::send_marked(&from, &[ds], at, ds).unwrap();
            }
            let mut batch = Batch::new(8);
            assert_eq!(batch.receive(&to).unwrap(), fields.len());
            for datagram in batch.datagrams() {
                assert_eq!(datagram.ds, Some(datagram.bytes[0]));
            }
        }
    }
}
