//! Load: connections that carry one transfer each, as fast as the network takes it.
//!
//! A download counts the bytes that arrive. An upload counts those that the other end has
//! acknowledged, by the kernel's word (TCP_INFO), less what HTTP/2 and TLS add to each frame: what
//! is written but still queued somewhere has not been delivered.

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

use crate::asking::{Failure, Made, Way, refused, request};
use crate::document::Document;
use crate::http::capacity;
use crate::unsent::Unsent;
use crate::{OVERHEAD, ZEROS};

/// Which way the load goes, seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To us.
    Download,
    /// From us.
    Upload,
}

impl Direction {
    /// As flows are called after it.
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
    /// Which way.
    pub direction: Direction,
    /// Its number among all load of the measurement.
    pub number: usize,
    /// For self probes.
    pub requests: SendRequest<Bytes>,
    socket: OwnedFd,
    /// Bytes delivered, as far as is known.
    arrived: AtomicU64,
    /// Of an upload: bytes and frames handed to the connection.
    handed: AtomicU64,
    frames: AtomicU64,
    /// What TLS's handshake had had acknowledged when the transfer began.
    acked_before: u64,
}

impl Load {
    /// Application bytes delivered, and what the kernel says of the connection where we are its
    /// sender.
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
        // The share of overhead moves a little with the size of frames; what was delivered stays
        // so.
        self.arrived.fetch_max(payload, Ordering::Relaxed).max(payload)
    }

    /// Connects, tells `begun` of it, and transfers until it is aborted or fails.
    pub async fn carry(
        way: Way,
        document: Arc<Document>,
        direction: Direction,
        number: usize,
        begun: impl FnOnce(Arc<Load>),
    ) -> Failure {
        let made = match way.connect().await {
            Ok(made) => made,
            Err(failure) => return failure,
        };
        let Made { requests, connection, socket, .. } = made;
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
        // The connection and its transfer are one task: with it both end. The connection's error
        // says more.
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

    /// Large objects, one after the other.
    async fn download(&self, document: &Document) -> Failure {
        loop {
            if let Err(failure) = self.download_one(document).await {
                return failure;
            }
        }
    }

    async fn download_one(&self, document: &Document) -> Result<(), Failure> {
        let mut requests = self.requests.clone().ready().await.map_err(Failure::Http)?;
        let asked = requests.send_request(request(Method::GET, &document.large), true);
        let (head, mut body) =
            asked.map_err(Failure::Http)?.0.await.map_err(Failure::Http)?.into_parts();
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

    /// One upload without an end.
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
        // A server that answers before the end, which never comes, refuses.
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
