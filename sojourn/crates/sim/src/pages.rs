//! Web pages: the connections of a browser, which wait for each other at a page's end.
//!
//! All flows of a `[[flow]]` entry of kind web belong to one browser. Each flow is a connection,
//! which fetches its objects one after another. When all connections have fetched their objects,
//! the page is complete. The next page begins after a pause, but not before the end of the
//! simulator's window of time.

use crate::ends::Transfer;
use crate::host::Host;
use crate::scenario::{FlowSpec, Traffic};
use std::collections::BTreeMap;
use units::Time;

/// A browser.
pub struct Browser {
    /// Its connections, by the numbers of their hosts.
    pub connections: Vec<usize>,
    /// The start of the present page.
    began: Time,
}

impl Browser {
    /// The browsers of a scenario.
    pub fn all(flows: &[FlowSpec]) -> Vec<Browser> {
        let mut browsers: BTreeMap<u32, Browser> = BTreeMap::new();
        for (host, flow) in flows.iter().enumerate() {
            if let Traffic::Transfers { objects: Some(_), .. } = flow.traffic {
                let start = Time(flow.start_ns);
                let browser = browsers
                    .entry(flow.group)
                    .or_insert_with(|| Browser { connections: Vec::new(), began: start });
                browser.connections.push(host);
                browser.began = browser.began.min(start);
            }
        }
        browsers.into_values().collect()
    }

    /// Starts the next page if the present one is complete, and returns its start. All events
    /// before `until` have happened.
    pub fn turn(&mut self, hosts: &mut [Host], until: Time) -> Option<Time> {
        let (mut end, mut bytes) = (Time::ZERO, 0);
        for &host in &self.connections {
            let (over, own) = hosts[host].page_over()?;
            end = end.max(over);
            bytes += own;
        }
        let first = &mut hosts[self.connections[0]];
        first.transfers.push(Transfer { start: self.began, end, bytes });
        let next = (end + first.page_pause()).max(until);
        self.began = next;
        self.connections.iter().for_each(|&host| hosts[host].next_page(next));
        Some(next)
    }
}
