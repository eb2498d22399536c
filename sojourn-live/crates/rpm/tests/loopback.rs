//! Server and client over loopback: the content of a measurement, and the behaviour of each end
//! when the other misbehaves. Intervals are short; no test depends on the speed of this machine.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rpm::algorithm::{Confidence, Parameters, Stage};
use rpm::client::{Outcome, PROBES, Plan, Reached, Stopped, measure};
use rpm::load::Direction;
use rpm::server::{Options, Server};
use rpm::tls::Trust;
use units::Rng;

fn options() -> Options {
    Options {
        at: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
        names: Vec::new(),
        identity: None,
        seconds: 60,
        bytes: 1 << 40,
        connections: 256,
    }
}

fn plan(server: &Server) -> Plan {
    plan_of(server.addresses()[0])
}

fn plan_of(address: SocketAddr) -> Plan {
    Plan {
        url: format!("https://{address}"),
        trust: Trust::Anyone,
        parameters: Parameters {
            mad: 2,
            id_ns: 200_000_000,
            sdt: 1e-9,
            stage_intervals: 2,
            ..Parameters::default()
        },
        stages: vec![vec![Direction::Download], vec![Direction::Upload]],
        idle_probes: 2,
        seed: 1,
        patience_ns: 10_000_000_000,
    }
}

fn quietly(plan: &Plan) -> Result<Outcome, rpm::Problem> {
    measure(plan, &mut |_| true, &mut |_| true)
}

fn complete(plan: &Plan) -> Outcome {
    let outcome = quietly(plan).unwrap();
    assert_eq!(outcome.stopped, None);
    outcome
}

#[test]
fn a_measurement_has_every_kind_of_sample_in_each_direction() {
    let server = Server::start(&options()).unwrap();
    let outcome = complete(&plan(&server));
    assert_eq!(outcome.address, server.addresses()[0]);
    assert_eq!(outcome.flows[0], "download-1");
    assert!(outcome.flows.contains(&"upload-1".to_string()));
    assert_eq!(outcome.loaded.len(), 2);
    for loaded in &outcome.loaded {
        // Nothing reaches a tolerance of 1e-9: each stage takes its two intervals.
        assert_eq!(loaded.intervals.len(), 4);
        assert_eq!(loaded.goodput_confidence, Confidence::Medium);
        assert_eq!(loaded.responsiveness_confidence, Confidence::Medium);
        // One connection at the start and one more in each interval; the latest may still be in its
        // handshake.
        for (i, interval) in loaded.intervals.iter().enumerate() {
            assert!(interval.connections >= 1 && interval.connections <= i + 1);
            assert!(interval.goodput_bps[0] > 0.0 && interval.moving_average_bps[0] > 0.0);
        }
        assert!(loaded.intervals[3].responsiveness.unwrap() > 0.0);
        assert_eq!(loaded.window_start_ns, loaded.intervals[1].t_ns);
        assert_eq!(loaded.window_end_ns, loaded.intervals[3].t_ns);
        let inside = |t| (loaded.start_ns..=loaded.end_ns).contains(&t);
        for (kind, name) in PROBES.iter().enumerate() {
            let mut here = outcome.probes.iter().filter(|probe| inside(probe.t_ns));
            assert!(here.any(|probe| probe.kind == kind), "no {name} in {:?}", loaded.directions);
        }
    }
    let idle = outcome.probes.iter().filter(|probe| probe.t_ns < outcome.idle_end_ns);
    assert_eq!(idle.count(), 2 * 3);
    assert!(outcome.probes.is_sorted_by_key(|probe| probe.t_ns));
    assert!(outcome.probes.iter().all(|probe| probe.rtt_ns.is_some_and(|rtt| rtt > 0)));
}

#[test]
fn goodput_is_what_the_server_counts() {
    let server = Server::start(&options()).unwrap();
    let outcome = complete(&plan(&server));
    let delivered = |name: &str| -> u64 {
        let flows = outcome.flows.iter().enumerate().filter(|(_, flow)| flow.starts_with(name));
        flows
            .map(|(flow, _)| outcome.samples.iter().rfind(|sample| sample.flow == flow))
            .map(|last| last.map_or(0, |sample| sample.delivered_bytes))
            .sum()
    };
    let served = server.served();
    // The server may have passed on bytes that had not arrived at the last sample; no other bytes
    // can arrive.
    assert!(delivered("download") > 0 && delivered("download") <= served.sent_bytes);
    // The kernel acknowledges bytes that the server has not read yet: at most the buffers of its
    // socket and of HTTP/2.
    let slack = 64 << 20;
    assert!(delivered("upload") > 0 && delivered("upload") <= served.received_bytes + slack);
    let senders = outcome.samples.iter().filter(|sample| sample.sender.is_some());
    assert!(senders.clone().count() > 0);
    assert!(senders.into_iter().all(|sample| outcome.flows[sample.flow].starts_with("upload")));
}

#[test]
fn both_directions_at_once_are_one_test() {
    let server = Server::start(&options()).unwrap();
    let both = vec![vec![Direction::Download, Direction::Upload]];
    let outcome = complete(&Plan { stages: both, ..plan(&server) });
    assert_eq!(outcome.loaded.len(), 1);
    for interval in &outcome.loaded[0].intervals {
        assert_eq!(interval.goodput_bps.len(), 2);
        assert!(interval.goodput_bps.iter().all(|goodput| *goodput > 0.0));
    }
}

#[test]
fn a_wide_tolerance_is_met_and_reported_as_met() {
    let server = Server::start(&options()).unwrap();
    let mut plan = plan(&server);
    plan.parameters.sdt = 1e6;
    plan.stages.truncate(1);
    let outcome = complete(&plan);
    assert_eq!(outcome.loaded[0].intervals.len(), 4);
    assert_eq!(outcome.loaded[0].goodput_confidence, Confidence::High);
    assert_eq!(outcome.loaded[0].responsiveness_confidence, Confidence::High);
}

#[test]
fn probes_are_sent_at_most_at_the_allowed_rate() {
    let server = Server::start(&options()).unwrap();
    let mut plan = plan(&server);
    (plan.parameters.mps, plan.parameters.mnp, plan.idle_probes) = (20.0, 2, 0);
    plan.stages.truncate(1);
    let outcome = complete(&plan);
    let seconds = (outcome.loaded[0].end_ns - outcome.loaded[0].start_ns) as f64 / 1e9;
    let sent = outcome
        .probes
        .iter()
        .filter(|probe| matches!(PROBES[probe.kind], "self" | "foreign-tcp"))
        .count() as f64;
    assert!(sent >= 2.0 && sent <= 20.0 * seconds + 2.0, "{sent} probes in {seconds} s");
    assert!(outcome.loaded[0].intervals.iter().all(|interval| interval.connections <= 2));
    assert_eq!(outcome.flows, ["download-1", "download-2"]);
}

#[test]
fn a_certificate_that_is_named_is_trusted_and_another_is_not() {
    let (server, other) = (Server::start(&options()).unwrap(), Server::start(&options()).unwrap());
    let file = std::env::temp_dir().join(format!("rpm-certificate-{}.pem", std::process::id()));
    std::fs::write(&file, server.certificate().unwrap()).unwrap();
    let mut plan = Plan { trust: Trust::File(file.clone()), stages: Vec::new(), ..plan(&server) };
    let by_address = quietly(&plan);
    plan.url = format!("localhost:{}", server.addresses()[0].port());
    let by_name = quietly(&plan);
    plan.url = format!("https://{}", other.addresses()[0]);
    let refused = quietly(&plan).unwrap_err();
    std::fs::remove_file(&file).unwrap();
    assert!(by_address.is_ok() && by_name.is_ok(), "{by_address:?} {by_name:?}");
    assert!(refused.problem.contains("is not trusted"), "{refused}");
    assert!(refused.hint.contains("--ca") && refused.hint.contains("--insecure"));
    let missing = quietly(&plan).unwrap_err();
    assert!(missing.problem.contains("no certificate can be read"), "{missing}");
}

#[test]
fn a_server_uses_the_given_certificate_and_a_client_that_names_it_trusts_it() {
    // As `openssl req -x509` creates them: a CA certificate in form, and for another name.
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(["elsewhere.example".to_string()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = parameters.self_signed(&key).unwrap();
    let folder = std::env::temp_dir().join(format!("rpm-identity-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (chain, secret) = (folder.join("chain.pem"), folder.join("key.pem"));
    std::fs::write(&chain, certificate.pem()).unwrap();
    std::fs::write(&secret, key.serialize_pem()).unwrap();
    let server =
        Server::start(&Options { identity: Some((chain.clone(), secret.clone())), ..options() })
            .unwrap();
    assert_eq!(server.certificate(), None);
    let mut plan = Plan { trust: Trust::File(chain.clone()), stages: Vec::new(), ..plan(&server) };
    let trusted = quietly(&plan);
    plan.trust = Trust::System;
    let unknown = quietly(&plan).unwrap_err();
    // A key that does not match the certificate.
    std::fs::write(&secret, rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let apart =
        Server::start(&Options { identity: Some((chain, secret)), ..options() }).unwrap_err();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(trusted.is_ok(), "{trusted:?}");
    assert!(unknown.problem.contains("trust"), "{unknown}");
    assert!(apart.problem.contains("do not match"), "{apart}");
}

#[test]
fn another_kind_of_server_is_reported() {
    let problem = |address: SocketAddr| {
        let plan = Plan { patience_ns: 300_000_000, ..plan_of(address) };
        quietly(&plan).unwrap_err().problem
    };
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let refusing = free.local_addr().unwrap();
    drop(free);
    assert!(problem(refusing).contains("refuses connections"), "{}", problem(refusing));

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(problem(silent.local_addr().unwrap()).contains("no answer in 0.300 s"));

    let plain = answering(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(problem(plain).contains("does not speak TLS"), "{}", problem(plain));

    let closing = answering(b"");
    assert!(problem(closing).contains("no TLS connection"), "{}", problem(closing));

    let bad = Plan { url: "http://127.0.0.1:1/".into(), ..plan_of(refusing) };
    assert!(quietly(&bad).unwrap_err().problem.contains("is http, not https"));
    let nobody = Plan { url: "https://nobody.invalid/".into(), ..plan_of(refusing) };
    assert!(quietly(&nobody).unwrap_err().problem.contains("can't be found"));

    let server = Server::start(&options()).unwrap();
    let elsewhere =
        Plan { url: format!("https://{}/small", server.addresses()[0]), ..plan(&server) };
    assert!(
        quietly(&elsewhere)
            .unwrap_err()
            .problem
            .contains("does not describe a responsiveness server")
    );
    let nowhere =
        Plan { url: format!("https://{}/nothing", server.addresses()[0]), ..plan(&server) };
    assert!(quietly(&nowhere).unwrap_err().problem.contains("answers 404"));
}

/// A server that reads a little, sends these bytes and closes each connection.
fn answering(words: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 64 * 1024]);
            let _ = stream.write_all(words);
        }
    });
    address
}

#[test]
fn if_the_server_vanishes_the_samples_so_far_are_kept() {
    let mut server = Some(Server::start(&options()).unwrap());
    let mut plan = plan(server.as_ref().unwrap());
    (plan.parameters.stage_intervals, plan.patience_ns) = (1000, 2_000_000_000);
    let outcome = measure(
        &plan,
        &mut |reached: &Reached| {
            if reached.intervals == 2 {
                server = None;
            }
            true
        },
        &mut |_| true,
    )
    .unwrap();
    let Some(Stopped::Failed(problem)) = &outcome.stopped else { panic!("{:?}", outcome.stopped) };
    assert!(problem.problem.contains("ended download-"), "{problem}");
    assert_eq!(outcome.loaded.len(), 1);
    assert!(outcome.loaded[0].intervals.len() >= 2);
    assert!(outcome.probes.iter().any(|probe| probe.rtt_ns.is_some()));
}

#[test]
fn a_cancelled_measurement_keeps_its_samples() {
    let server = Server::start(&options()).unwrap();
    let mut plan = plan(&server);
    plan.parameters.stage_intervals = 1000;
    let mut stages = Vec::new();
    let outcome = measure(
        &plan,
        &mut |reached: &Reached| {
            stages.push((reached.phase, reached.stage));
            reached.intervals < 3
        },
        &mut |_| true,
    )
    .unwrap();
    assert_eq!(outcome.stopped, Some(Stopped::Interrupted));
    assert_eq!(outcome.loaded[0].intervals.len(), 3);
    assert_eq!(stages[0].0, 0);
    assert!(stages.contains(&(1, Stage::Goodput)));
    let none = measure(&plan, &mut |_| false, &mut |_| true).unwrap();
    assert_eq!((none.stopped, none.loaded.len()), (Some(Stopped::Interrupted), 0));
}

#[test]
fn a_request_for_too_many_bytes_is_refused() {
    let server = Server::start(&Options { bytes: 1 << 20, ..options() }).unwrap();
    let outcome = quietly(&plan(&server)).unwrap();
    let Some(Stopped::Failed(problem)) = &outcome.stopped else { panic!("it went on") };
    assert!(problem.problem.contains("the server's limit for this client is reached"), "{problem}");
    assert!(server.served().sent_bytes <= 1 << 20);
    // Each later request gets status 429 with a sentence, and the server reports it to its owner.
    let refused = quietly(&plan(&server)).unwrap_err();
    assert!(refused.problem.contains("allows each client 1.048576 MB per hour"), "{refused}");
    assert_eq!(server.served().refused, 0);
    let lines = server.take_lines();
    assert_eq!(
        lines,
        ["127.0.0.1 connected", "127.0.0.1 has used up its 1.048576 MB of this hour"]
    );

    let server = Server::start(&Options { bytes: 1 << 20, ..options() }).unwrap();
    let upload = vec![vec![Direction::Upload]];
    let outcome = quietly(&Plan { stages: upload, ..plan(&server) }).unwrap();
    let Some(Stopped::Failed(problem)) = &outcome.stopped else { panic!("it went on") };
    assert!(problem.problem.contains("MB per hour"), "{problem}");

    let narrow = Server::start(&Options { connections: 2, ..options() }).unwrap();
    let held: Vec<TcpStream> =
        (0..2).map(|_| TcpStream::connect(narrow.addresses()[0]).unwrap()).collect();
    until(|| narrow.served().connections == 2);
    assert!(quietly(&plan(&narrow)).is_err());
    drop(held);
    until(|| narrow.served().connections == 0);
    assert!(quietly(&Plan { stages: Vec::new(), ..plan(&narrow) }).is_ok());
}

/// Opens a connection every few ms, requests the small object on it and never closes it, as
/// goresponsiveness does for its probes. Returns the numbers of connections opened, and of those
/// that the server has closed.
async fn hoard(address: SocketAddr, over: Arc<AtomicBool>) -> (usize, usize) {
    let tls = tokio_rustls::TlsConnector::from(Arc::new(Trust::Anyone.client().unwrap()));
    let mut held = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let stream = tls.connect(address.ip().into(), socket).await.unwrap();
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        let connection = tokio::spawn(connection);
        let small = http::Request::get(format!("https://{address}/small")).body(()).unwrap();
        let mut requests = requests.ready().await.unwrap();
        let answer = requests.send_request(small, true).unwrap().0.await.unwrap();
        assert_eq!(answer.status(), 200);
        held.push((requests, connection));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (held.len(), held.iter().filter(|(_, connection)| connection.is_finished()).count())
}

#[test]
fn a_client_that_never_closes_its_probes_connections_is_measured_both_ways() {
    let server = Server::start(&Options { connections: 20, ..options() }).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let hoarder = runtime.spawn(hoard(server.addresses()[0], Arc::clone(&over)));
    // All its places are taken before the measurement begins.
    until(|| server.served().accepted > 30);
    let outcome = complete(&plan(&server));
    over.store(true, Ordering::Relaxed);
    let (opened, closed) = runtime.block_on(hoarder).unwrap();
    for loaded in &outcome.loaded {
        assert!(
            loaded.intervals.iter().all(|interval| interval.goodput_bps[0] > 0.0),
            "{loaded:?}"
        );
    }
    assert!(server.served().received_bytes > 0);
    assert_eq!(server.served().refused, 0);
    // Some connections may be closing.
    assert!(opened > 30 && closed > 0, "{opened} made, {closed} closed");
    let lines = server.take_lines();
    assert!(lines[1].contains("20 connections, its limit") && lines.len() == 2, "{lines:?}");
}

#[test]
fn a_connection_is_closed_after_its_longest_lifetime() {
    let server = Server::start(&Options { seconds: 1, ..options() }).unwrap();
    let mut plan = plan(&server);
    plan.parameters.stage_intervals = 1000;
    let outcome = quietly(&plan).unwrap();
    let Some(Stopped::Failed(problem)) = outcome.stopped else { panic!("it went on") };
    assert!(problem.problem.contains("ended download-1"), "{problem}");
    let _silent = TcpStream::connect(server.addresses()[0]).unwrap();
    until(|| server.served().connections == 1);
    until(|| server.served().connections == 0);
}

fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(20), "waited in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn garbage_from_one_client_does_not_affect_others() {
    let server = Server::start(&options()).unwrap();
    let mut rng = Rng::new(1, "garbage");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for round in 0..150 {
        let mut bytes = vec![0; (rng.next_u64() % 3000) as usize];
        bytes.iter_mut().for_each(|byte| *byte = rng.next_u64() as u8);
        match round % 3 {
            // Not TLS; every second one begins like a handshake.
            0 => {
                if round % 2 == 0 && bytes.len() > 5 {
                    bytes[..3].copy_from_slice(&[22, 3, 1]);
                }
                let mut stream = TcpStream::connect(server.addresses()[0]).unwrap();
                let _ = stream.write_all(&bytes);
            }
            // TLS, but not HTTP/2.
            1 => runtime.block_on(sealed(server.addresses()[0], &[&bytes])),
            // HTTP/2's preface, then frames in which only the lengths are valid.
            _ => {
                let mut frames = Vec::new();
                for chunk in bytes.chunks(97) {
                    frames.extend_from_slice(&[0, 0, chunk.len() as u8]);
                    frames.extend_from_slice(&[
                        rng.next_u64() as u8 % 12,
                        rng.next_u64() as u8,
                        0,
                        0,
                        0,
                    ]);
                    frames.push(rng.next_u64() as u8 % 8);
                    frames.extend_from_slice(chunk);
                }
                let opening =
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
                runtime.block_on(sealed(server.addresses()[0], &[opening, &frames]));
            }
        }
    }
    drop(runtime);
    until(|| server.served().connections == 0);
    assert_eq!(server.served().accepted, 150);
    let mut plan = plan(&server);
    plan.stages.truncate(1);
    assert!(complete(&plan).loaded[0].intervals[3].responsiveness.is_some());
}

/// Sends these bytes over TLS, reads the answer for a moment, and closes.
async fn sealed(address: SocketAddr, parts: &[&[u8]]) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let config = rpm::tls::Trust::Anyone.client().unwrap();
    let name = address.ip().into();
    let mut stream =
        tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap();
    for part in parts {
        let _ = stream.write_all(part).await;
    }
    let _ = stream.flush().await;
    let mut answer = [0; 4096];
    let _ = tokio::time::timeout(Duration::from_millis(20), stream.read(&mut answer)).await;
}

#[test]
fn a_dropped_server_no_longer_accepts_connections() {
    let server = Server::start(&options()).unwrap();
    let address = server.addresses()[0];
    let held = TcpStream::connect(address).unwrap();
    until(|| server.served().connections == 1);
    let begun = Instant::now();
    drop(server);
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(TcpStream::connect(address).is_err());
    held.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert!(!matches!((&held).read(&mut [0]), Ok(1..)));
    // Its port is free again.
    Server::start(&Options { at: vec![address], ..options() }).unwrap();
}

#[test]
fn a_port_that_it_can_not_listen_at_is_reported() {
    let server = Server::start(&options()).unwrap();
    let taken =
        Server::start(&Options { at: server.addresses().to_vec(), ..options() }).unwrap_err();
    assert!(taken.problem.contains("can't listen at") && taken.hint.contains("another port"));
    let missing = ("/nonexistent/chain.pem".into(), "/nonexistent/key.pem".into());
    let unread = Server::start(&Options { identity: Some(missing), ..options() }).unwrap_err();
    assert!(unread.problem.contains("/nonexistent/chain.pem"), "{unread}");
}
