//! `sojourn-guest`: generates the traffic and takes the samples of a run on a real Linux kernel.
//!
//! As the first process of a guest (`/init`), it mounts the file systems, reads `/plan.json`, and
//! powers the machine off at the end. On a host, as root, it does the same run in its own
//! namespaces: `sojourn-guest --plan FILE --out FILE`.
//!
//! It prints one line for each stage on standard output: `@BOOT <ns since boot> <kernel>`, `@CHECK`
//! (if the plan has a check), `@START`, `@DONE <n> packets watched`, `@END`. On failure it prints
//! `@FAIL <reason>` instead. The results are in the archive (see `results`).

mod context;
mod flows;
mod headers;
mod log;
mod plan;
mod programs;
mod recorded;
mod results;
mod run;
mod sample;
mod sys;
mod taps;
mod watch;
mod world;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use plan::{Output, Plan};
use results::{Archive, Part};
use run::Run;
use world::World;

const USAGE: &str = "usage: sojourn-guest --plan FILE --out FILE";

fn main() -> ExitCode {
    let first = sys::is_first();
    std::panic::set_hook(Box::new(move |panic| {
        say(&format!("@FAIL panic: {}", panic.to_string().replace('\n', " ")));
        end(first, 101);
    }));
    let (plan, out) = if first {
        ("/plan.json".to_string(), None)
    } else {
        match arguments(std::env::args().skip(1)) {
            Ok((plan, out)) => (plan, Some(out)),
            Err(error) => {
                eprintln!("error: {error}\nhint: {USAGE}");
                return ExitCode::from(2);
            }
        }
    };
    match run_plan(first, &plan, out) {
        Ok(()) => {
            say("@END");
            end(first, 0)
        }
        Err(Failure::Input(error)) => {
            say(&format!("@FAIL {error}"));
            end(first, 2)
        }
        Err(Failure::Run(error)) => {
            say(&format!("@FAIL {error}"));
            end(first, 1)
        }
    }
}

/// Reason why there are no results.
enum Failure {
    /// The plan is invalid or permissions are missing.
    Input(String),
    /// The run failed.
    Run(String),
}

fn arguments(mut arguments: impl Iterator<Item = String>) -> Result<(String, String), String> {
    let (mut plan, mut out) = (None, None);
    while let Some(word) = arguments.next() {
        let target = match word.as_str() {
            "--plan" => &mut plan,
            "--out" => &mut out,
            other => return Err(format!("unknown argument '{other}'")),
        };
        *target = Some(arguments.next().ok_or_else(|| format!("{word} needs a file"))?);
    }
    Ok((plan.ok_or("--plan is missing")?, out.ok_or("--out is missing")?))
}

fn run_plan(first: bool, plan: &str, out: Option<String>) -> Result<(), Failure> {
    let text = fs::read_to_string(plan).map_err(|e| Failure::Input(format!("{plan}: {e}")))?;
    let mut plan = Plan::parse(&text).map_err(|e| Failure::Input(format!("{plan}: {e}")))?;
    sys::set_deadline(plan.deadline_ns).map_err(|e| Failure::Run(format!("deadline: {e}")))?;
    if first {
        world::mount_all().map_err(Failure::Run)?;
    } else {
        if !sys::is_root() {
            return Err(Failure::Input("network namespaces need root; run it as root".into()));
        }
        if !plan.programs.is_empty() {
            return Err(Failure::Input("programs: they run in a guest only, not on a host".into()));
        }
        sys::end_with_parent().map_err(|e| Failure::Run(e.to_string()))?;
    }
    if let Some(path) = out {
        plan.output = Output { modules: Vec::new(), mount: None, path };
    }
    let kernel =
        fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string();
    say(&format!("@BOOT {} {kernel}", probe::sys::read_clock(probe::sys::Kernel::Monotonic)));
    load(&plan.modules).map_err(Failure::Run)?;
    // Two sockets per connection, a listener, and room for other files.
    sys::allow_many_files(plan.flows.len() as u64 * 4 + 1024)
        .map_err(|e| Failure::Run(e.to_string()))?;
    let namespaces: Vec<String> = plan
        .check
        .iter()
        .flat_map(|check| &check.namespaces)
        .chain(&plan.namespaces)
        .cloned()
        .collect();
    let world = World::new(&namespaces, first).map_err(Failure::Run)?;
    let check = match plan.check.as_deref() {
        None => None,
        Some(check) => {
            say("@CHECK");
            let run = carry_out(check, &world).map_err(|e| Failure::Run(format!("check: {e}")))?;
            Some(
                Part::new("check/", |archive| run.write(archive))
                    .map_err(|e| Failure::Run(e.to_string()))?,
            )
        }
    };
    set_up(&plan, &world).map_err(Failure::Run)?;
    let mut run = Run::new(&plan, &world).map_err(Failure::Run)?;
    say("@START");
    run.go().map_err(Failure::Run)?;
    say(&format!("@DONE {} packets watched", run.watched()));
    let file = open_output(&plan.output).map_err(|e| Failure::Run(format!("results: {e}")))?;
    let mut archive = Archive::new(BufWriter::with_capacity(1 << 20, file));
    let mut index = run.write(&mut archive).map_err(|e| Failure::Run(format!("results: {e}")))?;
    index.insert("kernel".into(), kernel.into());
    if let Some(part) = check {
        let about = archive.part(part).map_err(|e| Failure::Run(format!("results: {e}")))?;
        index.insert("check".into(), about.into());
    }
    archive.finish(index).map_err(|e| Failure::Run(format!("results: {e}")))
}

fn set_up(plan: &Plan, world: &World) -> Result<(), String> {
    let mut steps = plan.setup.iter().enumerate();
    steps.try_for_each(|(i, step)| world.step(step).map_err(|e| format!("setup[{i}]: {e}")))
}

/// Does a run from its set-up to its end.
fn carry_out<'a>(plan: &'a Plan, world: &'a World) -> Result<Run<'a>, String> {
    set_up(plan, world)?;
    let mut run = Run::new(plan, world)?;
    run.go()?;
    Ok(run)
}

fn load(modules: &[String]) -> Result<(), String> {
    modules
        .iter()
        .try_for_each(|path| sys::load_module(path).map_err(|e| format!("module {path}: {e}")))
}

/// Opens the destination of the results: a new file, or a device that may take a moment to appear.
fn open_output(output: &Output) -> Result<File, String> {
    load(&output.modules)?;
    if let Some(mount) = &output.mount {
        let target = Path::new(&mount.target);
        fs::create_dir_all(target)
            .and_then(|()| sys::mount(&mount.source, target, &mount.kind, &mount.options))
            .map_err(|e| format!("mounting {} on {}: {e}", mount.kind, mount.target))?;
    }
    let path = Path::new(&output.path);
    let file = if path.starts_with("/dev") {
        const TRIES: u32 = 1000;
        for _ in 0..TRIES {
            if path.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        File::options().write(true).open(path)
    } else {
        File::create(path)
    };
    file.map_err(|e| format!("{}: {e}", output.path))
}

/// Prints a line on the console.
fn say(line: &str) {
    let mut out = std::io::stdout();
    // The run goes on without a console.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn end(first: bool, status: i32) -> ! {
    if first { sys::power_off() } else { std::process::exit(status) }
}

#[cfg(test)]
mod tests {
    use super::arguments;

    fn words(line: &str) -> Result<(String, String), String> {
        arguments(line.split_whitespace().map(str::to_string))
    }

    #[test]
    fn the_options_plan_and_out_are_required_and_no_others_accepted() {
        assert_eq!(words("--out r --plan p"), Ok(("p".into(), "r".into())));
        assert_eq!(words("--plan p").unwrap_err(), "--out is missing");
        assert_eq!(words("--plan").unwrap_err(), "--plan needs a file");
        assert_eq!(words("--plam p").unwrap_err(), "unknown argument '--plam'");
    }
}
