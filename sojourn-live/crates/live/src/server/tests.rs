//! Dialogues with a server on loopback, and malformed input on all its sockets.

use std::io::{Read, Write};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use probe::echo::Echo;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Time after which an expected event counts as missing, s.
const PATIENCE_S: u64 = 20;

/// Unsent data that a socket may contain, bytes: the sender's limit and the write that reached it.
const UNSENT: u64 = (128 + 64) * 1024;

/// An owner that stores the server's reports.
#[derive(Default)]
struct Listening(Vec<String>);

impl Owner for Listening {
    fn report(&mut self, words: &str) {
        self.0.push(words.into());
    }

    fn go_on(&mut self) -> bool {
        true
    }
}

/// Serves while `work` runs; returns the server's reports.
fn serving(caps: Caps, work: impl FnOnce(SocketAddr)) -> Vec<String> {
    serving_with("", caps, work)
}

fn serving_with(secret: &str, caps: Caps, work: impl FnOnce(SocketAddr)) -> Vec<String> {
    let server =
        Server::bind(&Options { port: 0, caps, secret: Secret::new(secret), ..Options::default() })
            .unwrap();
    let (address, stopper) = (server.addresses()[0], server.stopper());
    let mut owner = Listening::default();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(false, &mut owner).unwrap());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(address)));
        stopper.stop();
        serving.join().unwrap();
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    owner.0
}

/// A client that exchanges lines with a server.
struct Connection {
    stream: TcpStream,
    lines: Lines,
}

impl Connection {
    fn with(address: SocketAddr) -> Connection {
        Connection::over(TcpStream::connect(address).unwrap())
    }

    /// Connects from another address of this host.
    fn between(own: &str, address: SocketAddr) -> Connection {
        let fd = sys::socket(Kind::Stream, address.ip()).unwrap();
        sys::bind(&fd, SocketAddr::new(own.parse().unwrap(), 0)).unwrap();
        sys::connect(&fd, address).unwrap();
        let mut epoll = Epoll::new().unwrap();
        epoll.add(&fd, Interest::Writable, 0).unwrap();
        let mut happened = Vec::new();
        epoll.wait(Some(1000 * PATIENCE_S as u32), &mut happened).unwrap();
        sys::take_error(&fd).unwrap();
        let stream = TcpStream::from(fd);
        stream.set_nonblocking(false).unwrap();
        Connection::over(stream)
    }

    fn over(stream: TcpStream) -> Connection {
        stream.set_read_timeout(Some(Duration::from_secs(PATIENCE_S))).unwrap();
        Connection { stream, lines: Lines::new(protocol::ANSWER) }
    }

    fn send(&mut self, what: Value) {
        writeln!(self.stream, "{what}").unwrap();
    }

    /// Returns the server's next message; null: connection closed.
    fn receive(&mut self) -> Value {
        loop {
            if let Some(line) = self.lines.next_line().unwrap() {
                return serde_json::from_slice(&line).unwrap();
            }
            if matches!(self.lines.read(&mut self.stream), Ok(0) | Err(_)) {
                return Value::Null;
            }
        }
    }

    /// Sends a message and returns the server's reply.
    fn ask(&mut self, what: Value) -> Value {
        self.send(what);
        self.receive()
    }

    fn hello(address: SocketAddr) -> (Connection, u64) {
        let mut connection = Connection::with(address);
        let welcome = connection.ask(json!({"do": "hello", "version": VERSION}));
        assert_eq!(welcome["say"], "welcome", "{welcome}");
        let token = welcome["token"].as_u64().unwrap();
        (connection, token)
    }
}

fn load(number: u32, direction: &str, streams: u32, milliseconds: u32) -> Value {
    json!({"do": "load", "load": number, "direction": direction, "streams": streams, "milliseconds": milliseconds,
           "congestion": null, "sample_ms": 50})
}

fn refusal(reply: &Value) -> &str {
    assert_eq!(reply["say"], "refused", "{reply}");
    reply["why"].as_str().unwrap()
}

#[test]
fn a_download_ends_by_itself_and_then_its_samples_are_sent() {
    let reports = serving(Caps::default(), |address| {
        let (mut connection, token) = Connection::hello(address);
        assert_eq!(connection.ask(load(1, "down", 2, 300)), json!({"say": "ready", "load": 1}));
        let mut data: Vec<Connection> = (0..2).map(|_| Connection::with(address)).collect();
        for (stream, connection) in data.iter_mut().enumerate() {
            connection.send(json!({"do": "stream", "token": token, "load": 1, "stream": stream}));
        }
        assert_eq!(connection.receive(), json!({"say": "complete", "load": 1}));
        connection.send(json!({"do": "go", "load": 1}));
        let mut received = 0;
        for connection in &mut data {
            let mut room = vec![0; 1 << 16];
            // A reset is the normal end of a load.
            while let Ok(got @ 1..) = connection.stream.read(&mut room) {
                assert!(room[..got].iter().all(|&b| b == 0));
                received += got as u64;
            }
        }
        let mut rows: Vec<crate::load::Row> = Vec::new();
        let over = loop {
            let reply = connection.receive();
            if reply["say"] != "samples" {
                break reply;
            }
            rows.extend(
                serde_json::from_value::<Vec<crate::load::Row>>(reply["rows"].clone()).unwrap(),
            );
        };
        assert_eq!(over, json!({"say": "over", "load": 1, "why": ""}));
        assert!(rows.iter().any(|row| row.stream == 1 && row.cwnd > 0 && row.received == -1));
        let last = (0..2).map(|s| rows.iter().rfind(|row| row.stream == s).unwrap());
        let (acked, sent) = last
            .fold((0, 0), |(acked, sent), row| (acked + row.acked as u64, sent + row.sent as u64));
        // The last samples precede the reset: until then, unsent data in the sockets may still be
        // sent.
        assert!(
            acked > 0 && (acked..=sent + 2 * UNSENT).contains(&received),
            "{acked} {received} {sent}"
        );
        connection.send(json!({"do": "bye"}));
        assert_eq!(connection.receive(), Value::Null);
    });
    assert!(reports[1].contains("session finished"), "{reports:?}");
}

#[test]
fn an_upload_is_counted_from_the_first_byte_behind_the_first_line() {
    serving(Caps::default(), |address| {
        let (mut connection, token) = Connection::hello(address);
        connection.ask(load(7, "up", 1, 5000));
        let mut data = Connection::with(address);
        let mut bytes = protocol::line(&Request::Stream { token, load: 7, stream: 0 });
        bytes.resize(bytes.len() + 100_000, 0);
        data.stream.write_all(&bytes).unwrap();
        assert_eq!(connection.receive()["say"], "complete");
        connection.send(json!({"do": "go", "load": 7}));
        drop(data);
        let mut last = Value::Null;
        loop {
            let reply = connection.receive();
            match reply["say"].as_str() {
                Some("samples") => last = reply["rows"].as_array().unwrap().last().unwrap().clone(),
                _ => {
                    assert_eq!(reply["say"], "over");
                    break;
                }
            }
        }
        assert_eq!(last[2], 100_000);
    });
}

#[test]
fn requests_above_the_limits_are_refused_with_a_message() {
    let caps = Caps { seconds: 10, bytes: 3_000_000, streams: 2, clients: 1 };
    serving(caps, |address| {
        let (mut connection, token) = Connection::hello(address);
        let ask = |streams: u32, seconds: u32, congestion: Value| json!({"do": "ask", "streams": streams, "seconds": seconds, "congestion": congestion});
        assert_eq!(connection.ask(ask(2, 10, Value::Null)), json!({"say": "granted"}));
        assert!(refusal(&connection.ask(ask(3, 10, Value::Null))).contains("2 streams"));
        assert!(refusal(&connection.ask(ask(2, 11, Value::Null))).contains("10 s of load"));
        assert!(
            refusal(&connection.ask(ask(2, 10, "bloat".into())))
                .contains("no congestion control 'bloat'")
        );
        let mut second = Connection::with(address);
        let reply = second.ask(json!({"do": "hello", "version": VERSION}));
        assert!(refusal(&reply).contains("try later"), "{reply}");
        // Seconds count for all loads together.
        assert_eq!(connection.ask(load(1, "down", 1, 9000))["say"], "ready");
        assert!(
            refusal(&connection.ask(load(2, "up", 1, 2000)))
                .contains("9 s are used, 2 s were requested")
        );
        assert!(refusal(&connection.ask(load(1, "up", 1, 500))).contains("load 1 already exists"));
        // The limit of bytes ends a load.
        let mut data = Connection::with(address);
        data.send(json!({"do": "stream", "token": token, "load": 1, "stream": 0}));
        assert_eq!(connection.receive()["say"], "complete");
        connection.send(json!({"do": "go", "load": 1}));
        let mut received = 0;
        let mut room = vec![0; 1 << 16];
        while let Ok(got @ 1..) = data.stream.read(&mut room) {
            received += got;
        }
        let over = loop {
            let reply = connection.receive();
            if reply["say"] == "over" {
                break reply;
            }
        };
        assert!(over["why"].as_str().unwrap().contains("cap of 3 MB"), "{over}");
        assert!(received > 0);
        assert!(refusal(&connection.ask(load(3, "up", 1, 500))).contains("cap of 3 MB"));
    });
}

/// Makes the server send a load of this length; returns its message at the end.
fn download(
    connection: &mut Connection,
    token: u64,
    address: SocketAddr,
    milliseconds: u32,
) -> Value {
    assert_eq!(connection.ask(load(1, "down", 1, milliseconds))["say"], "ready");
    let mut data = Connection::with(address);
    data.send(json!({"do": "stream", "token": token, "load": 1, "stream": 0}));
    assert_eq!(connection.receive()["say"], "complete");
    connection.send(json!({"do": "go", "load": 1}));
    let mut room = vec![0; 1 << 16];
    while let Ok(1..) = data.stream.read(&mut room) {}
    loop {
        let reply = connection.receive();
        if reply["say"] != "samples" {
            return reply;
        }
    }
}

#[test]
fn used_seconds_and_bytes_count_for_the_client_s_next_sessions() {
    let ask = |connection: &mut Connection| {
        connection.ask(json!({"do": "ask", "streams": 1, "seconds": 1, "congestion": null}))
    };
    let caps = Caps { seconds: 1, clients: 8, ..Caps::default() };
    serving(caps, |address| {
        let (mut connection, _) = Connection::hello(address);
        // Granted but unused load time is given back when its client leaves.
        assert_eq!(connection.ask(load(1, "down", 1, 900))["say"], "ready");
        assert!(refusal(&ask(&mut connection)).contains("1 s are used, 1 s were requested"));
        connection.send(json!({"do": "bye"}));
        assert_eq!(connection.receive(), Value::Null);
        let (mut connection, token) = Connection::hello(address);
        assert_eq!(ask(&mut connection)["say"], "granted");
        assert_eq!(
            download(&mut connection, token, address, 200),
            json!({"say": "over", "load": 1, "why": ""})
        );
        drop(connection);
        let (mut connection, _) = Connection::hello(address);
        assert!(refusal(&ask(&mut connection)).contains("1 s of load in an hour"));
    });
    serving(Caps { bytes: 3_000_000, ..Caps::default() }, |address| {
        let (mut connection, token) = Connection::hello(address);
        let over = download(&mut connection, token, address, 9000);
        assert!(over["why"].as_str().unwrap().contains("cap of 3 MB"), "{over}");
        drop(connection);
        let (mut connection, _) = Connection::hello(address);
        assert!(refusal(&ask(&mut connection)).contains("cap of 3 MB for a client in an hour"));
    });
}

#[test]
fn no_source_locks_the_others_out() {
    let reports = serving(Caps { clients: 8, ..Caps::default() }, |address| {
        // Half-open connections of one source make room for those of another, and for its own newer
        // connections.
        let half_open: Vec<Connection> =
            (0..NEWCOMERS + 30).map(|_| Connection::with(address)).collect();
        let hello = json!({"do": "hello", "version": VERSION});
        let mut other = Connection::between("127.0.0.2", address);
        assert_eq!(other.ask(hello.clone())["say"], "welcome");
        let mut held = vec![Connection::hello(address).0, Connection::hello(address).0];
        drop(half_open);
        // A source has two of eight places.
        let reply = Connection::with(address).ask(hello.clone());
        assert!(refusal(&reply).contains("2 clients from your address"), "{reply}");
        held.push(Connection::between("127.0.0.2", address));
        assert_eq!(held[2].ask(hello.clone())["say"], "welcome");
        let reply = Connection::with(address).ask(hello);
        assert!(refusal(&reply).contains("try later"));
    });
    let refused = reports
        .iter()
        .filter(|words| words.contains("127.0.0.1 was refused: this server already serves 2"));
    assert_eq!(refused.count(), 1, "once an hour: {reports:?}");
}

#[test]
fn wrong_requests_about_loads_are_refused() {
    serving(Caps::default(), |address| {
        let (mut connection, token) = Connection::hello(address);
        assert!(refusal(&connection.ask(json!({"do": "go", "load": 9}))).contains("no load 9"));
        assert!(refusal(&connection.ask(json!({"do": "stop", "load": 9}))).contains("no load 9"));
        assert_eq!(connection.ask(load(1, "up", 1, 5000))["say"], "ready");
        assert!(
            refusal(&connection.ask(json!({"do": "go", "load": 1})))
                .contains("waits for 1 of its streams")
        );
        let mut data = Connection::with(address);
        data.send(json!({"do": "stream", "token": token, "load": 1, "stream": 0}));
        assert_eq!(connection.receive()["say"], "complete");
        connection.send(json!({"do": "go", "load": 1}));
        assert!(
            refusal(&connection.ask(json!({"do": "go", "load": 1}))).contains("already running")
        );
    });
}

#[test]
fn a_server_with_a_secret_accepts_only_clients_that_prove_to_have_it() {
    let reports = serving_with("correct horse", Caps::default(), |address| {
        let hello = json!({"do": "hello", "version": VERSION});
        let prove = |word: &str, nonce: &Value| {
            let proof = Secret::new(word).prove(nonce.as_str().unwrap());
            json!({"do": "prove", "proof": proof})
        };
        let mut first = Connection::with(address);
        let challenge = first.ask(hello.clone());
        assert_eq!(challenge["say"], "challenge");
        let mut second = Connection::with(address);
        assert_ne!(second.ask(hello.clone())["nonce"], challenge["nonce"]);
        // A proof for one connection is not valid on another.
        let proof = prove("correct horse", &challenge["nonce"]);
        assert!(refusal(&second.ask(proof.clone())).contains("not this server's secret"));
        assert_eq!(first.ask(proof)["say"], "welcome");
        let mut third = Connection::with(address);
        let nonce = third.ask(hello.clone())["nonce"].clone();
        assert!(
            refusal(&third.ask(prove("battery staple", &nonce)))
                .contains("not this server's secret")
        );
        let mut fourth = Connection::with(address);
        fourth.send(hello.clone());
        assert!(
            refusal(&{
                fourth.receive();
                fourth.ask(hello.clone())
            })
            .contains("challenge")
        );
        let unasked = Connection::with(address).ask(prove("correct horse", &nonce));
        assert!(refusal(&unasked).contains("hello"));
    });
    assert!(reports.iter().all(|words| !words.contains("correct horse")), "{reports:?}");
}

#[test]
fn samples_that_would_fill_the_memory_are_refused() {
    let caps = Caps { seconds: 1_000_000, streams: 1000, ..Caps::default() };
    serving(caps, |address| {
        let (mut connection, _) = Connection::hello(address);
        assert!(
            refusal(&connection.ask(load(1, "up", 1000, 600_000))).contains("sample less often")
        );
        let mut often = load(1, "up", 1, 1000);
        often["sample_ms"] = 1.into();
        assert!(refusal(&connection.ask(often)).contains("interval is 10 ms"));
    });
}

#[test]
fn requests_without_a_valid_token_or_greeting_are_refused() {
    serving(Caps::default(), |address| {
        let (mut connection, token) = Connection::hello(address);
        assert_eq!(connection.ask(load(1, "down", 1, 1000))["say"], "ready");
        for (token, load, stream, why) in [
            (token ^ 1, 1, 0, "no client has this token"),
            (token, 2, 0, "no load 2"),
            (token, 1, 1, "no stream 1"),
        ] {
            let reply = Connection::with(address)
                .ask(json!({"do": "stream", "token": token, "load": load, "stream": stream}));
            assert!(refusal(&reply).contains(why), "{reply}");
        }
        let reply = Connection::with(address).ask(json!({"do": "hello", "version": 99}));
        assert!(refusal(&reply).contains("version 99"), "{reply}");
        let reply = Connection::with(address).ask(json!({"do": "heard"}));
        assert!(refusal(&reply).contains("hello"), "{reply}");

        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(PATIENCE_S))).unwrap();
        let ours = Echo { sequence: 5, token, ..Echo::default() };
        // If the first datagram had a reply, it would arrive first.
        socket.send_to(&Echo { sequence: 4, token: token ^ 1, ..ours }.write(64), address).unwrap();
        socket.send_to(&ours.write(64), address).unwrap();
        let mut room = [0; 100];
        let got = socket.recv(&mut room).unwrap();
        let echo = Echo::parse(&room[..got]).unwrap();
        assert_eq!((got, echo.sequence, echo.received_bits), (64, 5, 1));
        assert_eq!(
            connection.ask(json!({"do": "heard"})),
            json!({"say": "heard", "latest": 5, "bits": 1})
        );
    });
}

#[test]
fn a_client_that_disconnects_frees_its_place_once() {
    let caps = Caps { clients: 1, ..Caps::default() };
    serving(caps, |address| {
        for _ in 0..3 {
            // The place may become free slightly after the connection closes.
            let until = Instant::now() + Duration::from_secs(PATIENCE_S);
            while Connection::with(address).ask(json!({"do": "hello", "version": VERSION}))["say"]
                != "welcome"
            {
                assert!(Instant::now() < until, "the place is never free");
            }
        }
    });
    let server = Server::bind(&Options {
        bind: vec!["127.0.0.1".parse().unwrap()],
        port: 0,
        caps,
        ..Options::default()
    })
    .unwrap();
    let address = server.addresses()[0];
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(true, &mut Listening::default()));
        drop(Connection::hello(address));
        serving.join().unwrap().unwrap();
    });
}

#[test]
fn a_stopped_server_reports_it() {
    let mut connection = None;
    serving(Caps::default(), |address| connection = Some(Connection::hello(address).0));
    let mut connection = connection.unwrap();
    assert_eq!(connection.receive()["say"], "ending");
    assert_eq!(connection.receive(), Value::Null);
}

#[test]
fn a_stop_before_the_server_starts_is_not_lost() {
    let server = Server::bind(&Options { port: 0, ..Options::default() }).unwrap();
    server.stopper().stop();
    let mut owner = Patient(20);
    server.serve(false, &mut owner).unwrap();
    assert_eq!(owner.0, 19, "go_on was called once, and it did not serve");
}

/// An owner that lets the server run for this number of calls.
struct Patient(u32);

impl Owner for Patient {
    fn report(&mut self, _: &str) {}
    fn go_on(&mut self) -> bool {
        self.0 -= 1;
        self.0 > 0
    }
}

#[test]
fn a_connection_that_never_identifies_itself_is_closed() {
    serving(Caps::default(), |address| {
        let mut silent = Connection::with(address);
        silent.stream.write_all(b"{\"do\":").unwrap();
        let began = Instant::now();
        assert_eq!(silent.receive(), Value::Null);
        assert!(began.elapsed() < Duration::from_secs(PATIENCE_S));
        let mut long = Connection::with(address);
        long.stream.write_all(&[b'x'; LINE]).unwrap();
        assert!(refusal(&long.receive()).contains("more than 1024 bytes"));
    });
}

#[test]
fn the_error_names_a_port_in_use() {
    let first = Server::bind(&Options { port: 0, ..Options::default() }).unwrap();
    let options = Options { port: first.addresses()[0].port(), ..Options::default() };
    let Failure { problem, hint } = Server::bind(&options).unwrap_err();
    assert!(problem.contains("127.0.0.1") && hint.contains("uses this port"), "{problem} {hint}");
}

/// Malformed input that resembles messages.
fn utterance() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![
        Just(json!(0)),
        Just(json!(1)),
        Just(json!(-1)),
        Just(json!(1e300)),
        Just(json!("x")),
        Just(json!(u64::MAX))
    ];
    let word = prop_oneof![
        Just("hello"),
        Just("stream"),
        Just("ask"),
        Just("clock"),
        Just("load"),
        Just("go"),
        Just("stop"),
        Just("heard"),
        Just("bloat")
    ];
    let like = (word, proptest::collection::vec(number, 6), any::<bool>()).prop_map(|(word, n, complete)| {
        let message = match word {
            "hello" => json!({"do": word, "version": 1}),
            "stream" => json!({"do": word, "token": n[0], "load": n[1], "stream": n[2]}),
            "ask" => json!({"do": word, "streams": n[0], "seconds": n[1], "congestion": n[2]}),
            "clock" => json!({"do": word, "at": n[0]}),
            "load" => {
                json!({"do": word, "load": n[0], "direction": "up", "streams": n[1], "milliseconds": n[2],
                             "congestion": null, "sample_ms": n[3]})
            }
            "go" | "stop" => json!({"do": word, "load": n[0]}),
            other => json!({"do": other}),
        };
        let mut bytes = message.to_string().into_bytes();
        if complete {
            bytes.push(b'\n');
        }
        bytes
    });
    prop_oneof![4 => like, 1 => proptest::collection::vec(any::<u8>(), 0..2000)]
}

#[test]
fn garbage_at_every_port_neither_breaks_nor_stops_the_server() {
    let caps = Caps { seconds: 5, bytes: 1_000_000, streams: 4, clients: 3 };
    let reports = serving(caps, |address| {
        let config = ProptestConfig { cases: 150, ..ProptestConfig::default() };
        let runner = &mut proptest::test_runner::TestRunner::new(config);
        let parts = (
            any::<bool>(),
            proptest::collection::vec(utterance(), 0..8),
            proptest::collection::vec(any::<u8>(), 0..1500),
        );
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        runner
            .run(&parts, |(hello, utterances, datagram)| {
                let _ = udp.send_to(&datagram, address);
                let mut stream = TcpStream::connect(address).unwrap();
                if hello {
                    let _ = stream.write_all(&protocol::line(&Request::Hello { version: VERSION }));
                }
                for bytes in utterances {
                    // The server may have closed the connection meanwhile.
                    if stream.write_all(&bytes).is_err() {
                        break;
                    }
                }
                Ok(())
            })
            .unwrap();
        // The server still works when the earlier clients have left.
        let until = Instant::now() + Duration::from_secs(PATIENCE_S);
        let mut connection = loop {
            let mut connection = Connection::with(address);
            if connection.ask(json!({"do": "hello", "version": VERSION}))["say"] == "welcome" {
                break connection;
            }
            assert!(Instant::now() < until, "nobody is let in any more");
        };
        assert_eq!(connection.ask(json!({"do": "clock", "at": 3}))["asked"], 3);
        // The limits have not changed.
        assert!(refusal(&connection.ask(load(1, "up", 5, 1))).contains("4 streams"));
    });
    let (mut present, mut most) = (0, 0);
    for words in reports {
        // Refused clients are reported too.
        present += i32::from(words.contains(" connected")) - i32::from(words.contains(" left ("));
        most = most.max(present);
    }
    assert!((1..=3).contains(&most), "{most} clients at once");
}
