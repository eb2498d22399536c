//! The scenario language for Python: turns text and plain values into a frozen `Scenario`, and its
//! problems into one `ScenarioError`.

use crate::interrupt::CtrlC;
use crate::realised::{Realised, Tcp};
use crate::values::{table_of, value_of};
use ::scenario::{Key, Loaded, Part, Source, Table, Value};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PyTuple};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use traffic::{KindRecord, Packets, TrafficKind};

// Values
// -------------------------------------------------------------------------------------------------

fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Bool(truth) => truth.into_bound_py_any(py),
        Value::Int(number) => number.into_bound_py_any(py),
        Value::Float(number) => number.into_bound_py_any(py),
        Value::Text(text) => text.into_bound_py_any(py),
        Value::List(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_python(py, item)?)?;
            }
            Ok(list.into_any())
        }
        Value::Table(table) => Ok(table_to_python(py, table)?.into_any()),
    }
}

fn table_to_python<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in table.iter() {
        dict.set_item(key, to_python(py, value)?)?;
    }
    Ok(dict)
}

/// See `_core.pyi`.
#[pyfunction]
pub fn parse_toml<'py>(
    py: Python<'py>,
    text: &str,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let (table, places) = scenario::read_toml(text)
        .map_err(|wrong| PyValueError::new_err((wrong.message, wrong.place.0, wrong.place.1)))?;
    let all = PyDict::new(py);
    for (key, place) in places {
        all.set_item(key, place)?;
    }
    Ok((table_to_python(py, &table)?, all))
}

/// See `_core.pyi`.
#[pyfunction]
pub fn dotted_key(word: &str) -> Option<String> {
    scenario::dotted_key(word)
}

/// See `_core.pyi`.
#[pyfunction]
pub fn scenario_keys() -> HashMap<&'static str, Vec<&'static str>> {
    let names = |keys: Vec<scenario::KeyOf>| keys.into_iter().map(|key| key.name).collect();
    scenario::language().into_iter().map(|(table, keys)| (table, names(keys))).collect()
}

/// See `_core.pyi`.
#[pyclass(frozen, get_all, module = "sojourn._core", name = "TrafficKind")]
pub struct Kind {
    word: &'static str,
    also: &'static [&'static str],
    tcp: bool,
    probe: bool,
    headers: Option<u32>,
    greedy: bool,
    kept: bool,
    speech: bool,
    in_linux: bool,
    in_simulator: bool,
    listed_as: &'static str,
}

#[pymethods]
impl Kind {
    fn __repr__(&self) -> String {
        format!("<TrafficKind {}>", self.word)
    }
}

/// See `_core.pyi`.
#[pyfunction]
pub fn traffic_kinds() -> Vec<Kind> {
    let kind = |kind: &TrafficKind| {
        let &KindRecord {
            word,
            also,
            packets,
            greedy,
            kept,
            speech,
            in_linux,
            in_simulator,
            listed_as,
        } = kind.record();
        let headers = match packets {
            Packets::Datagrams { headers } => Some(headers),
            Packets::Segments | Packets::Echoes | Packets::Programs => None,
        };
        let (tcp, probe, listed_as) = (kind.is_tcp(), kind.is_probe(), listed_as.word());
        Kind {
            word,
            also,
            tcp,
            probe,
            headers,
            greedy,
            kept,
            speech,
            in_linux,
            in_simulator,
            listed_as,
        }
    };
    TrafficKind::ALL.iter().map(kind).collect()
}

/// See `_core.pyi`.
#[pyfunction]
pub fn tcp_profiles(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let profiles = PyDict::new(py);
    for name in scenario::PROFILES {
        profiles.set_item(name, Tcp(scenario::profile(name)))?;
    }
    Ok(profiles)
}

// Problems
// -------------------------------------------------------------------------------------------------

/// See `_core.pyi`.
#[pyclass(frozen, eq, module = "sojourn._core", from_py_object)]
#[derive(Clone, PartialEq)]
pub struct Problem(scenario::Problem);

#[pymethods]
impl Problem {
    #[new]
    #[pyo3(
        signature = (message, hint = "", key = Vec::new(), file = "", line = None, column = None, source = ""),
        text_signature = "(message, hint='', key=(), file='', line=None, column=None, source='')"
    )]
    fn new(
        message: &str,
        hint: &str,
        key: Vec<Bound<'_, PyAny>>,
        file: &str,
        line: Option<usize>,
        column: Option<usize>,
        source: &str,
    ) -> PyResult<Problem> {
        let part = |part: &Bound<'_, PyAny>| match part.extract::<usize>() {
            Ok(index) => Ok(Part::Index(index)),
            Err(_) => part.extract().map(Part::Name),
        };
        let key: Key = key.iter().map(part).collect::<PyResult<_>>()?;
        Ok(Problem(scenario::Problem {
            file: file.to_owned(),
            place: line.map(|line| (line, column.unwrap_or(1))),
            source: source.to_owned(),
            ..scenario::Problem::new(message, hint, key)
        }))
    }

    #[getter]
    fn message(&self) -> &str {
        &self.0.message
    }

    #[getter]
    fn hint(&self) -> &str {
        &self.0.hint
    }

    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let parts: PyResult<Vec<_>> = self
            .0
            .key
            .iter()
            .map(|part| match part {
                Part::Name(name) => name.into_bound_py_any(py),
                Part::Index(index) => index.into_bound_py_any(py),
            })
            .collect();
        PyTuple::new(py, parts?)
    }

    #[getter]
    fn file(&self) -> &str {
        &self.0.file
    }

    #[getter]
    fn line(&self) -> Option<usize> {
        self.0.place.map(|(line, _)| line)
    }

    #[getter]
    fn column(&self) -> Option<usize> {
        self.0.place.map(|(_, column)| column)
    }

    #[getter]
    fn source(&self) -> &str {
        &self.0.source
    }

    #[getter]
    fn dotted(&self) -> String {
        self.0.dotted()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Problem({:?})", self.0.to_string())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }
}

/// The exception with all problems.
fn refusal(py: Python<'_>, problems: Vec<scenario::Problem>) -> PyErr {
    let raise = || {
        let problems: Vec<_> = problems.into_iter().map(Problem).collect();
        py.import("sojourn.scenario.errors")?.getattr("ScenarioError")?.call1((problems,))
    };
    raise().map_or_else(|error| error, PyErr::from_value)
}

// Scenarios
// -------------------------------------------------------------------------------------------------

/// See `_core.pyi`.
#[pyclass(frozen, eq, module = "sojourn._core")]
#[derive(Clone, PartialEq)]
pub struct Scenario(Loaded);

type Open = Py<PyAny>;

/// A trace's bytes, read by a Python function. The function raises OSError with the reason.
fn opened(open: Option<&Open>, name: &str) -> Result<Vec<u8>, String> {
    let Some(open) = open else { return scenario::no_file(name) };
    Python::attach(|py| {
        let data = open.call1(py, (name,)).and_then(|data| data.extract::<Vec<u8>>(py));
        data.map_err(|error| {
            let value = error.value(py);
            let reason = value.getattr("strerror").ok().filter(|reason| !reason.is_none());
            reason.unwrap_or_else(|| value.clone().into_any()).to_string()
        })
    })
}

#[pymethods]
impl Scenario {
    #[staticmethod]
    #[pyo3(signature = (text, name, untitled = None, open = None))]
    fn read(
        py: Python<'_>,
        text: &str,
        name: &str,
        untitled: Option<&str>,
        open: Option<Open>,
    ) -> PyResult<Scenario> {
        Loaded::read(text, name, untitled, &|name| opened(open.as_ref(), name))
            .map(Scenario)
            .map_err(|problems| refusal(py, problems))
    }

    #[staticmethod]
    #[pyo3(signature = (document, open = None))]
    fn from_document(
        py: Python<'_>,
        document: &Bound<'_, PyMapping>,
        open: Option<Open>,
    ) -> PyResult<Scenario> {
        Loaded::of(table_of(document)?, &Source::default(), &|name| opened(open.as_ref(), name))
            .map(Scenario)
            .map_err(|problems| refusal(py, problems))
    }

    fn document<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        table_to_python(py, &self.0.scenario.document())
    }

    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    #[pyo3(signature = (changes = None, /, **more))]
    fn with_(
        &self,
        py: Python<'_>,
        changes: Option<&Bound<'_, PyMapping>>,
        more: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Scenario> {
        let mut wanted: Vec<(String, Option<Value>)> = Vec::new();
        let more = more.map(|more| more.as_mapping().clone());
        for mapping in changes.into_iter().chain(more.as_ref()) {
            for entry in mapping.items()?.iter() {
                let (key, value): (String, Bound<'_, PyAny>) = entry.extract()?;
                let value = if value.is_none() { None } else { Some(value_of(&value)?) };
                match wanted.iter_mut().find(|(known, _)| *known == key) {
                    Some(known) => known.1 = value,
                    None => wanted.push((key, value)),
                }
            }
        }
        let open = py.import("sojourn.scenario.trace")?.getattr("opened")?.unbind();
        self.0
            .with(&wanted, &|name| opened(Some(&open), name))
            .map(Scenario)
            .map_err(|problems| refusal(py, problems))
    }

    fn variants<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let variants = self.0.variants().map_err(|problems| refusal(py, problems))?;
        PyTuple::new(py, variants.into_iter().map(Scenario))
    }

    fn realise(&self, py: Python<'_>, seed: &Bound<'_, PyAny>) -> PyResult<Realised> {
        let number: u64 = seed.extract().map_err(|_| {
            PyValueError::new_err(format!(
                "a seed is a whole number from 0 to 2^64 - 1, not {seed}"
            ))
        })?;
        let run = py.detach(|| self.0.scenario.realise(number));
        let run = run.map_err(PyValueError::new_err)?;
        let programs = self.0.scenario.realised_programs(&run);
        Realised::of(py, run, programs)
    }

    #[pyo3(signature = (link = None))]
    fn qdisc_key(&self, py: Python<'_>, link: Option<&str>) -> PyResult<String> {
        self.0.qdisc_key(link).map_err(|problems| refusal(py, problems))
    }

    #[pyo3(signature = (seeds = None))]
    fn fingerprint(&self, py: Python<'_>, seeds: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let seeds: Option<Vec<u64>> = match seeds {
            Some(seeds) => {
                Some(seeds.try_iter()?.map(|seed| seed?.extract()).collect::<PyResult<_>>()?)
            }
            None => None,
        };
        let mut ctrl_c = CtrlC::watched();
        let digest = py.detach(|| self.0.fingerprint(seeds.as_deref(), &mut || ctrl_c.go_on()));
        match digest.map_err(|problems| refusal(py, problems))? {
            Some(digest) => Ok(digest),
            None => Err(ctrl_c.raised().expect("nothing else ends it")),
        }
    }

    fn meaning<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (path, value) in self.0.scenario.meaning() {
            let value = value.map(|value| to_python(py, &value)).transpose()?;
            dict.set_item(PyTuple::new(py, path)?, value)?;
        }
        Ok(dict)
    }

    #[getter]
    fn title(&self) -> &str {
        &self.0.scenario.title
    }

    #[getter]
    fn label(&self) -> &str {
        &self.0.scenario.label
    }

    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (key, value) in &self.0.settings {
            dict.set_item(key, to_python(py, value)?)?;
        }
        Ok(dict)
    }

    #[getter]
    fn duration(&self) -> u64 {
        self.0.scenario.duration
    }

    #[getter]
    fn warmup(&self) -> u64 {
        self.0.scenario.warmup
    }

    #[getter]
    fn seeds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.scenario.seeds)
    }

    #[getter]
    fn offloads(&self) -> bool {
        self.0.scenario.offloads
    }

    #[getter]
    fn dumbbell(&self) -> bool {
        self.0.scenario.dumbbell()
    }

    #[getter]
    fn bottleneck(&self) -> Option<Bottleneck> {
        self.0.scenario.bottleneck.clone().map(Bottleneck)
    }

    #[getter]
    fn links<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.scenario.links.iter().cloned().map(LinkEntry))
    }

    #[getter]
    fn flows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.scenario.flows.iter().cloned().map(FlowEntry))
    }

    #[getter]
    fn sweep<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (key, value) in self.0.scenario.sweep.table().iter() {
            dict.set_item(key, to_python(py, value)?)?;
        }
        Ok(dict)
    }

    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.notes.iter().cloned().map(Problem))
    }

    fn __repr__(&self) -> String {
        format!("Scenario({:?})", self.0.scenario.title)
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        let html = slf.py().import("sojourn.scenario.notebook")?.getattr("html")?;
        html.call1((slf,))?.extract()
    }
}

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Bottleneck(scenario::Bottleneck);

#[pymethods]
impl Bottleneck {
    #[getter]
    fn up(&self) -> Option<Wire> {
        self.0.ways.up.clone().map(Wire)
    }

    #[getter]
    fn down(&self) -> Option<Wire> {
        self.0.ways.down.clone().map(Wire)
    }
}

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Wire(scenario::Wire);

#[pymethods]
impl Wire {
    #[getter]
    fn qdisc(&self) -> Option<String> {
        self.0.qdisc.as_ref().map(tc::Discipline::text)
    }
}

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct LinkEntry(scenario::LinkEntry);

#[pymethods]
impl LinkEntry {
    #[getter]
    fn name(&self) -> Option<&str> {
        self.0.ends.name.as_deref()
    }

    #[getter]
    fn source(&self) -> &str {
        &self.0.ends.source
    }

    #[getter]
    fn target(&self) -> &str {
        &self.0.ends.target
    }
}

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct FlowEntry(scenario::Flow);

#[pymethods]
impl FlowEntry {
    #[getter]
    fn kind(&self) -> &str {
        self.0.word()
    }

    #[getter]
    fn name(&self) -> Option<&str> {
        self.0.entry.name.as_deref()
    }

    #[getter]
    fn count(&self) -> u32 {
        self.0.entry.count
    }

    #[getter]
    fn drawn(&self) -> bool {
        let entry = &self.0.entry;
        entry.start.drawn() || entry.rtt.as_ref().is_some_and(scenario::Spread::drawn)
    }
}

/// Adds the classes and functions to the module.
pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Problem>()?;
    module.add_class::<Scenario>()?;
    module.add_class::<Bottleneck>()?;
    module.add_class::<Wire>()?;
    module.add_class::<LinkEntry>()?;
    module.add_class::<FlowEntry>()?;
    module.add_function(wrap_pyfunction!(parse_toml, module)?)?;
    module.add_function(wrap_pyfunction!(dotted_key, module)?)?;
    module.add_function(wrap_pyfunction!(tcp_profiles, module)?)?;
    module.add("MTU", scenario::MTU)?;
    module.add_class::<Kind>()?;
    module.add_function(wrap_pyfunction!(traffic_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(scenario_keys, module)?)
}
