//! Web pages: the connections of a browser, which wait for each other at a page's end.
//!
//! All flows of a `[[flow]]` entry of kind web are one browser's. Each fetches its objects one after
//! another. When the last object of all is there the page is over; the next one begins after a
//! pause, at the end of the window of time at the earliest.

use crate::host::{Host, Transfer};
use crate::scenario::{FlowSpec, Traffic};
use std::collections::BTreeMap;
use units::Time;

/// A browser.
pub struct Browser {
    /// Its connections, by the numbers of their hosts.
    pub connections: Vec<usize>,
    /// When the present page began.
    began: Time,
}

impl Browser {
    /// Those of a scenario.
    pub fn all(flows: &[FlowSpec]) -> Vec<Browser> {
        let mut found: BTreeMap<u32, Browser> = BTreeMap::new();
        for (host, flow) in flows.iter().enumerate() {
            if let Traffic::Transfers { objects: Some(_), .. } = flow.traffic {
                let start = Time(flow.start_ns);
                let browser = found
                    .entry(flow.group)
                    .or_insert_with(|| Browser { connections: Vec::new(), began: start });
                browser.connections.push(host);
                browser.began = browser.began.min(start);
            }
        }
        found.into_values().collect()
    }

    /// If its page is over, the next one begins: when. All before `until` has happened.
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
