//! Connections and timed requests for one byte, on a new connection (foreign probe) or on one that
//! carries load (self probe).
//!
//! A foreign probe gives three times: the TCP handshake, the TLS handshake per round trip, and the
//! request. A self probe gives the time of the request. A request's time ends with the last byte of
//! its response. Requests have no priority.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::{Connection, SendRequest};
use h2::{Reason, RecvStream};
use http::{Method, Request, StatusCode, Uri};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{
    self, AlertDescription, HandshakeKind, InvalidMessage, ProtocolVersion,
};

use crate::Problem;
use crate::brief::Brief;
use crate::document::Url;
use crate::http::{READY, SEALED};
use crate::tls::H2;

/// Receive window, larger than any path needs; the data is read at once.
const WINDOW: u32 = 1 << 30;
/// Limit for a small object or a document.
const SMALL_BYTES: usize = 64 * 1024;
/// Limit for a server's sentence.
const MOST_WORDS: usize = 300;

/// Address and TLS settings of one server.
#[derive(Clone)]
pub struct Target {
    pub address: SocketAddr,
    pub name: ServerName<'static>,
    pub tls: TlsConnector,
    /// Time to wait for an answer.
    pub patience: Duration,
}

/// An HTTP/2 connection, and the times of its handshakes.
pub struct Established {
    pub requests: SendRequest<Bytes>,
    pub connection: Connection<Brief<TlsStream<TcpStream>>, Bytes>,
    /// A handle to its socket, for TCP_INFO.
    pub socket: OwnedFd,
    pub tcp: Duration,
    /// Time of the whole TLS handshake, and its round trips.
    pub tls: Duration,
    pub round_trips: u32,
}

/// Reason for the failure of a connection or a request.
#[derive(Debug)]
pub enum Failure {
    Tcp(std::io::Error),
    Tls(std::io::Error),
    NoHttp2,
    Http(h2::Error),
    Status(StatusCode),
    /// The server's byte limit for this client is reached; contains the server's reason.
    Spent(String),
    TooLarge,
    Silent(Duration),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Tcp(error) | Failure::Tls(error) => write!(f, "{error}"),
            Failure::NoHttp2 => write!(f, "no HTTP/2"),
            Failure::Http(error) if error.reason() == Some(Reason::ENHANCE_YOUR_CALM) => {
                write!(f, "the server's limit for this client is reached")
            }
            Failure::Http(error) => write!(f, "{error}"),
            Failure::Status(status) => write!(f, "the server answers {status}"),
            Failure::Spent(why) => write!(f, "{why}"),
            Failure::TooLarge => write!(f, "its answer is larger than {SMALL_BYTES} bytes"),
            Failure::Silent(after) => write!(f, "no answer in {:.3} s", after.as_secs_f64()),
        }
    }
}

impl Failure {
    /// Explains the failure to the user who gave the URL.
    pub fn problem(&self, url: &Url) -> Problem {
        let place = url.authority();
        let another = "give the URL of a responsiveness server: `sojourn rpm serve` starts one";
        match self {
            Failure::Tcp(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                Problem::new(
                    format!("{place} refuses connections to port {}", url.port),
                    "check host and port; `sojourn rpm serve` starts a server and prints its URL",
                )
            }
            Failure::Tcp(error) => Problem::new(
                format!("{place} can't be reached: {error}"),
                "check the host and the network",
            ),
            Failure::Tls(error) => tls_problem(&place, error),
            Failure::NoHttp2 => Problem::new(format!("{place} does not speak HTTP/2"), another),
            Failure::Http(error) => Problem::new(
                format!("{place} ended the connection during HTTP/2: {error}"),
                another,
            ),
            Failure::Status(status) => Problem::new(format!("{url} answers {status}"), another),
            Failure::Spent(why) => Problem::new(
                format!("{place} refused: {why}"),
                "wait, or measure against another server",
            ),
            Failure::TooLarge => Problem::new(format!("{url}: {self}"), another),
            Failure::Silent(_) => Problem::new(
                format!("{place}: {self}"),
                "check the host and the network: a firewall may drop the packets",
            ),
        }
    }
}

fn tls_problem(place: &str, error: &std::io::Error) -> Problem {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(why)) => Problem::new(
            format!("the certificate of {place} is not trusted: {}", words(why)),
            "give it or its issuer's with --ca FILE, or accept any with --insecure",
        ),
        Some(
            rustls::Error::NoApplicationProtocol
            | rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol),
        ) => Problem::new(
            format!("{place} speaks TLS, but not HTTP/2"),
            "give the URL of a responsiveness server: `sojourn rpm serve` starts one",
        ),
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => Problem::new(
            format!("{place} does not speak TLS"),
            "give the URL of a responsiveness server: `sojourn rpm serve` starts one",
        ),
        _ => Problem::new(
            format!("no TLS connection with {place}: {error}"),
            "give the URL of a responsiveness server: `sojourn rpm serve` starts one",
        ),
    }
}

fn words(why: &rustls::CertificateError) -> String {
    match why {
        rustls::CertificateError::UnknownIssuer => "no trusted issuer has signed it".into(),
        rustls::CertificateError::NotValidForName
        | rustls::CertificateError::NotValidForNameContext { .. } => {
            "it is for another name".into()
        }
        rustls::CertificateError::Expired | rustls::CertificateError::ExpiredContext { .. } => {
            "it has expired".into()
        }
        other => other.to_string(),
    }
}

impl Target {
    /// Opens a connection. The caller must poll `connection` to drive it.
    pub async fn connect(&self) -> Result<Established, Failure> {
        timeout(self.patience, self.connect_patiently())
            .await
            .unwrap_or(Err(Failure::Silent(self.patience)))
    }

    async fn connect_patiently(&self) -> Result<Established, Failure> {
        let begun = Instant::now();
        let socket = TcpStream::connect(self.address).await.map_err(Failure::Tcp)?;
        let connected = Instant::now();
        socket.set_nodelay(true).map_err(Failure::Tcp)?;
        let handle = socket.as_fd().try_clone_to_owned().map_err(Failure::Tcp)?;
        let mut stream = self.tls.connect(self.name.clone(), socket).await.map_err(Failure::Tls)?;
        let secured = Instant::now();
        let (_, tls) = stream.get_mut();
        if tls.alpn_protocol() != Some(H2) {
            return Err(Failure::NoHttp2);
        }
        // TLS 1.3 takes one round trip, and one more if the server requests another key. TLS 1.2
        // takes two.
        let again = tls.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest);
        let older = tls.protocol_version() == Some(ProtocolVersion::TLSv1_2);
        let round_trips = 1 + u32::from(again || older);
        tls.set_buffer_limit(Some(SEALED));
        let mut http = h2::client::Builder::new();
        http.initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .enable_push(false)
            .max_send_buffer_size(READY);
        let (requests, connection) = http.handshake(Brief(stream)).await.map_err(Failure::Http)?;
        let (tcp, tls) = (connected - begun, secured - connected);
        Ok(Established { requests, connection, socket: handle, tcp, tls, round_trips })
    }
}

/// Requests a small object on this connection and returns its content.
pub async fn get(
    requests: SendRequest<Bytes>,
    url: &Arc<Url>,
    patience: Duration,
) -> Result<Vec<u8>, Failure> {
    timeout(patience, get_patiently(requests, url)).await.unwrap_or(Err(Failure::Silent(patience)))
}

async fn get_patiently(requests: SendRequest<Bytes>, url: &Arc<Url>) -> Result<Vec<u8>, Failure> {
    let mut requests = requests.ready().await.map_err(Failure::Http)?;
    let (response, _) =
        requests.send_request(request(Method::GET, url), true).map_err(Failure::Http)?;
    let (head, body) = response.await.map_err(Failure::Http)?.into_parts();
    match head.status {
        StatusCode::OK => read(body).await,
        status => Err(refused(status, body).await),
    }
}

/// Explains a response without success; a short body in plain text is the reason.
pub async fn refused(status: StatusCode, body: RecvStream) -> Failure {
    let words = match status {
        StatusCode::TOO_MANY_REQUESTS => {
            read(body).await.ok().and_then(|words| String::from_utf8(words).ok())
        }
        _ => None,
    };
    let plain = |words: &String| {
        !words.is_empty() && words.len() < MOST_WORDS && !words.contains(char::is_control)
    };
    words.filter(plain).map_or(Failure::Status(status), Failure::Spent)
}

async fn read(mut body: RecvStream) -> Result<Vec<u8>, Failure> {
    let mut content = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.map_err(Failure::Http)?;
        if content.len() + data.len() > SMALL_BYTES {
            return Err(Failure::TooLarge);
        }
        content.extend_from_slice(&data);
        let _ = body.flow_control().release_capacity(data.len());
    }
    Ok(content)
}

/// Returns a request with our usual headers; no compression.
pub fn request(method: Method, url: &Url) -> Request<()> {
    // The text of a parsed URL is valid: only the host's brackets and the default port were
    // removed.
    let uri: Uri = url.to_string().parse().expect("a URL that was read before");
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.insert(http::header::ACCEPT_ENCODING, http::HeaderValue::from_static("identity"));
    headers.insert(http::header::USER_AGENT, http::HeaderValue::from_static(AGENT));
    request
}

const AGENT: &str = concat!("sojourn/", env!("CARGO_PKG_VERSION"));

/// The times of a foreign probe.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    pub tcp: Duration,
    /// Per round trip of its handshake.
    pub tls: Duration,
    pub http: Duration,
    /// Time at which the request was sent.
    pub requested: Instant,
}

/// Does a foreign probe.
pub async fn foreign(target: &Target, small: &Arc<Url>) -> Result<Foreign, Failure> {
    let Established { requests, connection, tcp, tls, round_trips, .. } = target.connect().await?;
    // The connection ends with its last request, or after the timeout.
    tokio::spawn(timeout(2 * target.patience, connection));
    let requested = Instant::now();
    get(requests, small, target.patience).await?;
    Ok(Foreign { tcp, tls: tls / round_trips, http: requested.elapsed(), requested })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
    use tokio_rustls::rustls::{ServerConfig, SupportedProtocolVersion, crypto, version};

    /// Returns the round trips of a handshake with a server of this TLS version.
    async fn round_trips(version: &'static SupportedProtocolVersion) -> u32 {
        let established = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(established.signing_key.serialize_der()).into();
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
                .with_protocol_versions(&[version])
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![established.cert.der().clone()], key)
                .unwrap();
        config.alpn_protocols = vec![H2.to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let server = tokio::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            acceptor.accept(socket).await.unwrap()
        });
        let tls = TlsConnector::from(Arc::new(crate::tls::Trust::Anyone.client().unwrap()));
        let target =
            Target { address, name: address.ip().into(), tls, patience: Duration::from_secs(10) };
        let established = target.connect().await.unwrap();
        server.await.unwrap();
        established.round_trips
    }

    #[test]
    fn a_handshake_of_tls_1_3_takes_one_round_trip_and_of_1_2_two() {
        let runtime = crate::http::runtime("test", 1).unwrap();
        assert_eq!(runtime.block_on(round_trips(&version::TLS13)), 1);
        assert_eq!(runtime.block_on(round_trips(&version::TLS12)), 2);
    }
}
