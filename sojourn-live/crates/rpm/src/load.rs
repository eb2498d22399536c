//! Load: connections with one transfer each, as fast as the network allows.
//!
//! A download counts the bytes that arrive. An upload counts the bytes that the other end has
//! acknowledged (TCP_INFO), minus the overhead of HTTP/2 and TLS per frame. Bytes that are written
//! but still queued somewhere are not delivered.

use std::future::{Future, poll_fn};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Instant;

use bytes::Bytes;
use h2::Reason;
use h2::client::SendRequest;
use http::{Method, StatusCode};
use probe::tcp_info::TcpInfo;
use serde::{Deserialize, Serialize};

use crate::document::Document;
use crate::http::capacity;
use crate::requests::{Established, Failure, Target, refused, request};
use crate::unsent::Unsent;
use crate::{OVERHEAD, ZEROS};

/// Direction of the load, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the server.
    Download,
    /// To the server.
    Upload,
}

impl Direction {
    /// Returns the word that begins the flows' names.
    pub fn word(self) -> &'static str {
        match self {
            Direction::Download => "download",
            Direction::Upload => "upload",
        }
    }
}

/// One load-generating connection.
#[derive(Debug)]
pub struct Load {
    /// Direction of the data.
    pub direction: Direction,
    /// Its number among all connections of the measurement.
    pub number: usize,
    /// Sends the self probes.
    pub requests: SendRequest<Bytes>,
    socket: OwnedFd,
    /// Bytes known to be delivered.
    arrived: AtomicU64,
    /// Bytes and frames of an upload that were passed to the connection.
    handed: AtomicU64,
    frames: AtomicU64,
    /// Bytes acknowledged before the transfer began (the TLS handshake).
    acked_before: u64,
}

impl Load {
    /// Returns the delivered application bytes, and the kernel's state of the connection if this
    /// end sends.
    pub fn delivered(&self) -> (u64, Option<TcpInfo>) {
        match self.direction {
            Direction::Download => (self.arrived.load(Ordering::Relaxed), None),
            Direction::Upload => match TcpInfo::of(&self.socket) {
                Ok(info) => (self.uploaded(&info), Some(info)),
                Err(_) => (self.arrived.load(Ordering::Relaxed), None),
            },
        }
    }

    fn uploaded(&self, info: &TcpInfo) -> u64 {
        let acked = u128::from(info.bytes_acked.saturating_sub(self.acked_before));
        let handed = u128::from(self.handed.load(Ordering::Relaxed));
        let on_wire = handed + u128::from(self.frames.load(Ordering::Relaxed)) * OVERHEAD as u128;
        let payload = (acked * handed / on_wire.max(1)).min(handed) as u64;
        // The share of the overhead varies slightly with the size of frames; delivered bytes must
        // not decrease.
        self.arrived.fetch_max(payload, Ordering::Relaxed).max(payload)
    }

    /// Connects, passes the connection to `begun`, and transfers data until it fails or is aborted.
    pub async fn carry(
        target: Target,
        document: Arc<Document>,
        direction: Direction,
        number: usize,
        begun: impl FnOnce(Arc<Load>),
    ) -> Failure {
        let established = match target.connect().await {
            Ok(established) => established,
            Err(failure) => return failure,
        };
        let Established { requests, connection, socket, .. } = established;
        let acked_before = TcpInfo::of(&socket).map_or(0, |info| info.bytes_acked);
        let handle = socket.try_clone();
        let (arrived, handed, frames) = Default::default();
        let load = Arc::new(Load {
            direction,
            number,
            requests,
            socket,
            arrived,
            handed,
            frames,
            acked_before,
        });
        let unsent = match handle {
            Ok(handle) => Unsent::new(handle, Instant::now()),
            Err(error) => return Failure::Tcp(error),
        };
        begun(Arc::clone(&load));
        let transfer = async {
            match direction {
                Direction::Download => load.download(&document).await,
                Direction::Upload => load.upload(&document, unsent).await,
            }
        };
        // The connection and its transfer are one task and end together. The connection's error is
        // more specific.
        let (mut connection, mut transfer) = (pin!(connection), pin!(transfer));
        poll_fn(|context| {
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                let closed = || Failure::Http(Reason::NO_ERROR.into());
                return Poll::Ready(ended.err().map_or_else(closed, Failure::Http));
            }
            transfer.as_mut().poll(context)
        })
        .await
    }

    /// Downloads large objects, one after the other.
    async fn download(&self, document: &Document) -> Failure {
        loop {
            if let Err(failure) = self.download_one(document).await {
                return failure;
            }
        }
    }

    async fn download_one(&self, document: &Document) -> Result<(), Failure> {
        let mut requests = self.requests.clone().ready().await.map_err(Failure::Http)?;
        let response = requests.send_request(request(Method::GET, &document.large), true);
        let (head, mut body) =
            response.map_err(Failure::Http)?.0.await.map_err(Failure::Http)?.into_parts();
        if head.status != StatusCode::OK {
            return Err(refused(head.status, body).await);
        }
        while let Some(data) = body.data().await {
            let bytes = data.map_err(Failure::Http)?.len();
            self.arrived.fetch_add(bytes as u64, Ordering::Relaxed);
            let _ = body.flow_control().release_capacity(bytes);
        }
        Ok(())
    }

    /// Does one upload without end.
    async fn upload(&self, document: &Document, unsent: Unsent) -> Failure {
        let requests = self.requests.clone().ready().await;
        let mut post = request(Method::POST, &document.upload);
        post.headers_mut().insert(
            http::header::CONTENT_TYPE,
            http::HeaderValue::from_static("application/octet-stream"),
        );
        let sent = requests.and_then(|mut requests| requests.send_request(post, false));
        let (response, mut body) = match sent {
            Ok(sent) => sent,
            Err(error) => return Failure::Http(error),
        };
        let fill = async {
            let mut unsent = unsent;
            loop {
                let most = unsent.frame();
                let bytes = match capacity(&mut body, most).await {
                    Ok(bytes) => bytes.min(most),
                    Err(error) => return Failure::Http(error),
                };
                if let Err(error) = body.send_data(Bytes::from_static(&ZEROS[..bytes]), false) {
                    return Failure::Http(error);
                }
                self.handed.fetch_add(bytes as u64, Ordering::Relaxed);
                self.frames.fetch_add(1, Ordering::Relaxed);
                unsent.handed(bytes, Instant::now());
            }
        };
        // The upload never ends, so an answer of the server is a refusal.
        let (mut response, mut fill) = (pin!(response), pin!(fill));
        let answer = poll_fn(|context| match response.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(answer.map_err(Failure::Http)),
            Poll::Pending => fill.as_mut().poll(context).map(Err),
        });
        match answer.await {
            Ok(answer) => {
                let (head, body) = answer.into_parts();
                refused(head.status, body).await
            }
            Err(failure) => failure,
        }
    }
}
