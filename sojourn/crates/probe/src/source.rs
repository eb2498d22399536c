//! The addresses that a server counts as one client: one IPv4 address, or one IPv6 network of 64
//! bits. In such a network a host may choose any address (RFC 4291, section 2.5.1).

use std::net::{IpAddr, Ipv6Addr};

/// Returns the client that an address belongs to. An IPv4-mapped IPv6 address counts as IPv4.
pub fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_of_64_bits_are_one_client() {
        let source = |text: &str| source(text.parse().unwrap());
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:2:3:4"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
        assert_ne!(source("192.0.2.1"), source("192.0.2.2"));
    }
}
