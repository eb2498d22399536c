//! tc's syntax and the records of the disciplines, for Python: frozen values, and errors as
//! `sojourn.units.UnitError`.

use ::tc::linux::{CauseCounter, HEADER, Place, State, Why};
use ::tc::{Discipline, Record, TcError, Value, layer, numbers};
use link::{Cells, Framing, PolicerParams, ShaperParams};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyString, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::quantities::shown;

/// The error, with its place in characters.
fn unit_error(py: Python<'_>, text: &str, error: TcError) -> PyErr {
    let offset = text.get(..error.at.start).map_or(0, |before| before.chars().count());
    let raised = || {
        let class = py.import("sojourn.units")?.getattr("UnitError")?;
        class.call1((error.problem, error.hint, offset))
    };
    raised().map_or_else(|error| error, PyErr::from_value)
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Unset => Ok(py.None().into_bound(py)),
        Value::Flag(flag) => flag.into_bound_py_any(py),
        Value::Count(count) => count.into_bound_py_any(py),
        Value::Integer(integer) => integer.into_bound_py_any(py),
        Value::Real(real) => real.into_bound_py_any(py),
        Value::Text(text) => text.into_bound_py_any(py),
    }
}

fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    Ok(if value.is_none() {
        Value::Unset
    } else if value.is_instance_of::<PyBool>() {
        Value::Flag(value.extract()?)
    } else if value.is_instance_of::<PyString>() {
        Value::Text(value.extract::<String>()?.into())
    } else if let Ok(count) = value.extract::<u64>() {
        Value::Count(count)
    } else {
        Value::Real(value.extract()?)
    })
}

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Qdisc(pub Discipline);

#[pymethods]
impl Qdisc {
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Qdisc> {
        Discipline::parse(text).map(Qdisc).map_err(|error| unit_error(py, text, error))
    }

    #[staticmethod]
    fn from_params(params: &Bound<'_, PyAny>) -> PyResult<Qdisc> {
        let py = params.py();
        let given = PyDict::new(py);
        given.update(params.cast()?)?;
        let fields: PyResult<Vec<_>> =
            given.iter().map(|(name, value)| Ok((name.extract()?, from_python(&value)?))).collect();
        Discipline::from_params(fields?).map(Qdisc).map_err(|error| unit_error(py, "", error))
    }

    #[staticmethod]
    fn live_cake(
        py: Python<'_>,
        words: &str,
        bps: u64,
        link: Option<&LinkLayer>,
        arriving: bool,
    ) -> PyResult<Qdisc> {
        let cake = ::tc::disciplines::cake::live(words, bps, link.map(|link| link.0), arriving);
        cake.map(Qdisc).map_err(|error| unit_error(py, words, error))
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    #[getter]
    fn variant(&self) -> Option<&'static str> {
        self.0.variant()
    }

    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let params = PyDict::new(py);
        params.set_item("kind", self.0.kind())?;
        for (name, value) in self.0.fields().iter() {
            params.set_item(name, to_python(py, value)?)?;
        }
        if let Some(child) = self.0.child() {
            params.set_item(::tc::CHILD, child.text())?;
        }
        Ok(params)
    }

    #[getter]
    fn child(&self) -> Option<Qdisc> {
        self.0.child().cloned().map(Qdisc)
    }

    #[getter]
    fn text(&self) -> String {
        self.0.text()
    }

    fn whole_text(&self, mtu: u32) -> String {
        self.0.whole_text(mtu)
    }

    fn tins(&self, mtu: u32) -> Vec<(&'static str, u64, u64, u64, u32)> {
        let Some(::qdisc::Params::Cake(cake) | ::qdisc::Params::CakeMq(cake)) = self.0.params()
        else {
            return Vec::new();
        };
        let plain = |tin: ::qdisc::TinNumbers| {
            (tin.name, tin.threshold.0, tin.target.0, tin.interval.0, tin.quantum)
        };
        cake.tin_numbers(mtu).into_iter().map(plain).collect()
    }

    #[getter]
    fn notes(&self) -> Vec<(String, String, usize)> {
        self.0
            .notes
            .iter()
            .map(|note| (note.message.clone(), note.hint.clone(), note.at.start))
            .collect()
    }

    #[getter]
    fn record(&self) -> QdiscRecord {
        QdiscRecord(self.0.record())
    }

    fn at(&self, rate_bps: u64) -> Qdisc {
        Qdisc(self.0.at(rate_bps))
    }

    #[pyo3(name = "with_")]
    fn with_value(&self, field: &str, value: &Bound<'_, PyAny>) -> PyResult<Qdisc> {
        if !self.0.fields().has(field) {
            return Err(PyValueError::new_err(format!(
                "{} has no parameter {field}",
                self.0.kind()
            )));
        }
        Ok(Qdisc(self.0.with(field, from_python(value)?)))
    }

    #[pyo3(signature = (header_bytes = HEADER))]
    fn command(&self, py: Python<'_>, header_bytes: u32) -> PyResult<String> {
        let command = self.0.counting(header_bytes).and_then(|qdisc| qdisc.command());
        command.map_err(|error| unit_error(py, "", error))
    }

    fn change_command(&self, py: Python<'_>) -> PyResult<String> {
        self.0.change_command().map_err(|error| unit_error(py, "", error))
    }

    fn changed(&self, py: Python<'_>, text: &str) -> PyResult<Qdisc> {
        self.0.changed(text).map(Qdisc).map_err(|error| unit_error(py, text, error))
    }

    fn tree(&self, device: &str, handle: &str) -> Vec<String> {
        self.0.tree(device, handle)
    }

    fn packed_options<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.packed_options().map(|bytes| PyBytes::new(py, &bytes))
    }

    #[getter]
    fn queue_length(&self) -> Option<u64> {
        self.0.queue_length()
    }

    fn options(&self) -> Option<Vec<(String, u64)>> {
        self.0.options()
    }

    #[getter]
    fn packets(&self) -> u64 {
        self.0.packets()
    }

    #[getter]
    fn lacking(&self) -> Option<String> {
        self.0.lacking()
    }

    #[getter]
    fn shapes(&self) -> bool {
        self.0.shapes()
    }

    fn without_a_rate(&self) -> Option<(String, String)> {
        self.0.without_a_rate().map(|error| (error.problem, error.hint))
    }

    fn __eq__(&self, other: &Qdisc) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.0.text())
    }

    fn __str__(&self) -> String {
        self.0.text()
    }

    fn __repr__(&self) -> String {
        format!("Qdisc({:?})", self.0.text())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let make = slf.get_type().getattr("from_params")?;
        (make, (slf.get().params(slf.py())?,)).into_bound_py_any(slf.py())
    }
}

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct QdiscRecord(&'static Record);

/// A counter of packets: (cause, names added, names subtracted).
type Counter = (&'static str, Vec<&'static str>, Vec<&'static str>);

fn counter(tell: &CauseCounter) -> Counter {
    (tell.cause.word(), tell.plus.to_vec(), tell.minus.to_vec())
}

#[pymethods]
impl QdiscRecord {
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind
    }

    #[getter]
    fn simulated(&self) -> bool {
        self.0.simulated
    }

    #[getter]
    fn for_each_queue(&self) -> bool {
        self.0.for_each_queue
    }

    #[getter]
    fn least(&self) -> &'static str {
        self.0.least
    }

    #[getter]
    fn nearest(&self) -> Option<&'static str> {
        self.0.nearest
    }

    #[getter]
    fn counts_bytes(&self) -> bool {
        self.0.counts == ::tc::Counts::Bytes
    }

    #[getter]
    fn variants(&self) -> Vec<Option<&'static str>> {
        self.0.grammars.iter().map(|grammar| grammar.variant).collect()
    }

    #[pyo3(signature = (variant = None))]
    fn in_linux(&self, variant: Option<&str>) -> bool {
        self.0.in_linux(variant)
    }

    #[pyo3(signature = (variant = None))]
    fn usage(&self, variant: Option<&str>) -> PyResult<String> {
        Ok(self.0.usage(self.grammar(variant)?))
    }

    #[pyo3(signature = (variant = None))]
    fn words(&self, variant: Option<&str>) -> PyResult<Vec<(&'static str, Option<&'static str>)>> {
        let grammar = self.grammar(variant)?;
        let valued = grammar.words.iter().map(|word| (word.word, Some(word.shows)));
        Ok(valued.chain(grammar.flags.iter().map(|flag| (flag.word, None))).collect())
    }

    #[getter]
    fn since(&self) -> Option<(u32, u32)> {
        self.0.linux.as_ref().and_then(|linux| linux.since)
    }

    #[getter]
    fn in_order(&self) -> PyResult<bool> {
        Ok(self.linux()?.in_order)
    }

    #[getter]
    fn drops_at(&self) -> PyResult<&'static str> {
        Ok(self.linux()?.end.word())
    }

    #[getter]
    fn xstats(&self) -> PyResult<(usize, Vec<&'static str>)> {
        let xstats = self.linux()?.xstats;
        Ok((xstats.skipped, xstats.names.to_vec()))
    }

    #[getter]
    fn told_options(&self) -> PyResult<Vec<(&'static str, &'static str, usize)>> {
        let place = |place: &Place| match *place {
            Place::Attribute(number) => ("attribute", usize::from(number)),
            Place::Word(index) => ("word", index),
        };
        let read = self.linux()?.read.iter().map(|(name, at)| {
            let (sort, number) = place(at);
            (*name, sort, number)
        });
        Ok(read.collect())
    }

    #[getter]
    fn drops<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        why(py, &self.linux()?.drops)
    }

    #[getter]
    fn marks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        why(py, &self.linux()?.marks)
    }

    #[getter]
    fn state(&self) -> PyResult<Vec<StateColumn>> {
        Ok(self.linux()?.state.iter().copied().map(StateColumn).collect())
    }

    fn __repr__(&self) -> String {
        format!("QdiscRecord({:?})", self.0.kind)
    }
}

impl QdiscRecord {
    fn linux(&self) -> PyResult<&'static ::tc::linux::Linux> {
        let none = || PyValueError::new_err(format!("Linux has no {}", self.0.kind));
        self.0.linux.as_ref().ok_or_else(none)
    }

    fn grammar(&self, variant: Option<&str>) -> PyResult<&'static ::tc::Grammar> {
        let none = || PyValueError::new_err(format!("{} has no variant {variant:?}", self.0.kind));
        self.0.grammar(variant).ok_or_else(none)
    }
}

/// (cause on arrival, cause after waiting, counters).
fn why<'py>(py: Python<'py>, why: &Why) -> PyResult<Bound<'py, PyTuple>> {
    let (arrival, departure) = match why {
        Why::Always(cause) => (cause.word(), cause.word()),
        Why::ByEnd { arrival, departure } => (arrival.word(), departure.word()),
        Why::Counted(counters) => (counters[0].cause.word(), counters[0].cause.word()),
    };
    let counters: Vec<Counter> = why.counters().iter().map(counter).collect();
    (arrival, departure, counters).into_pyobject(py)
}

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct StateColumn(State);

#[pymethods]
impl StateColumn {
    #[getter]
    fn column(&self) -> &'static str {
        self.0.column
    }

    #[getter]
    fn plus(&self) -> Vec<&'static str> {
        self.0.plus.to_vec()
    }

    #[getter]
    fn minus(&self) -> Vec<&'static str> {
        self.0.minus.to_vec()
    }

    #[getter]
    fn whole(&self) -> f64 {
        self.0.whole
    }

    #[getter]
    fn while_on(&self) -> Option<&'static str> {
        self.0.while_on
    }

    #[getter]
    fn else_field(&self) -> Option<&'static str> {
        self.0.else_field
    }
}

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct LinkLayer(pub Framing);

#[pymethods]
impl LinkLayer {
    #[new]
    #[pyo3(signature = (header_bytes, overhead_bytes, minimum_bytes = 0, cells = "none"))]
    fn new(
        header_bytes: u32,
        overhead_bytes: u32,
        minimum_bytes: u32,
        cells: &str,
    ) -> PyResult<LinkLayer> {
        let cells = cells_of(cells)?;
        Ok(LinkLayer(Framing { header_bytes, overhead_bytes, minimum_bytes, cells }))
    }

    #[staticmethod]
    fn parse(value: &Bound<'_, PyAny>) -> PyResult<LinkLayer> {
        let py = value.py();
        if let Ok(layer) = value.cast::<LinkLayer>() {
            return Ok(LinkLayer(layer.get().0));
        }
        match value.extract::<&str>() {
            Ok(text) => {
                layer::read_layer(text).map(LinkLayer).map_err(|error| unit_error(py, text, error))
            }
            Err(_) => Err(unit_error(py, "", layer::not_a_layer(&shown(value)?))),
        }
    }

    #[getter]
    fn header_bytes(&self) -> u32 {
        self.0.header_bytes
    }

    #[getter]
    fn overhead_bytes(&self) -> u32 {
        self.0.overhead_bytes
    }

    #[getter]
    fn minimum_bytes(&self) -> u32 {
        self.0.minimum_bytes
    }

    #[getter]
    fn cells(&self) -> &'static str {
        layer::cells_word(self.0.cells)
    }

    #[getter]
    fn text(&self) -> String {
        layer::write_layer(&self.0)
    }

    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let params = PyDict::new(py);
        params.set_item("header_bytes", self.0.header_bytes)?;
        params.set_item("overhead_bytes", self.0.overhead_bytes)?;
        params.set_item("minimum_bytes", self.0.minimum_bytes)?;
        params.set_item("cells", self.cells())?;
        Ok(params)
    }

    fn __eq__(&self, other: &LinkLayer) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.text())
    }

    fn __repr__(&self) -> String {
        format!("LinkLayer({:?})", self.text())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let Framing { header_bytes, overhead_bytes, minimum_bytes, .. } = slf.get().0;
        let numbers = (header_bytes, overhead_bytes, minimum_bytes, slf.get().cells());
        (slf.get_type(), numbers).into_bound_py_any(slf.py())
    }
}

fn cells_of(word: &str) -> PyResult<Cells> {
    [Cells::None, Cells::Atm, Cells::Ptm]
        .into_iter()
        .find(|cells| layer::cells_word(*cells) == word)
        .ok_or_else(|| PyValueError::new_err(format!("{word:?} is not a kind of cells")))
}

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Shaper(::tc::Shaper);

impl Shaper {
    /// The words of a link's shaper.
    pub fn of(params: ShaperParams) -> Shaper {
        Shaper(params.into())
    }

    /// The parameters of a link's shaper.
    pub fn params_of(&self) -> ShaperParams {
        self.0.params
    }
}

#[pymethods]
impl Shaper {
    #[new]
    #[pyo3(signature = (bps, burst_bytes, overhead_bytes = 0, minimum_bytes = 0, cells = "none"))]
    fn new(
        bps: u64,
        burst_bytes: u64,
        overhead_bytes: u32,
        minimum_bytes: u32,
        cells: &str,
    ) -> PyResult<Shaper> {
        let cells = cells_of(cells)?;
        let params = ShaperParams { bps, burst_bytes, overhead_bytes, minimum_bytes, cells };
        Ok(Shaper::of(params))
    }

    #[staticmethod]
    fn parse(value: &Bound<'_, PyAny>) -> PyResult<Option<Shaper>> {
        let py = value.py();
        if value.is_none() {
            return Ok(None);
        }
        if let Ok(shaper) = value.cast::<Shaper>() {
            return Ok(Some(Shaper::of(shaper.get().params_of())));
        }
        match value.extract::<&str>() {
            Ok(text) => ::tc::Shaper::parse(text)
                .map(|shaper| shaper.map(Shaper))
                .map_err(|error| unit_error(py, text, error)),
            Err(_) => Err(unit_error(py, "", ::tc::not_a_shaper(&shown(value)?))),
        }
    }

    #[getter]
    fn bps(&self) -> u64 {
        self.0.params.bps
    }

    #[getter]
    fn burst_bytes(&self) -> u64 {
        self.0.params.burst_bytes
    }

    #[getter]
    fn overhead_bytes(&self) -> u32 {
        self.0.params.overhead_bytes
    }

    #[getter]
    fn minimum_bytes(&self) -> u32 {
        self.0.params.minimum_bytes
    }

    #[getter]
    fn cells(&self) -> &'static str {
        layer::cells_word(self.0.params.cells)
    }

    #[getter]
    fn text(&self) -> String {
        self.0.text()
    }

    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let params = PyDict::new(py);
        params.set_item("bps", self.0.params.bps)?;
        params.set_item("burst_bytes", self.0.params.burst_bytes)?;
        params.set_item("overhead_bytes", self.0.params.overhead_bytes)?;
        params.set_item("minimum_bytes", self.0.params.minimum_bytes)?;
        params.set_item("cells", self.cells())?;
        Ok(params)
    }

    fn __eq__(&self, other: &Shaper) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.text())
    }

    fn __repr__(&self) -> String {
        format!("Shaper({:?})", self.text())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let ShaperParams { bps, burst_bytes, overhead_bytes, minimum_bytes, .. } =
            slf.get().0.params;
        let numbers = (bps, burst_bytes, overhead_bytes, minimum_bytes, slf.get().cells());
        (slf.get_type(), numbers).into_bound_py_any(slf.py())
    }
}

/// See `_core.pyi`.
#[pyclass(frozen, get_all, eq, hash, module = "sojourn._core")]
#[derive(PartialEq, Eq, Hash)]
pub struct Police {
    bps: u64,
    burst_bytes: u64,
    mtu_bytes: u32,
    overhead_bytes: u32,
    text: String,
}

impl Police {
    /// The words of a link's policer.
    pub fn of(params: PolicerParams) -> Police {
        let PolicerParams { bps, burst_bytes, mtu_bytes, overhead_bytes } = params;
        let text = ::tc::Police::from(params).text();
        Police { bps, burst_bytes, mtu_bytes, overhead_bytes, text }
    }
}

/// See `_core.pyi`.
#[pyfunction]
fn read_rate(py: Python<'_>, text: &str) -> PyResult<u64> {
    numbers::read_rate(text).map_err(|error| unit_error(py, text, error))
}

/// See `_core.pyi`.
#[pyfunction]
fn write_rate(bps: u64) -> String {
    numbers::write_rate(bps)
}

/// See `_core.pyi`.
#[pyfunction]
fn default_burst(bps: u64) -> u64 {
    ::tc::default_burst(bps)
}

/// Adds the classes, functions and tables to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<Qdisc>()?;
    module.add_class::<QdiscRecord>()?;
    module.add_class::<StateColumn>()?;
    module.add_class::<LinkLayer>()?;
    module.add_class::<Shaper>()?;
    module.add_class::<Police>()?;
    module.add_function(wrap_pyfunction!(read_rate, module)?)?;
    module.add_function(wrap_pyfunction!(write_rate, module)?)?;
    module.add_function(wrap_pyfunction!(default_burst, module)?)?;
    let records = PyDict::new(py);
    for record in ::tc::RECORDS {
        records.set_item(record.kind, Py::new(py, QdiscRecord(record))?)?;
    }
    module.add("QDISCS", records)?;
    let layers = PyDict::new(py);
    for (name, framing) in layer::LAYERS {
        layers.set_item(name, Py::new(py, LinkLayer(*framing))?)?;
    }
    module.add("LINK_LAYERS", layers)?;
    module.add("LINUX_RELEASE", ::tc::linux::RELEASE)
}
