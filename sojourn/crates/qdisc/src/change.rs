//! New parameters for a discipline whose queue stands: `tc qdisc change`.
//!
//! Each discipline's own `change` follows the kernel's. What it keeps of its state differs:
//!
//! | | packets | state |
//! |---|---|---|
//! | pfifo, bfifo, pfifo_head_drop | kept, also above the new limit | none |
//! | codel | dropped from the head down to the limit | kept |
//! | fq_codel | dequeued and dropped down to the limits, which spends deficits | kept |
//! | pie | dropped from the head down to the limit | kept |
//! | red | all dropped | the average and the count begin anew; an idle period begins |
//! | cake | kept | kept; the next packet is released when it was due at the former rate |
//!
//! These drops have the cause `Limit`.
//!
//! Source: tc(8); Linux net/sched: fifo_init, codel_change, fq_codel_change, pie_change,
//! __red_change, cake_change and cake_reconfigure.

use crate::fifo::BfifoParams;
use crate::{Body, Cause, Discipline, Fifo, Params, Verdict};
use units::Time;

impl<B: Body> Discipline<B> {
    /// Sets the parameters of a discipline of the same kind and variant, at `now`. Packets that it
    /// drops are pushed to `verdicts`.
    ///
    /// # Panics
    ///
    /// If `params` are of another kind, or of one that can't be changed.
    pub fn change(&mut self, params: &Params, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        match (self, params) {
            (Discipline::Pfifo(fifo), Params::Pfifo(p)) => fifo.change(p),
            (Discipline::Bfifo(fifo), Params::Bfifo(BfifoParams::Bytes(p))) => fifo.change(p),
            (Discipline::PfifoHeadDrop(fifo), Params::PfifoHeadDrop(p)) => fifo.change(p),
            (Discipline::Codel(codel), Params::Codel(p)) => codel.change(p, verdicts),
            (Discipline::FqCodel(queues), Params::FqCodel(p)) => queues.change(p, now, verdicts),
            (Discipline::Pie(pie), Params::Pie(p)) => pie.change(p, now, verdicts),
            (Discipline::Red(red), Params::Red(p)) => red.change(p, now, verdicts),
            (Discipline::Cake(cake), Params::Cake(p)) => cake.change(p),
            (_, params) => panic!("no {} can be changed while its queue stands", params.kind()),
        }
    }
}

/// Drops packets from the head until at most `limit` are left.
pub(crate) fn drop_down_to<B>(limit: u64, queue: &mut Fifo<B>, verdicts: &mut Vec<Verdict<B>>) {
    while u64::from(queue.backlog().packets) > limit
        && let Some(oldest) = queue.pop()
    {
        verdicts.push(Verdict::Dropped(oldest, Cause::Limit));
    }
}
