//! The language without Python: texts are parsed, refused, changed, swept and realised.
//! tests/test_scenario.py has the texts of all messages.

use scenario::{Loaded, Problem, no_file};

const HOME: &str = "duration = \"60 s\"\n[bottleneck]\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\n\
    [[flow]]\nkind = \"bulk\"\n";

fn read(text: &str) -> Result<Loaded, Vec<Problem>> {
    Loaded::read(text, "home.toml", None, &no_file)
}

#[test]
fn an_error_has_the_problem_its_place_and_a_hint() {
    let problems = read(&HOME.replace("\"60 s\"", "60")).expect_err("it has no unit");
    let texts: Vec<_> = problems.iter().map(Problem::to_string).collect();
    assert_eq!(
        texts,
        ["home.toml:1:12: duration: a duration needs a unit; 60 is a bare number\n     \
          1 | duration = 60\n       |            ^\nhint: write \"60 s\""]
    );
}

#[test]
fn canonical_text_reads_back_as_the_same_scenario() {
    let home = read(HOME).expect("it is a scenario");
    assert_eq!(read(&home.to_toml()), Ok(home));
}

#[test]
fn a_change_is_checked_and_a_sweep_is_every_combination() {
    let home = read(HOME).expect("it is a scenario");
    let changed = home.with(&[("flow.*.count".into(), Some(scenario::Value::Int(3)))], &no_file);
    assert_eq!(changed.expect("it has flows").scenario.flows[0].entry.count, 3);
    let wrong = home.with(&[("bottleneck.qdisc".into(), Some("codl".into()))], &no_file);
    assert!(wrong.expect_err("there is no codl")[0].hint.starts_with("did you mean codel"));
    let swept = format!("{HOME}[sweep]\n\"bottleneck.qdisc\" = [\"codel\", \"fq_codel\"]\n");
    let variants = read(&swept).and_then(|swept| swept.variants()).expect("it is a sweep");
    let labels: Vec<_> = variants.iter().map(|variant| &*variant.scenario.label).collect();
    assert_eq!(labels, ["codel", "fq_codel"]);
}

#[test]
fn files_that_a_sweep_names_are_read_once_and_its_variants_need_none() {
    let open = |name: &str| match name {
        "a.csv" => Ok(b"1000 0.5\n9000 1\n".to_vec()),
        "b.csv" => Ok(b"20000 1\n".to_vec()),
        _ => Err("there is none".to_owned()),
    };
    let web = HOME.replace("kind = \"bulk\"", "kind = \"transfers\"\nsize = \"10 kB\"");
    let swept =
        format!("{web}[sweep]\n\"flow.0.size\" = [\"cdf a.csv\", \"cdf b.csv\", \"1 MB\"]\n");
    let home = Loaded::read(&swept, "home.toml", None, &open).expect("both files are there");
    let variants = home.variants().expect("they were read");
    let labels: Vec<_> = variants.iter().map(|variant| &*variant.scenario.label).collect();
    assert_eq!(labels, ["size cdf a.csv", "size cdf b.csv", "size 1 MB"]);
    let points = variants[0].to_toml();
    assert!(points.contains("0.5, 9"), "{points}");
    // A change of another key reads no file again.
    let longer = home.with(&[("duration".into(), Some("90 s".into()))], &no_file);
    assert_eq!(longer.and_then(|longer| longer.variants()).expect("still there").len(), 3);
    let wrong = Loaded::read(&swept.replace("b.csv", "c.csv"), "home.toml", None, &open);
    let text = wrong.expect_err("c.csv is not there")[0].to_string();
    assert!(text.contains("can't read 'c.csv': there is none"), "{text}");
    assert!(text.starts_with("home.toml:9:"), "{text}");
}

#[test]
fn a_variant_knows_its_settings_until_they_are_changed() {
    let swept = "[sweep]\n\"bottleneck.up.rate\" = [\"2 Mbit/s\"]\n\"flow.bulk.count\" = [1, 4]\n";
    let home = read(&format!("{HOME}{swept}")).expect("it is a scenario");
    assert!(home.settings.is_empty());
    let variants = home.variants().expect("it is a sweep");
    let rate: (String, scenario::Value) = ("bottleneck.up.rate".into(), "2 Mbit/s".into());
    let count = |count| ("flow.bulk.count".to_owned(), scenario::Value::Int(count));
    assert_eq!(variants[1].settings, [rate.clone(), count(4)]);
    let shorter = variants[1].with(&[("duration".into(), Some("9 s".into()))], &no_file);
    assert_eq!(shorter.expect("it is long enough").settings, [rate.clone(), count(4)]);
    let other =
        variants[1].with(&[("flow.0.count".into(), Some(scenario::Value::Int(2)))], &no_file);
    assert_eq!(other.expect("it is a flow").settings, [rate]);
}

#[test]
fn a_sweep_draws_points_from_ranges_and_each_meets_every_other_value() {
    let ranges = "\"bottleneck.up.rate\" = \"1 Mbit/s .. 100 Mbit/s\"\n\
                  \"bottleneck.qdisc\" = [\"codel\", \"pfifo\"]\n\
                  \"flow.bulk.count\" = \"1 .. 9\"\n";
    let swept = |more: &str| read(&format!("{HOME}[sweep]\n{ranges}{more}"));
    let settings = |more: &str| -> Vec<_> {
        let variants = swept(more).and_then(|sweep| sweep.variants()).expect("it is a sweep");
        variants.into_iter().map(|variant| variant.settings).collect()
    };
    let twenty = settings("samples = 20\n");
    assert_eq!(twenty.len(), 40);
    let keys: Vec<_> = twenty[0].iter().map(|(key, _)| &**key).collect();
    assert_eq!(keys, ["bottleneck.up.rate", "bottleneck.qdisc", "flow.bulk.count"]);
    for pair in twenty.chunks(2) {
        assert_eq!((&pair[0][0], &pair[0][2]), (&pair[1][0], &pair[1][2]));
        assert_ne!(pair[0][1], pair[1][1]);
    }
    assert_eq!(settings("samples = 20\nsampling = \"lhs\"\nsampling_seed = 1\n"), twenty);
    assert_ne!(settings("samples = 20\nsampling_seed = 2\n"), twenty);
    assert_ne!(settings("samples = 20\nsampling = \"random\"\n"), twenty);
    let sweep = swept("samples = 20\n").expect("it is a sweep");
    assert_eq!(read(&sweep.to_toml()), Ok(sweep.clone()));
    // With all ranges settled nothing is sampled.
    let one = ("bottleneck.up.rate".to_owned(), Some("5 Mbit/s".into()));
    let other = ("flow.bulk.count".to_owned(), Some(scenario::Value::Int(2)));
    let settled = sweep.with(&[one, other], &no_file).expect("they are values");
    assert_eq!(settled.variants().expect("it is a sweep").len(), 2);
    assert_eq!(settled.scenario.sweep.sampling, None);
}

#[test]
fn a_further_range_moves_no_point_of_the_others() {
    let rates = |more: &str| -> Vec<_> {
        let text = format!(
            "{HOME}[sweep]\n\"bottleneck.up.rate\" = \"1 Mbit/s .. 9 Mbit/s\"\n{more}samples = 8\n"
        );
        let variants = read(&text).and_then(|sweep| sweep.variants()).expect("it is a sweep");
        variants.into_iter().map(|variant| variant.settings[0].clone()).collect()
    };
    assert_eq!(rates("\"flow.bulk.count\" = \"1 .. 9\"\n"), rates(""));
}

#[test]
fn of_few_whole_numbers_each_is_run_once() {
    let text = format!("{HOME}[sweep]\n\"flow.bulk.count\" = \"1 .. 3\"\nsamples = 50\n");
    let variants = read(&text).and_then(|sweep| sweep.variants()).expect("it is a sweep");
    assert_eq!(variants.len(), 3);
}

#[test]
fn ranges_that_can_not_be_sampled_are_refused_with_their_place() {
    for (sweep, message, place) in [
        ("\"flow.bulk.count\" = \"1 .. 9\"\n", "a range needs a number of samples", 1),
        ("\"flow.bulk.count\" = [1, 2]\nsamples = 5\n", "no key has a range to draw from", 2),
        ("\"flow.bulk.count\" = \"9 .. 1\"\nsamples = 5\n", "\"9 .. 1\" is an empty range", 1),
        (
            "\"flow.bulk.count\" = \"1 .. 9\"\nsamples = 0\n",
            "0 is not a whole number from 1 to 10000",
            2,
        ),
        (
            "\"flow.bulk.count\" = \"1 .. 9\"\nsamples = 9\nsampling = \"lsh\"\n",
            "\"lsh\" is not a sampling design",
            3,
        ),
        ("\"flow.blk.count\" = \"1 .. 9\"\nsamples = 5\n", "\"flow.blk.count\" names no", 1),
    ] {
        let wrong = read(&format!("{HOME}[sweep]\n{sweep}")).expect_err("it can't be");
        let line = HOME.lines().count() + 1 + place;
        let shown: Vec<_> = wrong.iter().map(|one| (&*one.message, one.place)).collect();
        assert!(shown[0].0.replace('\'', "\"").starts_with(message), "{shown:?}");
        assert_eq!(shown[0].1.map(|(line, _)| line), Some(line), "{shown:?}");
    }
}

#[test]
fn links_know_their_nodes_and_the_same_seed_gives_the_same_run() {
    let text =
        format!("{HOME}count = 2\nrtt = \"uniform 40 ms .. 80 ms\"\naccess = \"1 Gbit/s\"\n");
    let home = read(&text).expect("it is a scenario").scenario;
    let run = home.realise(1).expect("it is not a sweep");
    assert_eq!(Ok(&run), home.realise(1).as_ref());
    assert_ne!(run.flows, home.realise(2).expect("it is not a sweep").flows);
    for flow in &run.flows {
        for way in [&flow.path, &flow.back] {
            for pair in way.windows(2) {
                assert_eq!(run.links[pair[0] as usize].head, run.links[pair[1] as usize].tail);
            }
        }
    }
}

#[test]
fn user_written_code_is_a_part_of_the_scenario() {
    let text = r#"
        duration = "1 s"
        [bottleneck]
        rate = "10 Mbit/s"
        delay = "10 ms"
        qdisc = "mine.py:Mine limit 10"
        [[flow]]
        kind = "bulk"
        [sweep]
        "bottleneck.qdisc" = ["mine.py:Mine", "other.py:Other target 5ms", "pfifo"]
    "#;
    let open = |name: &str| Ok(format!("# {name}\n").into_bytes());
    let loaded = Loaded::read(text, "a.toml", None, &open).expect("it can be read");
    let written = loaded.to_toml();
    assert!(written.contains(r##""mine.py" = "# mine.py\n""##), "{written}");
    // No file is opened again: the text that a Run stores is complete.
    let again = Loaded::read(&written, "a.toml", None, &scenario::no_file).expect("it is complete");
    assert_eq!(again, loaded);
    let variants = again.variants().expect("they are complete");
    let of = |at: usize| format!("{:?}", variants[at].scenario.realise(1).unwrap());
    assert!(of(0).contains("# mine.py") && of(1).contains("# other.py"));
    // Code that no key names is removed.
    assert!(!of(2).contains("# mine.py") && !variants[2].to_toml().contains("# mine.py"));
    let other = |_: &str| Ok(b"# another text\n".to_vec());
    let changed = Loaded::read(text, "a.toml", None, &other).expect("it can be read");
    let fingerprint = |of: &Loaded| of.fingerprint(None, &mut || true);
    assert_ne!(fingerprint(&changed), fingerprint(&loaded));
    let mut calls = 0;
    assert_eq!(loaded.fingerprint(None, &mut || (calls += 1, calls < 3).1), Ok(None));
    assert_eq!(calls, 3);
    let missing = Loaded::read(text, "a.toml", None, &scenario::no_file).expect_err("no file");
    assert_eq!(missing[0].message, "can't read 'mine.py': No such file or directory");
}

/// A scenario with keys above the first table, a link and a flow.
fn texts(top: &str, link: &str, flow: &str) -> String {
    format!("duration = \"60 s\"\n{top}\n[bottleneck]\n{link}\n[[flow]]\n{flow}\n")
}

/// Bounds: the value at a bound is accepted, and the next value is refused with this message.
#[test]
fn the_first_refused_value_follows_the_last_accepted_one() {
    let (twenty, slow) = ("rate = \"20 Mbit/s\"\ndelay = \"10 ms\"", "kind = \"bulk\"");
    let top = |taken: &str, refused: &str, words| {
        (texts(taken, twenty, slow), texts(refused, twenty, slow), words)
    };
    let changes = |words: &str| format!("qdisc_schedule = [[\"1 s\", \"{words}\"]]");
    let link = |link: &str, refused: &str, words| {
        let of = |more: &str| texts("", &format!("{twenty}\n{link}\n{more}"), slow);
        (of(""), of(refused), words)
    };
    let flow = |taken: &str, refused: &str, words| {
        (texts("", twenty, taken), texts("", twenty, refused), words)
    };
    // A datagram has 120 bytes: 100 Mbit/s are 6.25 million in a minute; the link carries 1.25 million.
    let udp = |link: &str, mbit: f64| {
        let flow = format!("kind = \"udp\"\npacket = \"120 B\"\nrate = \"{mbit} Mbit/s\"");
        texts("", &format!("delay = \"10 ms\"\n{link}"), &flow)
    };
    let gigabit = |more: &str| format!("rate = \"1 Gbit/s\"\n{more}");
    let unlimited =
        |delay: &str| texts("", &format!("rate = \"unlimited\"\ndelay = \"{delay}\""), slow);
    let steps = |key: &str, value: &str| {
        format!("{key} = [[\"0 s\", \"{value}\"], [\"2 s\", \"{value}\"]]\n")
    };
    let bounds = [
        top("warmup = \"59.9 s\"", "warmup = \"60 s\"", "the warm-up leaves nothing"),
        top(
            "record = { queue = \"6 us\" }",
            "record = { queue = \"5 us\" }",
            "that makes 24000000 rows",
        ),
        (
            texts("", twenty, &format!("{slow}\ncount = 100000")),
            texts("", twenty, &format!("{slow}\ncount = 100000\n[[flow]]\nkind = \"ping\"")),
            "100001 flows are too many",
        ),
        (
            texts(
                "",
                &format!("{twenty}\n{}repeat = \"2001 ms\"", steps("schedule", "9 Mbit/s")),
                slow,
            ),
            texts(
                "",
                &format!("{twenty}\n{}repeat = \"2 s\"", steps("schedule", "9 Mbit/s")),
                slow,
            ),
            "repeat is not after the last step",
        ),
        (
            texts(
                "",
                &format!("{twenty}\n{}delay_repeat = \"2001 ms\"", steps("delay_schedule", "9 ms")),
                slow,
            ),
            texts(
                "",
                &format!("{twenty}\n{}delay_repeat = \"2 s\"", steps("delay_schedule", "9 ms")),
                slow,
            ),
            "delay_repeat is not after the last step",
        ),
        link("qdisc = \"mq codel\"\nqueues = 4", "pinned = [3, 4]", "pinned has queue 4"),
        link(
            "loss = \"1 %\"\nloss_schedule = [[\"1 s\", \"2 %\"], [\"2 s\", \"0 %\"]]",
            "loss_repeat = \"2 s\"",
            "loss_repeat is not after the last step",
        ),
        link(
            "loss = \"gemodel 1% 10%\"",
            "loss_schedule = [[\"1 s\", \"2 %\"]]",
            "steps are of independent losses",
        ),
        link("", "loss_schedule = [[\"1 s\", \"2 %\"]]", "the loss before the first step"),
        link("qdisc = \"codel\"", &changes("codel"), "codel alone changes nothing"),
        link(
            "qdisc = \"codel\"",
            &changes("fq_codel limit 5"),
            "the step at 1 s: a step can't replace codel by 'fq_codel'",
        ),
        link(
            "qdisc = \"fq_codel\"",
            &changes("fq_codel flows 5"),
            "a step can't change fq_codel's flows",
        ),
        link("qdisc = \"sfq\"", &changes("sfq limit 5"), "Linux can't change a sfq"),
        link(
            "qdisc = \"codel variant rfc\"",
            &changes("codel limit 5"),
            "Linux has no codel variant rfc",
        ),
        link("qdisc = \"adt limit 500\"", &changes("adt limit 5"), "Linux has no adt"),
        link(
            "qdisc = \"cake bandwidth 9mbit\"",
            &changes("cake overhead 8"),
            "a step can't change cake's overhead",
        ),
        flow("kind = \"bulk\"\nrtt = \"20 ms\"", "kind = \"bulk\"\nrtt = \"19.9 ms\"", "an RTT of"),
        flow(
            "kind = \"bulk\"\nstart = \"5 s\"\nstop = \"5001 ms\"",
            "kind = \"bulk\"\nstart = \"5 s\"\nstop = \"5 s\"",
            "it stops before it starts",
        ),
        flow(
            "kind = \"bulk\"\ncount = 4\nhosts = 4",
            "kind = \"bulk\"\ncount = 4\nhosts = 5",
            "5 hosts for 4",
        ),
        // The sender is at home, where the hosts are.
        flow(
            "kind = \"bulk\"\nhosts = 1\naccess = \"1 Gbit/s\"\ndirection = \"down\"",
            "kind = \"bulk\"\nhosts = 1\naccess = \"1 Gbit/s\"\ndirection = \"up\"",
            "with access each flow's sender",
        ),
        flow(
            "kind = \"web\"\nsize = \"9 kB\"\nobjects = 6\ncount = 6",
            "kind = \"web\"\nsize = \"9 kB\"\nobjects = 5\ncount = 6",
            "5 objects for 6 connections",
        ),
        flow(
            "kind = \"stream\"\nsegment = \"4 s\"\nahead = \"4 s\"",
            "kind = \"stream\"\nsegment = \"4 s\"\nahead = \"3999 ms\"",
            "less than one segment is fetched ahead",
        ),
        flow(
            "kind = \"udp\"\nrate = \"5 Mbit/s\"\naccess = \"5 Mbit/s\"",
            "kind = \"udp\"\nrate = \"5 Mbit/s\"\naccess = \"4999 kbit/s\"",
            "the rate is above that of the access link",
        ),
        flow(
            "kind = \"capture\"\npackets = [[\"0 s\", \"99 B\"], [\"1 s\", \"99 B\"]]\nrepeat = \"1001 ms\"",
            "kind = \"capture\"\npackets = [[\"0 s\", \"99 B\"], [\"1 s\", \"99 B\"]]\nrepeat = \"1 s\"",
            "repeat is too short",
        ),
        flow(
            "kind = \"bulk\"\ntcp = { min_rto = \"1 s\", max_rto = \"1 s\" }",
            "kind = \"bulk\"\ntcp = { min_rto = \"1001 ms\", max_rto = \"1 s\" }",
            "min_rto is above max_rto",
        ),
        flow(
            "kind = \"bulk\"\ncongestion = \"vegas\"\ntcp = { vegas_alpha = 4, vegas_beta = 4 }",
            "kind = \"bulk\"\ncongestion = \"vegas\"\ntcp = { vegas_alpha = 5, vegas_beta = 4 }",
            "vegas_alpha 5 is above vegas_beta 4",
        ),
        flow(
            "kind = \"bulk\"\nprofile = \"linux-7.3\"\ntcp = { rack = false, sack = false }",
            "kind = \"bulk\"\nprofile = \"linux-7.3\"\ntcp = { rack = false }",
            "Linux 7.3 finds losses by RACK alone",
        ),
        (
            udp("rate = \"20 Mbit/s\"", 100.0),
            udp("rate = \"20 Mbit/s\"", 100.1),
            "5.01e+06 packets would be dropped",
        ),
        (
            udp(&gigabit(""), 100.0),
            udp(&gigabit("loss = \"90%\""), 100.0),
            "5.62e+06 packets would be",
        ),
        (
            udp(&gigabit("police = \"rate 20mbit burst 64k\""), 100.0),
            udp(&gigabit("police = \"rate 19mbit burst 64k\""), 100.0),
            "5.06e+06 packets would be dropped",
        ),
        (unlimited("500 ns"), unlimited("499 ns"), "the clock would not advance"),
        (
            texts(
                "",
                "rate = \"unlimited\"\ndelay = \"0 s\"",
                &format!("{slow}\njitter = \"1 us\""),
            ),
            texts(
                "",
                "rate = \"unlimited\"\ndelay = \"0 s\"",
                &format!("{slow}\njitter = \"999 ns\""),
            ),
            "the clock would not advance",
        ),
    ];
    for (taken, refused, words) in bounds {
        read(&taken).unwrap_or_else(|problems| panic!("{words}: {taken}{}", problems[0]));
        let problems = read(&refused).expect_err(words);
        assert!(problems[0].message.contains(words), "{words}: {}", problems[0]);
    }
}

#[test]
fn fq_acts_on_an_unlimited_link_and_codel_does_not() {
    let noted = |qdisc: &str| {
        let link = format!("rate = \"unlimited\"\ndelay = \"10 ms\"\nqdisc = \"{qdisc}\"");
        read(&texts("", &link, "kind = \"bulk\"")).expect("it is a scenario").notes.len()
    };
    assert_eq!(["fq", "codel"].map(noted), [0, 1]);
}

#[test]
fn a_hint_names_a_table_as_it_is_written() {
    let link = |more: &str| {
        texts("", &format!("rate = \"9 Mbit/s\"\ndelay = \"1 ms\"\n{more}"), "kind = \"bulk\"")
    };
    let above = |key: &str| texts(key, "rate = \"9 Mbit/s\"\ndelay = \"1 ms\"", "kind = \"bulk\"");
    for (text, hint) in [
        (link("flow = 1"), "flow is a table of the whole file: [[flow]]"),
        (link("record = 1"), "record is a table of the whole file: [record]"),
        (link("start = \"1 s\""), "start is a key of [[flow]], and of [[program]]"),
        (above("up = { rate = \"1 Mbit/s\" }"), "did you mean bottleneck.up.rate?"),
        (above("up = { rate = \"1 Mbit/s\", loss = 1 }"), "did you mean bottleneck.up?"),
    ] {
        assert_eq!(read(&text).expect_err(hint)[0].hint, hint);
    }
}

#[test]
fn a_node_named_home_is_not_mistaken_for_that_of_the_hosts() {
    let line = |from: &str, to: &str| {
        format!(
            "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"9 Mbit/s\"\ndelay = \"1 ms\"\n"
        )
    };
    let flow = "[[flow]]\nkind = \"bulk\"\nfrom = \"home\"\nto = \"net\"\nhosts = 1\n";
    let text = format!("duration = \"9 s\"\n{}{}{flow}", line("home", "net"), line("net", "home"));
    let problems = read(&text).expect_err("either end may be meant");
    assert_eq!(problems[0].message, "hosts_at is missing");
    assert!(read(&format!("{text}hosts_at = \"net\"\n")).is_ok());
}

const WITH_PROGRAMS: &str = r#"
duration = "10 s"
bottleneck = { rate = "20 Mbit/s", delay = "10 ms" }
flow = [{ kind = "bulk" }]
"#;

fn with_program(keys: &str) -> String {
    format!("{WITH_PROGRAMS}\n[[program]]\n{keys}")
}

#[test]
fn an_unknown_name_in_a_program_s_words_is_refused_with_the_known_ones() {
    let node = "node = \"home\"\n";
    for (keys, message, hint) in [
        ("command = \"x\"", "node is missing", "write node = ..."),
        (
            "node = \"hom\"\ncommand = \"x\"",
            "there is no node 'hom'",
            "did you mean home? nodes: home, net",
        ),
        (
            &format!("{node}command = \"x {{link:dwon}}\""),
            "there is no link 'dwon'",
            "did you mean down? links: down, up",
        ),
        (
            &format!("{node}command = \"x {{address:nett}}\""),
            "there is no node 'nett'",
            "did you mean net? nodes: home, net",
        ),
        (
            &format!("{node}command = \"x {{adress:net}}\""),
            "{adress:net} stands for nothing",
            "write {link:NAME} or {address:NODE}",
        ),
        (
            &format!("{node}command = \"sh -c 'x\""),
            "a ' in it is not closed",
            "close it; within the other quotes a ' is plain",
        ),
        (
            &format!("{node}command = \" \""),
            "an empty command",
            "write it in quotes, like \"sh rate.sh {link:down}\"",
        ),
        (
            &format!("{node}command = \"x\"\nfiles = [\"../x\"]"),
            "'../x' is not a file",
            "write paths below the scenario's folder, like files = [\"rate.sh\"]",
        ),
        (
            &format!("{node}command = \"x\"\nfiles = [\"gone.sh\"]"),
            "can't read 'gone.sh': No such file or directory",
            "the path is relative to the scenario's folder; with -q, to the current folder",
        ),
        (
            &format!("{node}command = \"x\"\n[programs]\nsees = [\"/proc/x\"]"),
            "'/proc/x' has a place of its own in the guest",
            "leave it out",
        ),
        (
            &format!("{node}command = \"x\"\n[programs]\nsees = [\"/usr\", \"/usr/bin\"]"),
            "'/usr/bin' is below '/usr'",
            "name one of them",
        ),
        (
            &format!("{node}command = \"x\"\n[programs]\nsees = [\"usr\"]"),
            "'usr' is not a folder of the host",
            "write absolute paths below /, like sees = [\"/usr\", \"/opt/tools\"]",
        ),
        (&format!("{node}command = \"x\"\n[programs]\nsyscall = \"0 us\""), "a price of zero", ""),
    ] {
        let problems = read(&with_program(keys)).expect_err(message);
        assert_eq!(problems[0].message, message, "{keys}");
        if !hint.is_empty() {
            assert_eq!(problems[0].hint, hint, "{keys}");
        }
    }
}

#[test]
fn a_scenario_without_programs_keeps_its_fingerprint_and_one_with_them_has_another() {
    let of = |text: &str| {
        let loaded = read(text).expect("a scenario");
        loaded.fingerprint(None, &mut || true).expect("one").expect("whole")
    };
    let plain = of(WITH_PROGRAMS);
    assert_eq!(plain, of(&format!("{WITH_PROGRAMS}\n[programs]\nsyscall = \"2 us\"")));
    let program = "node = \"home\"\ncommand = \"true\"\n";
    let with = of(&with_program(program));
    assert_ne!(plain, with);
    for change in ["start = \"1 s\"", "env = { A = \"b\" }", "[programs]\nsees = [\"/opt\"]"] {
        assert_ne!(with, of(&with_program(&format!("{program}{change}"))), "{change}");
    }
}

#[test]
fn a_programs_file_is_part_of_the_scenario() {
    let text = with_program("node = \"home\"\ncommand = \"sh a.sh\"\nfiles = [\"a.sh\"]\n");
    let open = |name: &str| if name == "a.sh" { Ok(b"tc -V\n".to_vec()) } else { no_file(name) };
    let loaded = Loaded::read(&text, "x.toml", None, &open).expect("the file is there");
    let again = read(&loaded.to_toml()).expect("complete without the file");
    assert_eq!(loaded, again);
    let run = again.scenario.realise(1).expect("it is no sweep");
    let programs = again.scenario.realised_programs(&run);
    assert_eq!(programs.programs[0].files, [("a.sh".to_owned(), "tc -V\n".to_owned())]);
    assert_eq!(programs.sees, ["/usr"]);
}

fn with_flow(keys: &str) -> String {
    let line = "duration = \"10 s\"\nbottleneck = { rate = \"20 Mbit/s\", delay = \"10 ms\" }\n";
    format!("{line}[[flow]]\nname = \"web\"\nkind = \"program\"\n{keys}")
}

const BOTH: &str = "server = \"serve {address}\"\nclient = \"fetch {server}\"\n";

#[test]
fn a_flow_of_programs_needs_both_and_refuses_what_its_hosts_do_not_have() {
    for (keys, message, hint) in [
        ("client = \"x\"", "server is missing", "write server = ..."),
        ("server = \"x\"", "client is missing", "write client = ..."),
        (
            "server = \"x {link:down}\"\nclient = \"y\"",
            "{link:down} stands for nothing on a flow's host",
            "write {server} or {address}; a [[program]] runs on a node",
        ),
        (
            &format!("{BOTH}dscp = \"ef\""),
            "a program chooses the DS field of its packets",
            "leave dscp out, and set it by the program's options",
        ),
        (&format!("{BOTH}hosts = 1"), "a program's host has nothing else on it", "leave hosts out"),
        (
            &format!("{BOTH}count = 51"),
            "102 programs are too many",
            "the most is 100, and each flow of kind program has two",
        ),
        (
            &format!("{BOTH}[[program]]\nname = \"web-client\"\nnode = \"home\"\ncommand = \"x\""),
            "its program 'web-client' has the name of a [[program]]",
            "give one of them another name",
        ),
        (&format!("{BOTH}sender = \"both\""), "'both' is not a sender", ""),
    ] {
        let problems = read(&with_flow(keys)).expect_err(message);
        if hint.is_empty() {
            assert!(problems[0].message.contains("both"), "{keys}: {}", problems[0].message);
            continue;
        }
        assert_eq!((&*problems[0].message, &*problems[0].hint), (message, hint), "{keys}");
    }
}

#[test]
fn the_client_is_at_home_unless_the_sender_says_otherwise() {
    let ends = |keys: &str| {
        let loaded = read(&with_flow(&format!("{BOTH}{keys}"))).expect("a scenario");
        let run = loaded.scenario.realise(1).expect("it is no sweep");
        let programs = loaded.scenario.realised_programs(&run).programs;
        let ends = programs.iter().map(|program| {
            let end = program.end.expect("it is a flow's");
            (program.node.clone(), end.server, end.source)
        });
        ends.collect::<Vec<_>>()
    };
    let (home, net) = ("home".to_owned(), "net".to_owned());
    let apart = |server: &String, client: &String, server_sends: bool| {
        [(server.clone(), true, server_sends), (client.clone(), false, !server_sends)]
    };
    assert_eq!(ends(""), apart(&net, &home, true));
    assert_eq!(ends("direction = \"up\""), apart(&net, &home, false));
    assert_eq!(ends("direction = \"up\"\nsender = \"server\""), apart(&home, &net, true));
    assert_eq!(ends("sender = \"client\""), apart(&home, &net, false));
}

#[test]
fn each_flow_of_an_entry_has_two_programs_that_keep_its_times() {
    let text = with_flow(&format!(
        "{BOTH}count = 2\nstart = [\"1 s\", \"3 s\"]\nstop = \"5 s\"\nenv = {{ A = \"b\" }}"
    ));
    let loaded = read(&text).expect("a scenario");
    let run = loaded.scenario.realise(1).expect("it is no sweep");
    let programs = loaded.scenario.realised_programs(&run).programs;
    let told: Vec<_> = programs
        .iter()
        .map(|one| (&*one.name, one.end.map(|end| end.flow), one.start_ns / 1_000_000_000))
        .collect();
    assert_eq!(
        told,
        [
            ("web.1-server", Some(0), 0),
            ("web.1-client", Some(0), 1),
            ("web.2-server", Some(1), 0),
            ("web.2-client", Some(1), 3),
        ]
    );
    assert!(programs.iter().all(|one| one.stop_ns == Some(5_000_000_000)));
    assert!(programs.iter().all(|one| one.env == [("A".to_owned(), "b".to_owned())]));
    assert_eq!(programs[1].words, ["fetch", "{server}"]);
    assert!(scenario::realised::simulated(&run).is_none(), "only Linux runs it");
}

#[test]
fn the_words_of_a_flows_programs_can_be_swept_and_change_the_fingerprint() {
    let text =
        with_flow(&format!("{BOTH}[sweep]\n\"flow.web.client\" = [\"a {{server}}\", \"b\"]"));
    let variants = read(&text).expect("a sweep").variants().expect("its values are commands");
    let labels: Vec<_> = variants.iter().map(|one| &*one.scenario.label).collect();
    assert_eq!(labels, ["client a {server}", "client b"]);
    let print = |one: &Loaded| one.fingerprint(None, &mut || true).expect("one").expect("whole");
    assert_ne!(print(&variants[0]), print(&variants[1]));
}

#[test]
fn a_file_of_a_flows_programs_is_part_of_the_scenario() {
    let text = with_flow(&format!("{BOTH}files = [\"a.sh\"]\n"));
    let open = |name: &str| if name == "a.sh" { Ok(b"true\n".to_vec()) } else { no_file(name) };
    let loaded = Loaded::read(&text, "x.toml", None, &open).expect("the file is there");
    let again = read(&loaded.to_toml()).expect("complete without the file");
    assert_eq!(loaded, again);
    let run = again.scenario.realise(1).expect("it is no sweep");
    for program in again.scenario.realised_programs(&run).programs {
        assert_eq!(program.files, [("a.sh".to_owned(), "true\n".to_owned())]);
    }
}
