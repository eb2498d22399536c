//! HTTP/2 settings and threads that server and client share.

use std::future::poll_fn;

use bytes::Bytes;
use h2::{Reason, SendStream};
use tokio::runtime::{Builder, Runtime};

use crate::{FRAME, Problem, ZEROS};

/// Size of HTTP/2's send buffer for a response: four frames, so that the connection never waits for
/// us.
pub(crate) const READY: usize = 4 * FRAME;
/// Size of TLS's send buffer: one record.
pub(crate) const SEALED: usize = ZEROS.len();

/// Waits until the stream accepts data, preferably `most` bytes; returns how many.
pub(crate) async fn capacity(
    body: &mut SendStream<Bytes>,
    most: usize,
) -> Result<usize, h2::Error> {
    body.reserve_capacity(most);
    while body.capacity() == 0 {
        poll_fn(|context| body.poll_capacity(context))
            .await
            .unwrap_or(Err(Reason::CANCEL.into()))?;
    }
    Ok(body.capacity())
}

/// Creates a runtime for sockets. Load keeps the threads busy for long, so they check for timers
/// and packets after every few tasks.
pub(crate) fn runtime(name: &str, threads: usize) -> Result<Runtime, Problem> {
    Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name(name)
        .event_interval(7)
        .enable_all()
        .build()
        .map_err(|error| {
            Problem::new(format!("can't start a thread: {error}"), "end other programs")
        })
}

/// Returns a useful number of threads: one per core, between 2 and 8.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8)
}
