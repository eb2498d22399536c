//! The crate `metrics` for Python: takes arrays and returns plain values.

use ::link::{Cells, Framing};
use ::metrics::{About, Interval, Spread, Tables, Value};
use ::tables::Table;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::interrupt::CtrlC;
use arrays::{Integers, Reals, array};

/// The numbers of one seed, in the form that takes the least memory; see `_core.pyi`.
#[pyclass(frozen)]
pub struct Numbers(Form);

/// A tree of values would take several times the memory of either form.
enum Form {
    Computed(::metrics::Seed),
    Encoded(Vec<u8>),
}

#[pymethods]
impl Numbers {
    /// Returns dicts, lists, numbers and texts.
    pub fn plain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.value())
    }

    #[staticmethod]
    fn from_bytes(content: &[u8]) -> PyResult<Numbers> {
        match Value::from_bytes(content) {
            Some(Value::Object(_)) => Ok(Numbers(Form::Encoded(content.to_vec()))),
            _ => Err(PyValueError::new_err("these bytes are not numbers")),
        }
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.value().to_bytes())
    }
}

impl Numbers {
    /// Computes the numbers of a seed. `table` returns each of the seed's tables by its name.
    pub fn of(
        py: Python<'_>,
        about_json: &str,
        table: &dyn Fn(&str) -> PyResult<Table>,
    ) -> PyResult<Numbers> {
        let about: About = serde_json::from_str(about_json).map_err(|error| {
            PyValueError::new_err(format!("invalid description of the run: {error}"))
        })?;
        macro_rules! given {
            ($($name:ident),+) => {
                Tables { $( $name: ::tables::$name::Columns::from_table(table(stringify!($name))?)
                    .ok_or_else(|| PyValueError::new_err(concat!(
                        "the table ", stringify!($name), " lacks values that it has to have"
                    )))?, )+ }
            };
        }
        let tables = given!(links, flows, sojourn, rtt, probe, drops, transfers, engine);
        Ok(Numbers(Form::Computed(py.detach(|| ::metrics::of_seed(&about, &tables)))))
    }

    fn value(&self) -> Value {
        match &self.0 {
            Form::Computed(seed) => seed.clone().into(),
            Form::Encoded(content) => {
                Value::from_bytes(content).expect("from_bytes decoded them before")
            }
        }
    }
}

/// The means over seeds; see `_core.pyi`.
#[pyfunction]
pub fn over_seeds<'py>(
    py: Python<'py>,
    seeds: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let seeds = seeds.iter().map(value).collect::<PyResult<Vec<_>>>()?;
    if seeds.is_empty() {
        return Err(PyValueError::new_err("there is no seed"));
    }
    let mut ctrl_c = CtrlC::watched();
    match py.detach(|| ::metrics::over_seeds(&seeds, &mut || ctrl_c.go_on())) {
        Some(over) => plain(py, &over),
        None => Err(ctrl_c.raised().expect("nothing else ends it")),
    }
}

fn plain<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Nothing => py.None().into_bound(py),
        Value::Whole(whole) => whole.into_pyobject(py)?.into_any(),
        Value::Real(real) => real.into_pyobject(py)?.into_any(),
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::List(values) => {
            let values =
                values.iter().map(|value| plain(py, value)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, values)?.into_any()
        }
        Value::Object(entries) => {
            // With a hundred thousand flows Ctrl-C must not wait for the last.
            py.check_signals()?;
            let all = PyDict::new(py);
            for (name, value) in entries {
                all.set_item(name, plain(py, value)?)?;
            }
            all.into_any()
        }
    })
}

fn value(from: &Bound<'_, PyAny>) -> PyResult<Value> {
    if from.is_none() {
        return Ok(Value::Nothing);
    }
    if let Ok(text) = from.cast::<PyString>() {
        return Ok(Value::Text(text.to_string()));
    }
    if let Ok(entries) = from.cast::<PyDict>() {
        from.py().check_signals()?;
        let entries = entries.iter().map(|(name, each)| Ok((name.extract()?, value(&each)?)));
        return Ok(Value::Object(entries.collect::<PyResult<_>>()?));
    }
    if let Ok(values) = from.cast::<PyList>() {
        return Ok(Value::List(values.iter().map(|each| value(&each)).collect::<PyResult<_>>()?));
    }
    if from.is_instance_of::<PyInt>() || from.is_instance_of::<PyFloat>() {
        return Ok(Value::Real(from.extract()?));
    }
    Err(PyValueError::new_err(
        "the numbers of a seed may contain only dicts, lists, texts, numbers and None",
    ))
}

fn bins(lower_ns: &[i64], upper_ns: &[i64], counts: &[i64]) -> PyResult<Vec<(u64, u64, u64)>> {
    if lower_ns.len() != upper_ns.len() || lower_ns.len() != counts.len() {
        return Err(PyValueError::new_err("the columns of a histogram differ in length"));
    }
    let rows = lower_ns.iter().zip(upper_ns).zip(counts);
    Ok(rows.map(|((&lower, &upper), &count)| (lower as u64, upper as u64, count as u64)).collect())
}

/// See `_core.pyi`.
#[pyfunction]
pub fn histogram_quantile(
    lower_ns: Integers,
    upper_ns: Integers,
    counts: Integers,
    q: f64,
) -> PyResult<f64> {
    Ok(::metrics::histogram_quantile(&bins(&lower_ns, &upper_ns, &counts)?, q))
}

/// See `_core.pyi`.
#[pyfunction]
pub fn late_rate(
    lower_ns: Integers,
    upper_ns: Integers,
    counts: Integers,
    lost: f64,
    bound_ms: f64,
) -> PyResult<f64> {
    Ok(::metrics::late_rate(&bins(&lower_ns, &upper_ns, &counts)?, lost, bound_ms))
}

/// See `_core.pyi`.
#[pyfunction]
pub fn distribution<'py>(py: Python<'py>, values: Reals) -> PyResult<Bound<'py, PyDict>> {
    let computed = ::metrics::distribution(&values);
    let all = PyDict::new(py);
    for (name, value) in [
        ("min", computed.min),
        ("mean", computed.mean),
        ("p50", computed.p50),
        ("p95", computed.p95),
        ("p99", computed.p99),
        ("max", computed.max),
    ] {
        all.set_item(name, value)?;
    }
    Ok(all)
}

/// See `_core.pyi`.
#[pyfunction]
pub fn jain(shares: Vec<f64>) -> f64 {
    ::metrics::jain(&shares)
}

/// See `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (wire_bytes, capacity_bits))]
pub fn utilisation(wire_bytes: f64, capacity_bits: Option<f64>) -> f64 {
    ::metrics::utilisation(wire_bytes, capacity_bits)
}

/// See `_core.pyi`.
#[pyfunction]
pub fn mean_ci95(values: Vec<f64>) -> (f64, f64) {
    let Spread { mean, ci95 } = ::metrics::mean_ci95(&values);
    (mean, ci95)
}

/// See `_core.pyi`.
#[pyfunction]
pub fn welch(before: Vec<f64>, after: Vec<f64>) -> (f64, f64, f64) {
    let Interval { value, low, high } = ::metrics::welch(&before, &after);
    (value, low, high)
}

/// See `_core.pyi`.
#[pyfunction]
pub fn student_t975(degrees: u64) -> f64 {
    ::metrics::student_t975(degrees)
}

/// The number of the log-linear bin of each time; see `_core.pyi`.
#[pyfunction]
pub fn bins_of<'py>(py: Python<'py>, times_ns: Integers) -> PyResult<Bound<'py, PyAny>> {
    let numbers = times_ns.iter().map(|&time| bucket(time)).collect::<Vec<_>>();
    array(py, &numbers)
}

/// The least time of each log-linear bin; see `_core.pyi`.
#[pyfunction]
pub fn bins_from<'py>(py: Python<'py>, bins: Integers) -> PyResult<Bound<'py, PyAny>> {
    let times = bins.iter().map(|&bin| lower(bin)).collect::<Vec<_>>();
    array(py, &times)
}

fn bucket(time: i64) -> i64 {
    ::tables::histogram::bucket(time.max(0) as u64) as i64
}

fn lower(bin: i64) -> i64 {
    i64::try_from(::tables::histogram::lower(bin.max(0) as usize)).unwrap_or(i64::MAX)
}

/// Bytes on the wire of each IP packet; see `_core.pyi`.
#[pyfunction]
pub fn wire_bytes<'py>(
    py: Python<'py>,
    overhead_bytes: u32,
    minimum_bytes: u32,
    cells: &str,
    ip_bytes: Integers,
) -> PyResult<Bound<'py, PyAny>> {
    let cells = match cells {
        "none" => Cells::None,
        "atm" => Cells::Atm,
        "ptm" => Cells::Ptm,
        other => {
            return Err(PyValueError::new_err(format!(
                "{other:?} is not a kind of cells; the kinds are none, atm and ptm"
            )));
        }
    };
    let framing = Framing { header_bytes: 0, overhead_bytes, minimum_bytes, cells };
    let each =
        ip_bytes.iter().map(|&bytes| framing.wire_bytes(bytes as u32) as i64).collect::<Vec<_>>();
    array(py, &each)
}
