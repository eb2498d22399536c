//! `replay`: recorded arrivals through one link, without the GIL.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use scenario::realised::simulated_link;
use sim::{Action, Arrival, Decision, DsField, ReplayHint};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use units::Time;

use crate::own::OwnCode;
use crate::realised::Link;
use crate::run::{give_code, thrown};
use arrays::{Integers, array};

/// The decision on each arrival; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (link, seed, t_ns, flow, bytes, ds, after = None, verdict = None, hash = None, truesize = None, place = None, source = None, destination = None, unlikely = None, own = None))]
#[allow(clippy::too_many_arguments)]
pub fn replay<'py>(
    py: Python<'py>,
    link: &Link,
    seed: u64,
    t_ns: Integers,
    flow: Integers,
    bytes: Integers,
    ds: Integers,
    after: Option<Integers>,
    verdict: Option<Integers>,
    hash: Option<Integers>,
    truesize: Option<Integers>,
    place: Option<Integers>,
    source: Option<Integers>,
    destination: Option<Integers>,
    unlikely: Option<Vec<u64>>,
    own: Option<HashMap<String, Py<OwnCode>>>,
) -> PyResult<Bound<'py, PyDict>> {
    let words = link.spec.qdisc.text();
    let Some(mut link) = simulated_link(&link.spec) else {
        return Err(PyValueError::new_err("only Linux has the link's discipline"));
    };
    let arrivals = arrivals(
        [&t_ns, &flow, &bytes, &ds],
        after.as_deref(),
        [&verdict, &hash, &truesize, &place, &source, &destination].map(|column| column.as_deref()),
    )?;
    give_code(&mut link.qdisc, &words, &own.unwrap_or_default());
    let unlikely = unlikely.unwrap_or_default();
    let outcome = py.detach(|| {
        catch_unwind(AssertUnwindSafe(|| sim::replay(&link, seed, &arrivals, &unlikely)))
    });
    let replayed = outcome.map_err(thrown)?;
    let decisions = columns(py, &replayed.decisions)?;
    let unseen: Vec<i64> = replayed.unseen.iter().map(|sent| *sent as i64).collect();
    decisions.set_item("unseen", array(py, &unseen)?)?;
    Ok(decisions)
}

fn arrivals(
    [times, flows, bytes, ds]: [&[i64]; 4],
    after: Option<&[i64]>,
    [verdict, hash, truesize, place, source, destination]: [Option<&[i64]>; 6],
) -> PyResult<Vec<Arrival>> {
    let refuse = |what: &str| PyValueError::new_err(format!("arrivals: {what}"));
    let many = times.len();
    let given = [after, verdict, hash, truesize, place, source, destination]
        .map(|column| column.map_or(many, <[i64]>::len));
    if [flows.len(), bytes.len(), ds.len()].iter().chain(&given).any(|n| *n != many) {
        return Err(refuse("the columns are not equally long"));
    }
    if times.first().is_some_and(|t| *t < 0) || times.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(refuse("the times are not in order, from 0"));
    }
    (0..many)
        .map(|i| {
            let number = |value: i64, what| u32::try_from(value).map_err(|_| refuse(what));
            let known = |column: Option<&[i64]>| column.and_then(|all| u32::try_from(all[i]).ok());
            Ok(Arrival {
                at: Time(times[i] as u64),
                flow: number(flows[i], "a flow is not a number of 32 bits")?,
                bytes: number(bytes[i], "a size is not a number of 32 bits")?,
                ds: DsField(u8::try_from(ds[i]).map_err(|_| refuse("a DS field is a byte"))?),
                after: after.and_then(|after| u64::try_from(after[i]).ok()),
                replay_hint: verdict.map(|verdict| replay_hint(verdict[i])),
                hash: known(hash),
                truesize: known(truesize),
                hosts: known(source).zip(known(destination)).map(|(from, to)| [from, to]),
                // A packet that is still queued is last.
                place: place.map(|place| u64::try_from(place[i]).unwrap_or(u64::MAX)),
            })
        })
        .collect()
}

/// A verdict of `engine/recording`.
fn replay_hint(verdict: i64) -> ReplayHint {
    match verdict {
        1 => ReplayHint::Marked,
        2 | 3 => ReplayHint::Dropped,
        _ => ReplayHint::Passed,
    }
}

fn columns<'py>(py: Python<'py>, decisions: &[Decision]) -> PyResult<Bound<'py, PyDict>> {
    let number =
        |of: &dyn Fn(&Decision) -> i64| array(py, &decisions.iter().map(of).collect::<Vec<_>>());
    let real =
        |of: &dyn Fn(&Decision) -> f64| array(py, &decisions.iter().map(of).collect::<Vec<_>>());
    let action = |d: &Decision, how| {
        d.action.filter(|action| action.0 == how).map_or(-1, |(_, cause)| cause as i64)
    };
    let all = PyDict::new(py);
    all.set_item("t_ns", number(&|d| if d.at == Time::NEVER { -1 } else { d.at.0 as i64 })?)?;
    all.set_item("order", number(&|d| if d.at == Time::NEVER { -1 } else { d.order as i64 })?)?;
    all.set_item("refused", number(&|d| i64::from(d.refused))?)?;
    all.set_item("dropped", number(&|d| action(d, Action::Dropped))?)?;
    all.set_item("marked", number(&|d| action(d, Action::Marked))?)?;
    all.set_item("backlog_packets", number(&|d| i64::from(d.backlog.packets))?)?;
    all.set_item("backlog_bytes", number(&|d| d.backlog.bytes as i64)?)?;
    all.set_item("state", real(&|d| d.state)?)?;
    all.set_item("chance", real(&|d| d.chance)?)?;
    all.set_item("drew", number(&|d| d.drew.map_or(-1, i64::from))?)?;
    Ok(all)
}
