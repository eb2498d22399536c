//! What server and client ask of HTTP/2 alike: how much is ready to be sent, and threads to send
//! it.

use std::future::poll_fn;

use bytes::Bytes;
use h2::{Reason, SendStream};
use tokio::runtime::{Builder, Runtime};

use crate::{FRAME, Problem, ZEROS};

/// What a response may hold ready in HTTP/2's own buffer: four frames, so that the connection never
/// waits for us.
pub(crate) const READY: usize = 4 * FRAME;
/// What TLS may hold ready: one record.
pub(crate) const SEALED: usize = ZEROS.len();

/// Waits until the stream takes something, at best `most`; how much.
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

/// Threads for sockets. Load keeps them busy for long; they look up every few tasks for whom a time
/// or a packet has come.
pub(crate) fn runtime(name: &str, threads: usize) -> Result<Runtime, Problem> {
    Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name(name)
        .event_interval(7)
        .enable_all()
        .build()
        .map_err(|error| {
            Problem::new(format!("no thread can be started: {error}"), "end other programs")
        })
}

/// One for each core, as far as that helps.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8)
}
