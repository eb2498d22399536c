//! What each client may ask of a server: connections at once, and bytes an hour.
//!
//! A client is an IPv4 address or an IPv6 network of 64 bits, since a host may choose any address in its own.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a client's bytes are held against it.
const PERIOD: Duration = Duration::from_secs(3600);
/// Accounts are looked through for those that are over when there are this many.
const MANY: usize = 1024;

/// The most that one client, and all together, may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once.
    pub connections: u32,
    /// Connections at once of all clients.
    pub all_connections: u32,
    /// Bytes an hour, both directions together.
    pub bytes: u64,
}

#[derive(Debug)]
struct Account {
    connections: u32,
    opened: Instant,
    bytes: Arc<AtomicU64>,
}

/// Everyone's accounts.
#[derive(Debug)]
pub struct Accounts {
    limits: Limits,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    accounts: HashMap<IpAddr, Account>,
    connections: u32,
}

impl Accounts {
    pub fn new(limits: Limits) -> Arc<Accounts> {
        Arc::new(Accounts { limits, open: Mutex::default() })
    }

    /// Lets a connection in, or not.
    pub fn admit(self: &Arc<Self>, address: IpAddr, now: Instant) -> Option<Admission> {
        let client = client(address);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.connections >= self.limits.all_connections {
            return None;
        }
        if open.accounts.len() >= MANY {
            open.accounts.retain(|_, account| account.connections > 0 || !over(account, now));
        }
        let account = open.accounts.entry(client).or_insert_with(|| Account {
            connections: 0,
            opened: now,
            bytes: Arc::default(),
        });
        if over(account, now) {
            account.opened = now;
            account.bytes.store(0, Ordering::Relaxed);
        }
        if account.connections >= self.limits.connections
            || account.bytes.load(Ordering::Relaxed) >= self.limits.bytes
        {
            return None;
        }
        account.connections += 1;
        let bytes = Arc::clone(&account.bytes);
        open.connections += 1;
        Some(Admission { accounts: Arc::clone(self), client, bytes, limit: self.limits.bytes })
    }
}

fn over(account: &Account, now: Instant) -> bool {
    now.saturating_duration_since(account.opened) >= PERIOD
}

fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// One connection's leave to be there; given back when dropped.
#[derive(Debug)]
pub struct Admission {
    accounts: Arc<Accounts>,
    client: IpAddr,
    bytes: Arc<AtomicU64>,
    limit: u64,
}

impl Admission {
    /// Adds to the client's bytes; whether it still has some left.
    pub fn charge(&self, bytes: usize) -> bool {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed) + (bytes as u64) <= self.limit
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut open = self.accounts.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.connections -= 1;
        if let Some(account) = open.accounts.get_mut(&self.client) {
            account.connections -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { connections: 2, all_connections: 3, bytes: 1000 };

    #[test]
    fn a_client_has_so_many_connections_at_once() {
        let (accounts, now) = (Accounts::new(LIMITS), Instant::now());
        let (one, other): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let first = accounts.admit(one, now).unwrap();
        let _second = accounts.admit(one, now).unwrap();
        assert!(accounts.admit(one, now).is_none());
        let _third = accounts.admit(other, now).unwrap();
        assert!(accounts.admit(other, now).is_none(), "all together have three");
        drop(first);
        assert!(accounts.admit(one, now).is_some());
    }

    #[test]
    fn bytes_are_counted_over_an_hour_and_all_connections() {
        let (accounts, now) = (Accounts::new(LIMITS), Instant::now());
        let one: IpAddr = "2001:db8::1".parse().unwrap();
        let neighbour: IpAddr = "2001:db8::2".parse().unwrap();
        let first = accounts.admit(one, now).unwrap();
        assert!(first.charge(900));
        assert!(!accounts.admit(neighbour, now).unwrap().charge(200), "the same network of 64 bits");
        assert!(accounts.admit(one, now).is_none());
        let later = now + Duration::from_secs(3600);
        assert!(accounts.admit(one, later).unwrap().charge(1000));
    }

    #[test]
    fn accounts_that_are_over_are_forgotten() {
        let (accounts, now) = (Accounts::new(LIMITS), Instant::now());
        for i in 0..MANY as u32 {
            drop(accounts.admit(IpAddr::V4((0x0a00_0000 + i).into()), now).unwrap());
        }
        let later = now + Duration::from_secs(7200);
        drop(accounts.admit("192.0.2.1".parse().unwrap(), later).unwrap());
        assert_eq!(accounts.open.lock().unwrap().accounts.len(), 1);
    }
}
