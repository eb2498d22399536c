//! Limits of each client of a server: simultaneous connections, and bytes per hour.
//!
//! A client is a `probe::source`: an IPv4 address, or an IPv6 network of 64 bits. A client at its
//! limit of connections gets another one if one of them is idle: the server closes the one that has
//! been idle longest. This is needed because some clients never close the connections of their
//! probes (goresponsiveness). The owner gets a line about each kind of event of a client once an
//! hour.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Time after which a client's bytes are reset.
const PERIOD: Duration = Duration::from_secs(3600);
/// At this number of accounts, expired ones are removed.
const MANY: usize = 1024;
/// Largest number of unread lines; the oldest are dropped.
const LINES: usize = 1000;

/// The limits of one client, and of all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Simultaneous connections of one client.
    pub connections: u32,
    /// Simultaneous connections of all clients.
    pub all_connections: u32,
    /// Bytes per hour, both directions together.
    pub bytes: u64,
}

#[derive(Debug)]
struct Account {
    visits: Vec<Arc<Visit>>,
    opened: Instant,
    bytes: Arc<AtomicU64>,
    reported: Reported,
}

/// The events of a client that were reported in this hour.
#[derive(Debug, Default)]
struct Reported {
    closed: bool,
    refused: bool,
}

/// An admitted connection.
#[derive(Debug)]
struct Visit {
    number: u64,
    activity: Mutex<Activity>,
    leave: Notify,
}

#[derive(Clone, Copy, Debug, Default)]
struct Activity {
    requests: usize,
    /// Start of the current idle time; `None`: a request is under way, or the TLS handshake is not
    /// complete.
    idle_since: Option<Instant>,
}

/// The accounts of all clients.
#[derive(Debug)]
pub struct Accounts {
    limits: Limits,
    open: Mutex<Open>,
    lines: Mutex<VecDeque<String>>,
}

#[derive(Debug, Default)]
struct Open {
    accounts: HashMap<IpAddr, Account>,
    connections: u32,
    next: u64,
    full_reported: Option<Instant>,
}

impl Accounts {
    pub fn new(limits: Limits) -> Arc<Accounts> {
        Arc::new(Accounts { limits, open: Mutex::default(), lines: Mutex::default() })
    }

    /// Admits a connection, or returns `None`. A client without bytes left is admitted, so that it
    /// can be told the reason.
    pub fn admit(self: &Arc<Self>, address: IpAddr, now: Instant) -> Option<Admission> {
        let client = probe::source(address);
        let Limits { connections, all_connections, .. } = self.limits;
        let mut guard = locked(&self.open);
        let open = &mut *guard;
        if open.accounts.len() >= MANY {
            open.accounts.retain(|_, account| !account.visits.is_empty() || !over(account, now));
        }
        let full = open.connections >= all_connections;
        let full_reported =
            open.full_reported.is_some_and(|then| now.saturating_duration_since(then) < PERIOD);
        let account = open.accounts.entry(client).or_insert_with(|| {
            self.report(format!("{client} connected"));
            Account {
                visits: Vec::new(),
                opened: now,
                bytes: Arc::default(),
                reported: Reported::default(),
            }
        });
        if over(account, now) {
            account.opened = now;
            account.bytes.store(0, Ordering::Relaxed);
            account.reported = Reported::default();
        }
        if account.visits.len() >= connections as usize {
            if !account.evict_longest_idle() {
                if !std::mem::replace(&mut account.reported.refused, true) {
                    self.report(format!(
                        "{client} was refused another connection: it has {connections}, its limit, and all are busy"
                    ));
                }
                return None;
            }
            if !std::mem::replace(&mut account.reported.closed, true) {
                self.report(format!(
                    "{client} has {connections} connections, its limit: each new one closes the longest idle one"
                ));
            }
            open.connections -= 1;
        } else if full {
            if !full_reported {
                open.full_reported = Some(now);
                self.report(format!(
                    "{client} was refused: all clients together have {all_connections} connections, the server's limit"
                ));
            }
            return None;
        }
        let number = open.next;
        open.next += 1;
        open.connections += 1;
        let visit = Arc::new(Visit { number, activity: Mutex::default(), leave: Notify::new() });
        let account = open.accounts.get_mut(&client).expect("it was inserted above");
        account.visits.push(Arc::clone(&visit));
        let bytes = Arc::clone(&account.bytes);
        Some(Admission { accounts: Arc::clone(self), client, visit, bytes })
    }

    /// Returns the lines since the last call.
    pub fn take_lines(&self) -> Vec<String> {
        locked(&self.lines).drain(..).collect()
    }

    fn report(&self, words: String) {
        let mut lines = locked(&self.lines);
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(words);
    }
}

impl Account {
    /// Asks the connection that has been idle longest to leave; returns false if none is idle.
    fn evict_longest_idle(&mut self) -> bool {
        let idle = self.visits.iter().enumerate();
        let idle =
            idle.filter_map(|(place, visit)| Some((locked(&visit.activity).idle_since?, place)));
        let Some((_, place)) = idle.min() else {
            return false;
        };
        self.visits.remove(place).leave.notify_one();
        true
    }
}

fn over(account: &Account, now: Instant) -> bool {
    now.saturating_duration_since(account.opened) >= PERIOD
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The admission of one connection; dropping it frees the place.
#[derive(Debug)]
pub struct Admission {
    accounts: Arc<Accounts>,
    client: IpAddr,
    visit: Arc<Visit>,
    bytes: Arc<AtomicU64>,
}

impl Admission {
    /// Charges bytes to the client; returns whether it has bytes left.
    pub fn charge(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let (before, limit) =
            (self.bytes.fetch_add(bytes, Ordering::Relaxed), self.accounts.limits.bytes);
        if before < limit && before + bytes >= limit {
            self.accounts.report(format!(
                "{} has used up its {} MB of this hour",
                self.client,
                megabytes(limit)
            ));
        }
        before + bytes <= limit
    }

    /// Returns the reason why the client gets no more data; `None`: it has bytes left.
    pub fn spent(&self) -> Option<String> {
        let limit = self.accounts.limits.bytes;
        (self.bytes.load(Ordering::Relaxed) >= limit).then(|| {
            format!(
                "this server allows each client {} MB per hour, and yours are used up; try later",
                megabytes(limit)
            )
        })
    }

    /// The TLS handshake is complete: the connection may be idle from now on.
    pub fn handshake_done(&self, now: Instant) {
        locked(&self.visit.activity).idle_since = Some(now);
    }

    /// A request begins.
    pub fn begin(&self) {
        let mut now = locked(&self.visit.activity);
        *now = Activity { requests: now.requests + 1, idle_since: None };
    }

    /// A request has ended.
    pub fn end(&self, now: Instant) {
        let mut activity = locked(&self.visit.activity);
        activity.requests -= 1;
        if activity.requests == 0 {
            activity.idle_since = Some(now);
        }
    }

    /// Whether no request is under way.
    pub fn is_idle(&self) -> bool {
        locked(&self.visit.activity).requests == 0
    }

    /// Waits until the client's next connection needs this place.
    pub async fn asked_to_leave(&self) {
        self.visit.leave.notified().await;
    }
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut guard = locked(&self.accounts.open);
        let open = &mut *guard;
        let Some(account) = open.accounts.get_mut(&self.client) else {
            return;
        };
        // An evicted connection has freed its place already.
        if let Some(place) =
            account.visits.iter().position(|visit| visit.number == self.visit.number)
        {
            account.visits.swap_remove(place);
            open.connections -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { connections: 2, all_connections: 3, bytes: 1000 };
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_client_has_a_limited_number_of_connections() {
        let (accounts, now) = (Accounts::new(LIMITS), Instant::now());
        let (client, another): (IpAddr, IpAddr) =
            ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let first = accounts.admit(client, now).unwrap();
        let _second = accounts.admit(client, now).unwrap();
        assert!(accounts.admit(client, now).is_none());
        let _third = accounts.admit(another, now).unwrap();
        assert!(accounts.admit(another, now).is_none(), "all together have three");
        drop(first);
        assert!(accounts.admit(client, now).is_some());
    }

    #[test]
    fn at_the_limit_the_connection_that_was_idle_longest_is_closed() {
        let limits = Limits { connections: 3, all_connections: 3, bytes: 1000 };
        let (accounts, now) = (Accounts::new(limits), Instant::now());
        let client: IpAddr = "192.0.2.1".parse().unwrap();
        let all: Vec<Admission> = (0..3).map(|_| accounts.admit(client, now).unwrap()).collect();
        assert!(accounts.admit(client, now).is_none(), "none is through with TLS");
        all.iter().for_each(|each| each.handshake_done(now));
        all.iter().for_each(Admission::begin);
        assert!(accounts.admit(client, now).is_none(), "all are busy");
        all[2].end(now + SECOND);
        all[0].end(now + 2 * SECOND);
        let left = |each: &Admission| {
            locked(&accounts.open).accounts[&client]
                .visits
                .iter()
                .all(|visit| visit.number != each.visit.number)
        };
        let fourth = accounts.admit(client, now + 3 * SECOND).unwrap();
        assert_eq!(all.iter().map(left).collect::<Vec<_>>(), [false, false, true]);
        let fifth = accounts.admit(client, now + 4 * SECOND).unwrap();
        assert_eq!(all.iter().map(left).collect::<Vec<_>>(), [true, false, true]);
        assert!(accounts.admit(client, now + 5 * SECOND).is_none(), "the one that is left is busy");
        assert_eq!(
            accounts.take_lines().len(),
            3,
            "connected, refused, closed: each is reported once"
        );
        // The evicted connections have freed their places already.
        drop(all);
        assert_eq!(locked(&accounts.open).connections, 2);
        drop((fourth, fifth));
        assert_eq!(locked(&accounts.open).connections, 0);
    }

    #[test]
    fn bytes_are_counted_over_an_hour_and_all_connections() {
        let (accounts, now) = (Accounts::new(LIMITS), Instant::now());
        let client: IpAddr = "2001:db8::1".parse().unwrap();
        let neighbour: IpAddr = "2001:db8::2".parse().unwrap();
        let first = accounts.admit(client, now).unwrap();
        assert!(first.charge(900) && first.spent().is_none());
        assert!(
            !accounts.admit(neighbour, now).unwrap().charge(200),
            "the same network of 64 bits"
        );
        assert!(
            accounts.admit(client, now).unwrap().spent().unwrap().contains("0.001 MB per hour")
        );
        let lines = accounts.take_lines();
        assert_eq!(
            lines,
            ["2001:db8:: connected", "2001:db8:: has used up its 0.001 MB of this hour"]
        );
        let later = now + Duration::from_secs(3600);
        assert!(accounts.admit(client, later).unwrap().charge(1000));
    }

    #[test]
    fn expired_accounts_are_removed() {
        let (accounts, now) = (Accounts::new(LIMITS), Instant::now());
        for i in 0..MANY as u32 {
            drop(accounts.admit(IpAddr::V4((0x0a00_0000 + i).into()), now).unwrap());
        }
        let later = now + Duration::from_secs(7200);
        drop(accounts.admit("192.0.2.1".parse().unwrap(), later).unwrap());
        assert_eq!(locked(&accounts.open).accounts.len(), 1);
        assert_eq!(accounts.take_lines().len(), LINES);
    }
}
