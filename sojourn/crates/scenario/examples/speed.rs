//! Runs the simulator on a scenario file, for profilers: how many packets, how long.
//!
//! ```text
//! cargo build --release -p scenario --example speed
//! valgrind --tool=callgrind target/release/examples/speed FILE SECONDS
//! ```

use std::time::Instant;

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("a scenario's file");
    let seconds: u64 = args.next().map_or(10, |word| word.parse().expect("whole seconds"));
    let text = std::fs::read_to_string(&path).expect("a file that can be read");
    let loaded = scenario::Loaded::read(&text, &path, None, &scenario::no_file)
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    let run = loaded.scenario.realise(1).expect("a scenario that can be realised");
    let mut simulated = scenario::realised::simulated(&run).expect("one that can be simulated");
    simulated.duration_ns = seconds * 1_000_000_000;
    simulated.warmup_ns = simulated.warmup_ns.min(simulated.duration_ns / 2);
    let began = Instant::now();
    let mut sim = sim::Sim::new(&simulated);
    while !sim.run(1 << 16) {}
    let (took, packets) = (began.elapsed().as_secs_f64(), sim.delivered_packets());
    println!("{packets} packets in {took:.3} s: {:.2} M/s", packets as f64 / took * 1e-6);
}
