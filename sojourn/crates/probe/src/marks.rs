//! Datagrams that measure what a path does to the DS field (RFC 2474, RFC 3168), in both
//! directions.
//!
//! Each request has some DS field, and names the DS field that its reply is to have. The reply
//! contains the DS field with which the request arrived. The client's kernel reports the DS field
//! of the reply. The format differs from that of `echo`: a server that does not know it does not
//! answer.
//!
//! Layout, little-endian: mark (4 bytes), number (4), token (8), DS field for the reply (1), DS
//! field of the request on arrival (1), whether that field is known (1), zeros up to 32 bytes.

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
    /// Number of the request.
    pub number: u32,
    /// The client's token.
    pub token: u64,
    /// s|x|x|
    pub reply_ds: u8,
    /// The DS field of the request on arrival; `None` if unknown.
    pub request_ds: Option<u8>,
}

impl Marked {
    /// The datagram.
    pub fn write(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&MARK);
        bytes[4..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.token.to_le_bytes());
        bytes[16] = self.reply_ds;
        bytes[17] = self.request_ds.unwrap_or(0);
        bytes[18] = self.request_ds.is_some().into();
        bytes
    }

    /// Parses a datagram; `None` if it is not in this format.
    pub fn parse(bytes: &[u8]) -> Option<Marked> {
        bytes.get(..BYTES)?.strip_prefix(&MARK)?;
        Some(Marked {
            number: u32::from_le_bytes(bytes[4..8].try_into().ok()?),
            token: u64::from_le_bytes(bytes[8..16].try_into().ok()?),
            reply_ds: bytes[16],
            request_ds: (bytes[18] == 1).then_some(bytes[17]),
        })
    }
}

/// Makes the kernel report the DS field of each datagram that a socket receives (`Datagram::ds`).
pub fn report_ds(fd: &impl AsRawFd, family: IpAddr) -> io::Result<()> {
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
        let request = Marked { number: 7, token: u64::MAX, reply_ds: 0xb8, request_ds: None };
        assert_eq!(Marked::parse(&request.write()), Some(request));
        let reply = Marked { request_ds: Some(0), ..request };
        assert_eq!(Marked::parse(&reply.write()), Some(reply));
        assert_eq!(Marked::parse(&reply.write()[..BYTES - 1]), None);
        assert_eq!(Marked::parse(&crate::echo::Echo::default().write(64)), None);
    }

    #[test]
    fn the_receiver_gets_the_field_of_each_datagram() {
        for here in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let (from, to) = (
                sys::socket(Kind::Datagram, here).unwrap(),
                sys::socket(Kind::Datagram, here).unwrap(),
            );
            // A host may have no IPv6.
            let Ok(()) = sys::bind(&to, SocketAddr::new(here, 0)) else { continue };
            report_ds(&to, here).unwrap();
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
