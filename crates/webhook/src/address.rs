//! Which addresses may be dialled for somebody else.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public internet: not of this machine, its networks or its provider's metadata,
/// and not a way to write one of those in another form.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// What is not public, as network and length of its prefix.
const NOT_PUBLIC_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Shared by a provider's customers.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, with the metadata services of clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, and what is reserved above it.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|(network, prefix)| {
        let mask = u32::MAX << (32 - prefix);
        address.to_bits() & mask == network.to_bits() & mask
    })
}

/// Only what is routed at all, less what carries an address of version 4 inside, is for documents, or is a tunnel.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let first = address.segments();
    let is_routed = first[0] & 0xe000 == 0x2000;
    let is_special = first[0] == 0x2002
        || (first[0] == 0x2001 && (first[1] == 0xdb8 || first[1] < 0x200))
        || (first[0] == 0x3fff && first[1] < 0x1000);
    is_routed && !is_special
}

/// Addresses that an operator allows although they are not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// `127.0.0.0/8`, or an address alone.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix =
            prefix.map_or(Some(most), |prefix| prefix.parse().ok().filter(|prefix| *prefix <= most))?;
        Some(Self { address, prefix })
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let same = |own: u128, other: u128, bits: u8| {
            let rest = u32::from(bits - self.prefix);
            own.checked_shr(rest) == other.checked_shr(rest)
        };
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => same(own.to_bits().into(), other.to_bits().into(), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => same(own.to_bits(), other.to_bits(), 128),
            _ => false,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_addresses_are_not_public_however_they_are_written() {
        for text in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "100::1",
            "3fff::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in
            ["1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "2606:4700::1111"]
        {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn a_network_has_its_addresses_and_no_others() {
        let loopback = Network::parse("127.0.0.0/8").unwrap();
        assert!(loopback.contains("127.1.2.3".parse().unwrap()));
        assert!(!loopback.contains("128.0.0.1".parse().unwrap()));
        assert!(!loopback.contains("::1".parse().unwrap()));
        assert!(!loopback.contains("::ffff:127.0.0.1".parse().unwrap()));
        assert!(Network::parse("::1").unwrap().contains("::1".parse().unwrap()));
        assert!(Network::parse("fd00::/8").unwrap().contains("fdff::1".parse().unwrap()));
        assert!(Network::parse("0.0.0.0/0").unwrap().contains("9.9.9.9".parse().unwrap()));
        assert!(Network::parse("::/0").unwrap().contains("fe80::1".parse().unwrap()));
        for bad in ["", "127.0.0.1/33", "::1/129", "localhost", "10.0.0.0/-1", "10/8"] {
            assert_eq!(Network::parse(bad), None, "{bad}");
        }
    }
}
