//! Numbers as output shows them: objects, lists, numbers; and their means over seeds.

use crate::intervals::{Spread, mean_ci95};
use crate::samples::Distribution;

/// A value of a JSON object; a number may be NaN.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    Nothing,
    Whole(u64),
    Real(f64),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

/// The value of a field of a struct of numbers; `None`: it is left out.
pub(crate) trait Field {
    fn value(self) -> Option<Value>;
}

/// A field that some objects lack.
#[derive(Clone, Debug, PartialEq)]
pub struct Sometimes<T>(pub Option<T>);

/// A count that an engine may not have observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub Option<u64>);

/// A struct of numbers: its fields are the keys, in their order.
macro_rules! numbers {
    ($(#[$about:meta])* pub struct $name:ident { $( $(#[$meaning:meta])* pub $field:ident: $type:ty, )+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $( $(#[$meaning])* pub $field: $type, )+ }

        impl From<$name> for $crate::Value {
            fn from(from: $name) -> $crate::Value {
                let fields = [$( (stringify!($field), $crate::value::Field::value(from.$field)) ),+];
                let present = fields.into_iter().filter_map(|(name, value)| Some((name.into(), value?)));
                $crate::Value::Object(present.collect())
            }
        }

        impl $crate::value::Field for $name {
            fn value(self) -> Option<$crate::Value> {
                Some(self.into())
            }
        }
    };
}
pub(crate) use numbers;

impl Field for f64 {
    fn value(self) -> Option<Value> {
        Some(Value::Real(self))
    }
}

impl Field for u64 {
    fn value(self) -> Option<Value> {
        Some(Value::Whole(self))
    }
}

impl Field for Count {
    fn value(self) -> Option<Value> {
        Some(self.0.map_or(Value::Real(f64::NAN), Value::Whole))
    }
}

impl Field for String {
    fn value(self) -> Option<Value> {
        Some(Value::Text(self))
    }
}

impl<T: Field> Field for Option<T> {
    fn value(self) -> Option<Value> {
        Some(self.and_then(Field::value).unwrap_or(Value::Nothing))
    }
}

impl<T: Field> Field for Sometimes<T> {
    fn value(self) -> Option<Value> {
        self.0.and_then(Field::value)
    }
}

impl<T: Field> Field for Vec<T> {
    fn value(self) -> Option<Value> {
        Some(Value::List(self.into_iter().filter_map(Field::value).collect()))
    }
}

impl Field for Vec<(String, u64)> {
    fn value(self) -> Option<Value> {
        Some(Value::Object(
            self.into_iter().map(|(name, count)| (name, Value::Whole(count))).collect(),
        ))
    }
}

impl Field for Distribution {
    fn value(self) -> Option<Value> {
        let Distribution { min, mean, p50, p95, p99, max } = self;
        let all =
            [("min", min), ("mean", mean), ("p50", p50), ("p95", p95), ("p99", p99), ("max", max)];
        Some(Value::Object(all.map(|(name, value)| (name.into(), Value::Real(value))).into()))
    }
}

/// The seeds' values in the same shape, each number as {mean, ci95}. Entries of lists are matched
/// by index; a key that a seed lacks (a cause that did not occur) counts as 0. `go_on` is called at
/// each object: if it returns false, the work ends and the result is `None`.
///
/// # Panics
///
/// If there is no seed, or if the seeds differ in shape.
pub fn over_seeds(seeds: &[Value], go_on: &mut dyn FnMut() -> bool) -> Option<Value> {
    merged(&seeds.iter().collect::<Vec<_>>(), go_on)
}

/// The value of a count that a seed lacks.
static NONE_OCCURRED: Value = Value::Whole(0);

fn merged<'a>(values: &[&'a Value], go_on: &mut dyn FnMut() -> bool) -> Option<Value> {
    match values[0] {
        Value::Object(_) if !go_on() => None,
        Value::Object(_) => {
            let mut keys: Vec<&String> = Vec::new();
            for (key, _) in values.iter().flat_map(|value| entries(value)) {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
            let of_key = |key: &String| {
                let of_seed = |value: &&'a Value| -> &'a Value {
                    let entry = entries(value).iter().find(|(known, _)| known == key);
                    entry.map_or(&NONE_OCCURRED, |(_, value)| value)
                };
                let each: Vec<&Value> = values.iter().map(of_seed).collect();
                Some((key.clone(), merged(&each, go_on)?))
            };
            keys.into_iter().map(of_key).collect::<Option<_>>().map(Value::Object)
        }
        Value::List(first) => {
            let of_place = |at: usize| {
                let each: Vec<&Value> = values.iter().map(|value| &list(value)[at]).collect();
                merged(&each, go_on)
            };
            assert!(
                values.iter().all(|value| list(value).len() == first.len()),
                "seeds have equal lists"
            );
            (0..first.len()).map(of_place).collect::<Option<_>>().map(Value::List)
        }
        Value::Text(_) | Value::Nothing => Some(values[0].clone()),
        Value::Whole(_) | Value::Real(_) => {
            let numbers: Vec<f64> = values.iter().map(|value| number(value)).collect();
            let Spread { mean, ci95 } = mean_ci95(&numbers);
            Some(Value::Object(vec![
                ("mean".into(), Value::Real(mean)),
                ("ci95".into(), Value::Real(ci95)),
            ]))
        }
    }
}

fn entries(value: &Value) -> &[(String, Value)] {
    let Value::Object(entries) = value else { panic!("seeds have objects at the same places") };
    entries
}

fn list(value: &Value) -> &[Value] {
    let Value::List(values) = value else { panic!("seeds have lists at the same places") };
    values
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Whole(whole) => *whole as f64,
        Value::Real(real) => *real,
        Value::Nothing => f64::NAN,
        _ => panic!("seeds have numbers at the same places"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_a_seed_lacks_counts_as_0() {
        let seed = |causes: &[(&str, u64)]| {
            Value::Object(
                causes.iter().map(|(name, n)| (name.to_string(), Value::Whole(*n))).collect(),
            )
        };
        let seeds = [seed(&[("limit", 4)]), seed(&[("limit", 2), ("wire", 6)])];
        let Some(Value::Object(merged)) = over_seeds(&seeds, &mut || true) else {
            panic!("an object")
        };
        assert_eq!(over_seeds(&seeds, &mut || false), None);
        let means: Vec<_> =
            merged.iter().map(|(name, spread)| (name.as_str(), &entries(spread)[0].1)).collect();
        assert_eq!(means, [("limit", &Value::Real(3.0)), ("wire", &Value::Real(3.0))]);
    }
}
