//! The use of the server by each source in an hour: load time and bytes, over all its sessions.
//!
//! A source is a `probe::source`. All clients of a source share its account, which is reset an hour
//! after it was opened.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;

/// Time after which an account is reset, ns.
const HOUR: i64 = 3_600 * 1_000_000_000;
/// At this number of accounts, expired ones are removed.
const MANY: usize = 1024;

/// One source's use of the server.
#[derive(Debug, Default)]
pub struct Account {
    opened: Cell<i64>,
    milliseconds: Cell<u64>,
    bytes: Cell<u64>,
    refusal_reported: Cell<bool>,
}

impl Account {
    fn renew(&self, now: i64) {
        if now - self.opened.get() >= HOUR {
            self.opened.set(now);
            self.milliseconds.set(0);
            self.bytes.set(0);
            self.refusal_reported.set(false);
        }
    }

    /// Returns the load time that was granted and not given back, ms.
    pub fn milliseconds(&self, now: i64) -> u64 {
        self.renew(now);
        self.milliseconds.get()
    }

    /// Returns the bytes sent and received.
    pub fn bytes(&self, now: i64) -> u64 {
        self.renew(now);
        self.bytes.get()
    }

    /// Charges a load of this length.
    pub fn grant(&self, milliseconds: u64) {
        self.milliseconds.set(self.milliseconds.get() + milliseconds);
    }

    /// Gives back unused load time.
    pub fn give_back(&self, milliseconds: u64) {
        self.milliseconds.set(self.milliseconds.get().saturating_sub(milliseconds));
    }

    /// Charges bytes.
    pub fn charge(&self, bytes: u64) {
        self.bytes.set(self.bytes.get() + bytes);
    }

    /// Whether the server should report a refusal of this source to its owner: once an hour.
    pub fn should_report_refusal(&self) -> bool {
        !self.refusal_reported.replace(true)
    }
}

/// The accounts of all sources.
#[derive(Debug, Default)]
pub struct Accounts(HashMap<IpAddr, Rc<Account>>);

impl Accounts {
    /// Returns the account of an address.
    pub fn of(&mut self, address: IpAddr, now: i64) -> Rc<Account> {
        if self.0.len() >= MANY {
            self.0.retain(|_, account| {
                Rc::strong_count(account) > 1 || now - account.opened.get() < HOUR
            });
        }
        let fresh = || Rc::new(Account { opened: Cell::new(now), ..Account::default() });
        let account = self.0.entry(probe::source(address)).or_insert_with(fresh);
        account.renew(now);
        Rc::clone(account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_one_account_for_an_hour() {
        let mut accounts = Accounts::default();
        let account = accounts.of("2001:db8::1".parse().unwrap(), 5);
        account.grant(9000);
        account.charge(70);
        let neighbour = accounts.of("2001:db8::2".parse().unwrap(), 6);
        assert_eq!((neighbour.milliseconds(7), neighbour.bytes(7)), (9000, 70));
        neighbour.give_back(4000);
        assert_eq!(account.milliseconds(HOUR + 4), 5000);
        assert!(account.should_report_refusal() && !account.should_report_refusal());
        assert_eq!((account.milliseconds(HOUR + 5), account.bytes(HOUR + 5)), (0, 0));
        assert!(account.should_report_refusal());
        assert_eq!(accounts.of("192.0.2.1".parse().unwrap(), 8).bytes(8), 0);
    }

    #[test]
    fn expired_and_unused_accounts_are_removed() {
        let mut accounts = Accounts::default();
        let held = accounts.of("192.0.2.1".parse().unwrap(), 0);
        for i in 1..MANY as u32 {
            accounts.of(IpAddr::V4((0x0a00_0000 + i).into()), 0);
        }
        accounts.of("192.0.2.2".parse().unwrap(), HOUR);
        assert_eq!(accounts.0.len(), 2);
        drop(held);
    }
}
