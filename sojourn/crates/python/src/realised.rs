//! A realised scenario for Python: frozen values, each wrapping the core's value with its parts as
//! attributes.
//!
//! If a struct of the core gets a new field, this file does not compile until the field is exposed
//! or left out by name.

use crate::json::json_to_python;
use crate::tc::{LinkLayer, Police, Qdisc, Shaper};
use link::{Loss, QdiscStep, RateStep, RingParams};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyTuple};
use qdisc::DsField;
use scenario::realised::{Flow as FlowSpec, Link as LinkSpec, Run, Traffic};
use scenario::{Endpoints, Programs, realised};
use sim::RecordSpec;
use std::sync::Arc;
use traffic::Frames;

/// A value serialised to plain Python values.
fn plain<'py, T: serde::Serialize>(py: Python<'py>, value: &T) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(value);
    json_to_python(py, &value.map_err(|error| PyValueError::new_err(error.to_string()))?)
}

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Realised {
    run: Arc<Run>,
    #[pyo3(get)]
    links: Py<PyTuple>,
    #[pyo3(get)]
    flows: Py<PyTuple>,
    #[pyo3(get)]
    record: Py<Record>,
    programs: Arc<Programs>,
}

/// See `_core.pyi`.
#[pyclass(frozen, get_all, eq, module = "sojourn._core")]
#[derive(Clone, PartialEq)]
pub struct Program {
    name: String,
    node: String,
    /// The flow, whether it is the server, whether its host is the source.
    end: Option<(u32, bool, bool)>,
    command: String,
    words: Vec<String>,
    start_ns: u64,
    stop_ns: Option<u64>,
    files: Vec<(String, String)>,
    env: Vec<(String, String)>,
}

impl Realised {
    /// The value with its parts.
    pub fn of(py: Python<'_>, run: Run, programs: Programs) -> PyResult<Realised> {
        // With a hundred thousand links or flows, Ctrl-C must not wait for the last.
        let links: PyResult<Vec<_>> = run
            .links
            .iter()
            .map(|link| py.check_signals().and_then(|()| Link::of(py, link)))
            .collect();
        let flows: PyResult<Vec<_>> = run
            .flows
            .iter()
            .map(|flow| py.check_signals().and_then(|()| Flow::of(py, flow)))
            .collect();
        let &RecordSpec { queue_ns, flow_ns, packets, headers } = &run.record;
        Ok(Realised {
            links: PyTuple::new(py, links?)?.unbind(),
            flows: PyTuple::new(py, flows?)?.unbind(),
            record: Py::new(py, Record { queue_ns, flow_ns, packets, headers })?,
            run: Arc::new(run),
            programs: Arc::new(programs),
        })
    }

    /// Its links, in order.
    pub fn run_links(&self) -> &[LinkSpec] {
        &self.run.links
    }

    /// The simulator's input.
    pub fn simulated(&self) -> PyResult<sim::Scenario> {
        realised::simulated(&self.run).ok_or_else(|| {
            PyValueError::new_err(
                "only Linux has a discipline, a congestion control or a kind of traffic of the run",
            )
        })
    }
}

#[pymethods]
impl Realised {
    #[new]
    #[pyo3(signature = (*, duration_ns, seed, links, flows, queue_ns, flow_ns))]
    fn new(
        py: Python<'_>,
        duration_ns: u64,
        seed: u64,
        links: Vec<Py<Link>>,
        flows: Vec<Py<Flow>>,
        queue_ns: u64,
        flow_ns: u64,
    ) -> PyResult<Realised> {
        let run = Run {
            duration_ns,
            warmup_ns: 0,
            seed,
            links: links.iter().map(|link| link.get().spec.clone()).collect(),
            flows: flows.iter().map(|flow| flow.get().spec.clone()).collect(),
            record: RecordSpec { queue_ns, flow_ns, packets: false, headers: false },
            offloads: false,
        };
        Realised::of(py, run, Programs::default())
    }

    #[getter]
    fn duration_ns(&self) -> u64 {
        self.run.duration_ns
    }

    #[getter]
    fn warmup_ns(&self) -> u64 {
        self.run.warmup_ns
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.run.seed
    }

    #[getter]
    fn offloads(&self) -> bool {
        self.run.offloads
    }

    #[getter]
    fn programs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let one = |program: &scenario::Program| {
            let scenario::Program {
                name,
                node,
                end,
                command,
                words,
                start_ns,
                stop_ns,
                files,
                env,
            } = program.clone();
            let end = end.map(|end| (end.flow, end.server, end.source));
            Program { name, node, end, command, words, start_ns, stop_ns, files, env }
        };
        PyTuple::new(py, self.programs.programs.iter().map(one))
    }

    #[getter]
    fn program_sees<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.programs.sees)
    }

    #[getter]
    fn program_syscall_ns(&self) -> u64 {
        self.programs.syscall_ns
    }

    #[getter]
    fn base_rtts_ns(&self) -> Vec<Option<u64>> {
        self.run.base_rtts()
    }

    fn to_json(&self) -> PyResult<String> {
        text_of(&*self.run)
    }

    /// Rust's debug text leaves out no field; see `_core.pyi`.
    fn to_text(&self) -> String {
        // Without programs the text is what it was before there were any: stored seeds keep their
        // keys.
        if self.programs.programs.is_empty() {
            return format!("{:?}", self.run);
        }
        format!("{:?} {:?}", self.run, self.programs)
    }

    fn with_seed(&self, py: Python<'_>, seed: u64) -> PyResult<Realised> {
        Realised::of(py, Run { seed, ..(*self.run).clone() }, (*self.programs).clone())
    }

    fn __eq__(&self, other: &Realised) -> bool {
        self.run == other.run && self.programs == other.programs
    }

    fn __repr__(&self) -> String {
        let (links, flows) = (self.run.links.len(), self.run.flows.len());
        format!("Realised(seed={}, {links} links, {flows} flows)", self.run.seed)
    }
}

fn text_of<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// See `_core.pyi`.
#[pyclass(frozen, eq, get_all, module = "sojourn._core")]
#[derive(PartialEq)]
pub struct Record {
    queue_ns: u64,
    flow_ns: u64,
    packets: bool,
    headers: bool,
}

// Links -------------------------------------------------------------------------------------------

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Link {
    /// Its specification.
    pub spec: LinkSpec,
    #[pyo3(get)]
    rate: Py<PyTuple>,
    #[pyo3(get)]
    qdisc: Py<Qdisc>,
    #[pyo3(get)]
    qdisc_steps: Py<PyTuple>,
    #[pyo3(get)]
    framing: Py<LinkLayer>,
    #[pyo3(get)]
    loss: Py<PyAny>,
    #[pyo3(get)]
    impairments: Option<Py<Impairments>>,
    #[pyo3(get)]
    ring: Option<Py<Ring>>,
    #[pyo3(get)]
    shaper: Option<Py<Shaper>>,
    #[pyo3(get)]
    police: Option<Py<Police>>,
}

impl Link {
    fn of(py: Python<'_>, spec: &LinkSpec) -> PyResult<Link> {
        let steps = spec.rate.iter().map(|&RateStep { at_ns, bps }| Step { at_ns, bps });
        let ring = |&RingParams { descriptors, bql, coalesce_ns }: &RingParams| {
            Py::new(py, Ring { descriptors, bql, coalesce_ns })
        };
        let qdisc_steps = spec
            .qdisc_steps
            .iter()
            .map(|step| Ok((step.at_ns, Py::new(py, Qdisc(step.qdisc.clone()))?)))
            .collect::<PyResult<Vec<_>>>()?;
        let loss = match spec.loss {
            Loss::None => py.None(),
            Loss::Random { probability } => RandomLoss { probability }.into_py_any(py)?,
            Loss::Gilbert { p, r, bad_loss, good_loss } => {
                GilbertLoss { p, r, bad_loss, good_loss }.into_py_any(py)?
            }
            Loss::States { p13, p31, p32, p23, p14 } => {
                StateLoss { p13, p31, p32, p23, p14 }.into_py_any(py)?
            }
            Loss::Steps { ref steps, period_ns } => {
                let steps = steps.iter().map(|step| (step.at_ns, step.probability)).collect();
                SteppedLoss { steps, period_ns }.into_py_any(py)?
            }
        };
        Ok(Link {
            rate: PyTuple::new(py, steps)?.unbind(),
            qdisc: Py::new(py, Qdisc(spec.qdisc.clone()))?,
            qdisc_steps: PyTuple::new(py, qdisc_steps)?.unbind(),
            framing: Py::new(py, LinkLayer(spec.framing))?,
            loss,
            impairments: (!spec.impairments.is_none())
                .then(|| Py::new(py, Impairments::of(&spec.impairments)))
                .transpose()?,
            ring: spec.ring.as_ref().map(ring).transpose()?,
            shaper: spec.shaper.map(|shaper| Py::new(py, Shaper::of(shaper))).transpose()?,
            police: spec.police.map(|police| Py::new(py, Police::of(police))).transpose()?,
            spec: spec.clone(),
        })
    }
}

#[pymethods]
impl Link {
    #[new]
    #[pyo3(signature = (name, tail, head, *, qdisc, framing, rate, delay_ns = 0, shaper = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        name: String,
        tail: String,
        head: String,
        qdisc: &Qdisc,
        framing: &LinkLayer,
        rate: Vec<(u64, u64)>,
        delay_ns: u64,
        shaper: Option<&Shaper>,
    ) -> PyResult<Link> {
        let spec = LinkSpec {
            name,
            tail,
            head,
            rate: steps(rate)?,
            rate_period_ns: None,
            delay_ns,
            qdisc: qdisc.0.clone(),
            qdisc_steps: Vec::new(),
            framing: framing.0,
            loss: Loss::None,
            impairments: link::Impairments::default(),
            ring: None,
            shaper: shaper.map(Shaper::params_of),
            police: None,
            replay_window: None,
            queues: None,
            sampled: true,
            asks_at_once: false,
        };
        Link::of(py, &spec)
    }

    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Link> {
        let spec = serde_json::from_str(text)
            .map_err(|error| PyValueError::new_err(format!("not a link: {error}")))?;
        Link::of(py, &spec)
    }

    fn to_json(&self) -> PyResult<String> {
        text_of(&self.spec)
    }

    fn with_rate(&self, py: Python<'_>, rate: Vec<(u64, u64)>) -> PyResult<Link> {
        Link::of(py, &LinkSpec { rate: steps(rate)?, rate_period_ns: None, ..self.spec.clone() })
    }

    fn with_qdisc(&self, py: Python<'_>, qdisc: &Qdisc) -> PyResult<Link> {
        let mut spec = LinkSpec { qdisc: qdisc.0.clone(), ..self.spec.clone() };
        // Another discipline does not have these parameters.
        if qdisc.0.kind() != self.spec.qdisc.kind() {
            spec.qdisc_steps.clear();
        }
        Link::of(py, &spec)
    }

    fn with_qdisc_steps(
        &self,
        py: Python<'_>,
        steps: Vec<(u64, PyRef<'_, Qdisc>)>,
    ) -> PyResult<Link> {
        let step = |(at_ns, qdisc): &(u64, PyRef<'_, Qdisc>)| QdiscStep {
            at_ns: *at_ns,
            qdisc: qdisc.0.clone(),
        };
        let qdisc_steps = steps.iter().map(step).collect();
        Link::of(py, &LinkSpec { qdisc_steps, ..self.spec.clone() })
    }

    /// See `_core.pyi`.
    fn lacking_change(&self) -> Option<String> {
        realised::lacking_change(&self.spec)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.spec.name
    }

    #[getter]
    fn tail(&self) -> &str {
        &self.spec.tail
    }

    #[getter]
    fn head(&self) -> &str {
        &self.spec.head
    }

    #[getter]
    fn rate_period_ns(&self) -> Option<u64> {
        self.spec.rate_period_ns
    }

    #[getter]
    fn delay_ns(&self) -> u64 {
        self.spec.delay_ns
    }

    #[getter]
    fn replay_window(&self) -> Option<u32> {
        self.spec.replay_window
    }

    #[getter]
    fn queues(&self) -> Option<u32> {
        Some(self.spec.queues.as_ref()?.count)
    }

    fn pinned_to(&self, flow: usize) -> Option<u32> {
        self.spec.queues.as_ref()?.pinned_to(flow)
    }

    #[getter]
    fn sampled(&self) -> bool {
        self.spec.sampled
    }

    fn __eq__(&self, other: &Link) -> bool {
        self.spec == other.spec
    }

    fn __repr__(&self) -> String {
        format!("Link({:?})", self.spec.name)
    }
}

/// Steps in order of time, the first at 0.
fn steps(rate: Vec<(u64, u64)>) -> PyResult<Vec<RateStep>> {
    let in_order = rate.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if !in_order || rate.first().is_some_and(|first| first.0 != 0) {
        return Err(PyValueError::new_err("steps of a rate are in order of time, the first at 0"));
    }
    Ok(rate.into_iter().map(|(at_ns, bps)| RateStep { at_ns, bps }).collect())
}

/// See `_core.pyi`.
#[pyclass(frozen, eq, get_all, module = "sojourn._core", name = "RateStep")]
#[derive(PartialEq)]
pub struct Step {
    at_ns: u64,
    bps: u64,
}

/// See `_core.pyi`.
#[pyclass(frozen, eq, get_all, module = "sojourn._core")]
#[derive(PartialEq)]
pub struct Ring {
    descriptors: u32,
    bql: bool,
    coalesce_ns: u64,
}

/// See `_core.pyi`.
#[pyclass(frozen, eq, get_all, module = "sojourn._core")]
#[derive(PartialEq)]
pub struct RandomLoss {
    probability: f64,
}

/// See `_core.pyi`.
#[pyclass(frozen, eq, get_all, module = "sojourn._core")]
#[derive(PartialEq)]
pub struct GilbertLoss {
    p: f64,
    r: f64,
    bad_loss: f64,
    good_loss: f64,
}

/// See `_core.pyi`.
#[pyclass(frozen, eq, get_all, module = "sojourn._core")]
#[derive(PartialEq)]
pub struct StateLoss {
    p13: f64,
    p31: f64,
    p32: f64,
    p23: f64,
    p14: f64,
}

/// See `_core.pyi`.
#[pyclass(frozen, eq, get_all, module = "sojourn._core")]
#[derive(PartialEq)]
pub struct SteppedLoss {
    steps: Vec<(u64, f64)>,
    period_ns: Option<u64>,
}

/// See `_core.pyi`.
#[pyclass(frozen, eq, get_all, module = "sojourn._core")]
#[derive(PartialEq)]
pub struct Impairments {
    jitter_ns: u64,
    jitter_correlation: u32,
    jitter_table: Option<Vec<i16>>,
    reorder: u64,
    reorder_correlation: u32,
    reorder_gap: u32,
    duplicate: u64,
    duplicate_correlation: u32,
    slot_min_ns: u64,
    slot_max_ns: u64,
    slot_packets: u32,
    slot_bytes: u32,
    delay_steps: Vec<(u64, u64)>,
    delay_period_ns: Option<u64>,
    overtake: bool,
    ecn: Option<&'static str>,
}

impl Impairments {
    fn of(spec: &link::Impairments) -> Impairments {
        let link::Impairments { jitter, reorder, duplicate, slot, .. } = spec;
        let table = jitter.and_then(|jitter| jitter.distribution.table());
        Impairments {
            jitter_ns: jitter.map_or(0, |jitter| jitter.scale_ns),
            jitter_correlation: jitter.map_or(0, |jitter| jitter.correlation),
            jitter_table: table.map(|table| table.to_vec()),
            reorder: reorder.map_or(0, |reorder| reorder.probability),
            reorder_correlation: reorder.map_or(0, |reorder| reorder.correlation),
            reorder_gap: reorder.map_or(0, |reorder| reorder.gap),
            duplicate: duplicate.map_or(0, |duplicate| duplicate.probability),
            duplicate_correlation: duplicate.map_or(0, |duplicate| duplicate.correlation),
            slot_min_ns: slot.map_or(0, |slot| slot.min_ns),
            slot_max_ns: slot.map_or(0, |slot| slot.max_ns),
            slot_packets: slot.and_then(|slot| slot.packets).unwrap_or(0),
            slot_bytes: slot.and_then(|slot| slot.bytes).unwrap_or(0),
            delay_steps: spec.delay_steps.iter().map(|step| (step.at_ns, step.delay_ns)).collect(),
            delay_period_ns: spec.delay_period_ns,
            overtake: spec.overtake,
            ecn: spec.ecn.map(link::EcnRemark::name),
        }
    }
}

// Flows -------------------------------------------------------------------------------------------

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Flow {
    spec: FlowSpec,
    #[pyo3(get)]
    path: Py<PyTuple>,
    #[pyo3(get)]
    back: Py<PyTuple>,
    #[pyo3(get)]
    traffic: Py<PyAny>,
    #[pyo3(get)]
    tcp: Option<Py<Tcp>>,
}

impl Flow {
    fn of(py: Python<'_>, spec: &FlowSpec) -> PyResult<Flow> {
        let tcp = spec.traffic.tcp().map(|tcp| Py::new(py, Tcp(tcp.clone()))).transpose()?;
        Ok(Flow {
            path: PyTuple::new(py, &spec.path)?.unbind(),
            back: PyTuple::new(py, &spec.back)?.unbind(),
            traffic: traffic_of(py, &spec.traffic, tcp.as_ref())?,
            tcp,
            spec: spec.clone(),
        })
    }
}

fn traffic_of(py: Python<'_>, traffic: &Traffic, tcp: Option<&Py<Tcp>>) -> PyResult<Py<PyAny>> {
    let tcp = || tcp.map(|tcp| tcp.clone_ref(py)).expect("its traffic is TCP");
    let draw = |draw: &traffic::Draw| Py::new(py, Draw(draw.clone()));
    match traffic.sent() {
        Traffic::Bulk { bytes, ref pace, .. } => {
            Bulk { bytes, pace: pace.clone(), tcp: tcp() }.into_py_any(py)
        }
        Traffic::Transfers { ref bytes, ref pause_ns, objects, .. } => {
            let (bytes, pause_ns) = (draw(bytes)?, draw(pause_ns)?);
            Transfers { bytes, pause_ns, objects, tcp: tcp() }.into_py_any(py)
        }
        Traffic::Requests { ref request_bytes, ref bytes, ref pause_ns, .. } => {
            let (request_bytes, bytes) = (draw(request_bytes)?, draw(bytes)?);
            Requests { request_bytes, bytes, pause_ns: draw(pause_ns)?, tcp: tcp() }.into_py_any(py)
        }
        Traffic::Stream { ref ladder_bps, segment_ns, ahead_ns, .. } => {
            let ladder_bps = PyTuple::new(py, ladder_bps)?.unbind();
            Stream { ladder_bps, segment_ns, ahead_ns, tcp: tcp() }.into_py_any(py)
        }
        Traffic::Udp { bps, packet_bytes, ref on_ns, ref off_ns } => {
            let on_ns = on_ns.as_ref().map(draw).transpose()?;
            let off_ns = off_ns.as_ref().map(draw).transpose()?;
            Udp { bps, packet_bytes, on_ns, off_ns }.into_py_any(py)
        }
        Traffic::Call | Traffic::Capture { .. } => unreachable!("it is sent as datagrams"),
        Traffic::Program => ProgramTraffic.into_py_any(py),
        Traffic::Ping { interval_ns, packet_bytes } => {
            Ping { interval_ns, packet_bytes }.into_py_any(py)
        }
        Traffic::Video { ref frames, payload_bytes } => {
            let frames = match *frames {
                Frames::Model { bps, fps, gop, i_ratio, cv } => {
                    ModelFrames { bps, fps, gop, i_ratio, cv }.into_py_any(py)?
                }
                Frames::Trace { ref frames, period_ns } => {
                    let frames = PyTuple::new(py, frames)?.unbind();
                    TraceFrames { frames, period_ns }.into_py_any(py)?
                }
            };
            Video { frames, payload_bytes }.into_py_any(py)
        }
    }
}

#[pymethods]
impl Flow {
    #[new]
    #[pyo3(signature = (name, traffic, *, group, path, back, start_ns, stop_ns))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        name: String,
        traffic: &Bound<'_, PyAny>,
        group: u32,
        path: Vec<u32>,
        back: Vec<u32>,
        start_ns: u64,
        stop_ns: Option<u64>,
    ) -> PyResult<Flow> {
        let traffic = if let Ok(ping) = traffic.cast::<Ping>() {
            let &Ping { interval_ns, packet_bytes } = ping.get();
            Traffic::Ping { interval_ns, packet_bytes }
        } else {
            let udp = traffic.cast::<Udp>()?.get();
            let &Udp { bps, packet_bytes, .. } = udp;
            let law = |draw: &Option<Py<Draw>>| draw.as_ref().map(|draw| draw.get().0.clone());
            let (on_ns, off_ns) = (law(&udp.on_ns), law(&udp.off_ns));
            Traffic::Udp { bps, packet_bytes, on_ns, off_ns }
        };
        let spec = FlowSpec {
            name,
            group,
            path,
            back,
            path_extra_ns: 0,
            back_extra_ns: 0,
            start_ns,
            stop_ns,
            jitter_ns: 0,
            ds: DsField::BEST_EFFORT,
            tunnel: None,
            hosts: [None, None],
            traffic,
        };
        Flow::of(py, &spec)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.spec.name
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.spec.traffic.kind().word()
    }

    #[getter]
    fn finite(&self) -> bool {
        self.spec.traffic.finite()
    }

    #[getter]
    fn group(&self) -> u32 {
        self.spec.group
    }

    #[getter]
    fn path_extra_ns(&self) -> u64 {
        self.spec.path_extra_ns
    }

    #[getter]
    fn back_extra_ns(&self) -> u64 {
        self.spec.back_extra_ns
    }

    #[getter]
    fn start_ns(&self) -> u64 {
        self.spec.start_ns
    }

    #[getter]
    fn stop_ns(&self) -> Option<u64> {
        self.spec.stop_ns
    }

    #[getter]
    fn jitter_ns(&self) -> u64 {
        self.spec.jitter_ns
    }

    #[getter]
    fn hosts(&self) -> (Option<&str>, Option<&str>) {
        let [source, target] = &self.spec.hosts;
        (source.as_deref(), target.as_deref())
    }

    #[getter]
    fn ds(&self) -> u8 {
        self.spec.ds.0
    }

    #[getter]
    fn tunnel(&self) -> Option<&str> {
        self.spec.tunnel.as_deref()
    }

    #[getter]
    fn packet_bytes(&self) -> (u32, Option<u32>) {
        self.spec.traffic.packet_bytes()
    }

    fn traffic_plan<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let plan = plain(py, &self.spec.traffic.sent())?;
        if plan.contains("tcp")? {
            plan.del_item("tcp")?;
        }
        Ok(plan)
    }

    fn __eq__(&self, other: &Flow) -> bool {
        self.spec == other.spec
    }

    fn __repr__(&self) -> String {
        format!("Flow({:?})", self.spec.name)
    }
}

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct ProgramTraffic;

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Bulk {
    #[pyo3(get)]
    bytes: Option<u64>,
    pace: Option<traffic::Pace>,
    #[pyo3(get)]
    tcp: Py<Tcp>,
}

#[pymethods]
impl Bulk {
    fn mean_bps(&self, span_ns: u64) -> f64 {
        self.pace.as_ref().map_or(f64::INFINITY, |pace| pace.mean_bps(span_ns))
    }
}

/// See `_core.pyi`.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub struct Transfers {
    bytes: Py<Draw>,
    pause_ns: Py<Draw>,
    objects: Option<u32>,
    tcp: Py<Tcp>,
}

/// See `_core.pyi`.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub struct Requests {
    request_bytes: Py<Draw>,
    bytes: Py<Draw>,
    pause_ns: Py<Draw>,
    tcp: Py<Tcp>,
}

/// See `_core.pyi`.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub struct Stream {
    ladder_bps: Py<PyTuple>,
    segment_ns: u64,
    ahead_ns: u64,
    tcp: Py<Tcp>,
}

/// See `_core.pyi`.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub struct Udp {
    bps: u64,
    packet_bytes: u32,
    on_ns: Option<Py<Draw>>,
    off_ns: Option<Py<Draw>>,
}

#[pymethods]
impl Udp {
    #[new]
    fn new(bps: u64, packet_bytes: u32) -> Udp {
        Udp { bps, packet_bytes, on_ns: None, off_ns: None }
    }
}

/// See `_core.pyi`.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub struct Ping {
    interval_ns: u64,
    packet_bytes: u32,
}

#[pymethods]
impl Ping {
    #[new]
    fn new(interval_ns: u64, packet_bytes: u32) -> Ping {
        Ping { interval_ns, packet_bytes }
    }
}

/// See `_core.pyi`.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub struct Video {
    frames: Py<PyAny>,
    payload_bytes: u32,
}

/// See `_core.pyi`.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub struct ModelFrames {
    bps: u64,
    fps: f64,
    gop: u32,
    i_ratio: f64,
    cv: f64,
}

/// See `_core.pyi`.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub struct TraceFrames {
    frames: Py<PyTuple>,
    period_ns: u64,
}

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Draw(traffic::Draw);

#[pymethods]
impl Draw {
    #[getter]
    fn mean(&self) -> f64 {
        self.0.mean()
    }

    fn __eq__(&self, other: &Draw) -> bool {
        self.0 == other.0
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// See `_core.pyi`.
#[pyclass(frozen, eq, module = "sojourn._core")]
#[derive(PartialEq)]
pub struct Tcp(pub Endpoints);

/// Attributes that are fields of its parameters, under the same name.
macro_rules! tcp_attributes {
    ($($name:ident: $type:ty = $($field:ident).+;)+) => {
        #[pymethods]
        impl Tcp {
            $(#[getter]
            fn $name(&self) -> $type {
                self.0.params.$($field).+
            })+

            #[getter]
            fn congestion(&self) -> &str {
                &self.0.congestion
            }

            #[getter]
            fn own(&self) -> Option<(&str, &str, Option<&str>, Option<&str>)> {
                let own = self.0.params.own.as_ref()?;
                Some((&own.file, &own.class, own.words.as_deref(), own.source.as_deref()))
            }

            #[getter]
            fn profile(&self) -> &'static str {
                self.0.profile
            }

            #[getter]
            fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let parameters = PyDict::new(py);
                for (name, value) in self.0.parameters() {
                    parameters.set_item(name, json_to_python(py, &value)?)?;
                }
                Ok(parameters)
            }
        }
    };
}

tcp_attributes! {
    mss: u32 = mss;
    header_bytes: u32 = header_bytes;
    ack_bytes: u32 = ack_bytes;
    timestamps: bool = timestamps;
    ecn: bool = ecn;
    accecn: bool = accecn;
    sack: bool = recovery.sack;
    dsack: bool = recovery.dsack;
    frto: bool = recovery.frto;
    rack: bool = recovery.rack;
    tlp: bool = recovery.tlp;
    initial_window: u32 = growth.initial_window;
    slow_start_after_idle: bool = growth.slow_start_after_idle;
    max_window: Option<u32> = growth.max_window;
    min_rto_ns: u64 = timers.min_rto_ns;
    sack_delay_ns: u64 = acks.sack_delay_ns;
    receive_buffer: u64 = buffers.receive_buffer;
    receive_buffer_max: u64 = buffers.receive_buffer_max;
}

/// Adds the classes to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Realised>()?;
    module.add_class::<Record>()?;
    module.add_class::<Program>()?;
    module.add_class::<Link>()?;
    module.add_class::<Step>()?;
    module.add_class::<Ring>()?;
    module.add_class::<RandomLoss>()?;
    module.add_class::<GilbertLoss>()?;
    module.add_class::<StateLoss>()?;
    module.add_class::<SteppedLoss>()?;
    module.add_class::<Impairments>()?;
    module.add_class::<Flow>()?;
    module.add_class::<Bulk>()?;
    module.add_class::<Transfers>()?;
    module.add_class::<Requests>()?;
    module.add_class::<Stream>()?;
    module.add_class::<Udp>()?;
    module.add_class::<Ping>()?;
    module.add_class::<Video>()?;
    module.add_class::<ProgramTraffic>()?;
    module.add_class::<ModelFrames>()?;
    module.add_class::<TraceFrames>()?;
    module.add_class::<Draw>()?;
    module.add_class::<Tcp>()
}
