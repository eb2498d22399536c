//! What each client may ask of a server: connections at once, and bytes an hour.
//!
//! A client is a `probe::source`: an IPv4 address, or an IPv6 network of 64 bits. A client that has
//! as many connections as it may gets another one if one of them is idle: of these the one that has
//! been idle longest is told to go. Some clients never close the connections of their probes
//! (goresponsiveness). What a client's owner should know of is written down once an hour.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// How long a client's bytes are held against it.
const PERIOD: Duration = Duration::from_secs(3600);
/// Accounts are looked through for those that are over when there are this many.
const MANY: usize = 1024;
/// Lines that nobody has read yet, at most: the oldest go.
const LINES: usize = 1000;

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
    visits: Vec<Arc<Visit>>,
    opened: Instant,
    bytes: Arc<AtomicU64>,
    told: Told,
}

/// What has been written down of a client in this hour.
#[derive(Debug, Default)]
struct Told {
    closed: bool,
    refused: bool,
}

/// A connection that was let in.
#[derive(Debug)]
struct Visit {
    number: u64,
    activity: Mutex<Activity>,
    leave: Notify,
}

#[derive(Clone, Copy, Debug, Default)]
struct Activity {
    requests: usize,
    /// Since when it has had no request under way; `None`: it has one, or it is not through with
    /// TLS.
    idle_since: Option<Instant>,
}

/// Everyone's accounts.
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
    told_full: Option<Instant>,
}

impl Accounts {
    pub fn new(limits: Limits) -> Arc<Accounts> {
        Arc::new(Accounts { limits, open: Mutex::default(), lines: Mutex::default() })
    }

    /// Lets a connection in, or not. A client without bytes left is let in, to be told so.
    pub fn admit(self: &Arc<Self>, address: IpAddr, now: Instant) -> Option<Admission> {
        let client = probe::source(address);
        let Limits { connections, all_connections, .. } = self.limits;
        let mut guard = locked(&self.open);
        let open = &mut *guard;
        if open.accounts.len() >= MANY {
            open.accounts.retain(|_, account| !account.visits.is_empty() || !over(account, now));
        }
        let full = open.connections >= all_connections;
        let told_full =
            open.told_full.is_some_and(|then| now.saturating_duration_since(then) < PERIOD);
        let account = open.accounts.entry(client).or_insert_with(|| {
            self.tell(format!("{client} has come"));
            Account {
                visits: Vec::new(),
                opened: now,
                bytes: Arc::default(),
                told: Told::default(),
            }
        });
        if over(account, now) {
            account.opened = now;
            account.bytes.store(0, Ordering::Relaxed);
            account.told = Told::default();
        }
        if account.visits.len() >= connections as usize {
            if !account.send_longest_idle_away() {
                if !std::mem::replace(&mut account.told.refused, true) {
                    self.tell(format!(
                        "{client} is refused more connections: it has {connections} at once, all busy"
                    ));
                }
                return None;
            }
            if !std::mem::replace(&mut account.told.closed, true) {
                self.tell(format!(
                    "{client} has {connections} connections at once, as many as it may: the longest idle is closed for each new one"
                ));
            }
            open.connections -= 1;
        } else if full {
            if !told_full {
                open.told_full = Some(now);
                self.tell(format!(
                    "{client} is refused: all clients together have {all_connections} connections at once, as many as they may"
                ));
            }
            return None;
        }
        let number = open.next;
        open.next += 1;
        open.connections += 1;
        let visit = Arc::new(Visit { number, activity: Mutex::default(), leave: Notify::new() });
        let account = open.accounts.get_mut(&client).expect("it was found or made above");
        account.visits.push(Arc::clone(&visit));
        let bytes = Arc::clone(&account.bytes);
        Some(Admission { accounts: Arc::clone(self), client, visit, bytes })
    }

    /// What was written down since the last call.
    pub fn take_lines(&self) -> Vec<String> {
        locked(&self.lines).drain(..).collect()
    }

    fn tell(&self, words: String) {
        let mut lines = locked(&self.lines);
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(words);
    }
}

impl Account {
    /// Whether there was one to be sent away.
    fn send_longest_idle_away(&mut self) -> bool {
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

/// One connection's leave to be there; given back when dropped.
#[derive(Debug)]
pub struct Admission {
    accounts: Arc<Accounts>,
    client: IpAddr,
    visit: Arc<Visit>,
    bytes: Arc<AtomicU64>,
}

impl Admission {
    /// Adds to the client's bytes; whether it still has some left.
    pub fn charge(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let (before, limit) =
            (self.bytes.fetch_add(bytes, Ordering::Relaxed), self.accounts.limits.bytes);
        if before < limit && before + bytes >= limit {
            self.accounts.tell(format!(
                "{} has used up its {} MB of this hour",
                self.client,
                megabytes(limit)
            ));
        }
        before + bytes <= limit
    }

    /// Why nothing more is sent or taken, in words for the client; `None`: it has bytes left.
    pub fn spent(&self) -> Option<String> {
        let limit = self.accounts.limits.bytes;
        (self.bytes.load(Ordering::Relaxed) >= limit).then(|| {
            format!(
                "this server moves {} MB in an hour for a client, and yours are used up; try later",
                megabytes(limit)
            )
        })
    }

    /// It is through with TLS: from now on it may be idle.
    pub fn greeted(&self, now: Instant) {
        locked(&self.visit.activity).idle_since = Some(now);
    }

    /// A request begins.
    pub fn begin(&self) {
        let mut now = locked(&self.visit.activity);
        *now = Activity { requests: now.requests + 1, idle_since: None };
    }

    /// A request is over.
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

    /// Waits until its place is wanted for another connection of the client.
    pub async fn told_to_leave(&self) {
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
        // One that was sent away has given its place back already.
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
    fn a_client_has_so_many_connections_at_once() {
        let (accounts, now) = (Accounts::new(LIMITS), Instant::now());
        let (one, other): (IpAddr, IpAddr) =
            ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let first = accounts.admit(one, now).unwrap();
        let _second = accounts.admit(one, now).unwrap();
        assert!(accounts.admit(one, now).is_none());
        let _third = accounts.admit(other, now).unwrap();
        assert!(accounts.admit(other, now).is_none(), "all together have three");
        drop(first);
        assert!(accounts.admit(one, now).is_some());
    }

    #[test]
    fn at_the_limit_the_connection_that_was_idle_longest_gives_its_place() {
        let limits = Limits { connections: 3, all_connections: 3, bytes: 1000 };
        let (accounts, now) = (Accounts::new(limits), Instant::now());
        let one: IpAddr = "192.0.2.1".parse().unwrap();
        let all: Vec<Admission> = (0..3).map(|_| accounts.admit(one, now).unwrap()).collect();
        assert!(accounts.admit(one, now).is_none(), "none is through with TLS");
        all.iter().for_each(|each| each.greeted(now));
        all.iter().for_each(Admission::begin);
        assert!(accounts.admit(one, now).is_none(), "all are busy");
        all[2].end(now + SECOND);
        all[0].end(now + 2 * SECOND);
        let left = |each: &Admission| {
            locked(&accounts.open).accounts[&one]
                .visits
                .iter()
                .all(|visit| visit.number != each.visit.number)
        };
        let fourth = accounts.admit(one, now + 3 * SECOND).unwrap();
        assert_eq!(all.iter().map(left).collect::<Vec<_>>(), [false, false, true]);
        let fifth = accounts.admit(one, now + 4 * SECOND).unwrap();
        assert_eq!(all.iter().map(left).collect::<Vec<_>>(), [true, false, true]);
        assert!(accounts.admit(one, now + 5 * SECOND).is_none(), "the one that is left is busy");
        assert_eq!(accounts.take_lines().len(), 3, "come, refused, closed: each is said once");
        // Those sent away have given their places back already.
        drop(all);
        assert_eq!(locked(&accounts.open).connections, 2);
        drop((fourth, fifth));
        assert_eq!(locked(&accounts.open).connections, 0);
    }

    #[test]
    fn bytes_are_counted_over_an_hour_and_all_connections() {
        let (accounts, now) = (Accounts::new(LIMITS), Instant::now());
        let one: IpAddr = "2001:db8::1".parse().unwrap();
        let neighbour: IpAddr = "2001:db8::2".parse().unwrap();
        let first = accounts.admit(one, now).unwrap();
        assert!(first.charge(900) && first.spent().is_none());
        assert!(
            !accounts.admit(neighbour, now).unwrap().charge(200),
            "the same network of 64 bits"
        );
        assert!(accounts.admit(one, now).unwrap().spent().unwrap().contains("0.001 MB in an hour"));
        let lines = accounts.take_lines();
        assert_eq!(
            lines,
            ["2001:db8:: has come", "2001:db8:: has used up its 0.001 MB of this hour"]
        );
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
        assert_eq!(locked(&accounts.open).accounts.len(), 1);
        assert_eq!(accounts.take_lines().len(), LINES);
    }
}
