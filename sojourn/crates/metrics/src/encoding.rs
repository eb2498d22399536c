//! Encodes a `Value` as bytes, bit by bit, NaN too. The store keeps numbers in this form with the
//! tables that they were computed from.
//!
//! A value is a letter and its content. A number is 8 bytes; a text is its length and its bytes; a
//! list is its length and its values. An object is its length and, for each entry, a text and a
//! value. Lengths are numbers; numbers are little-endian.

use crate::Value;

/// The deepest nesting of values: numbers of a seed have five levels.
const DEEPEST: usize = 16;

impl Value {
    /// Encodes the value.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write(self, &mut out);
        out
    }

    /// Decodes the bytes of `to_bytes`; `None`: `to_bytes` did not write these.
    pub fn from_bytes(bytes: &[u8]) -> Option<Value> {
        let mut rest = Rest(bytes);
        let value = rest.value(DEEPEST)?;
        rest.0.is_empty().then_some(value)
    }
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Nothing => out.push(b'n'),
        Value::Whole(number) => {
            out.push(b'w');
            out.extend(number.to_le_bytes());
        }
        Value::Real(number) => {
            out.push(b'r');
            out.extend(number.to_bits().to_le_bytes());
        }
        Value::Text(text) => {
            out.push(b't');
            write_text(text, out);
        }
        Value::List(values) => {
            out.push(b'l');
            write_length(values.len(), out);
            values.iter().for_each(|each| write(each, out));
        }
        Value::Object(entries) => {
            out.push(b'o');
            write_length(entries.len(), out);
            for (name, each) in entries {
                write_text(name, out);
                write(each, out);
            }
        }
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    write_length(text.len(), out);
    out.extend(text.as_bytes());
}

fn write_length(length: usize, out: &mut Vec<u8>) {
    out.extend((length as u64).to_le_bytes());
}

/// The bytes that are not yet decoded.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn value(&mut self, deepest: usize) -> Option<Value> {
        let deeper = deepest.checked_sub(1)?;
        Some(match self.take(1)?[0] {
            b'n' => Value::Nothing,
            b'w' => Value::Whole(self.number()?),
            b'r' => Value::Real(f64::from_bits(self.number()?)),
            b't' => Value::Text(self.text()?),
            b'l' => {
                let length = self.number()?;
                Value::List((0..length).map(|_| self.value(deeper)).collect::<Option<_>>()?)
            }
            b'o' => {
                let length = self.number()?;
                let entries = (0..length).map(|_| Some((self.text()?, self.value(deeper)?)));
                Value::Object(entries.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn number(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.try_into().expect("8 were taken");
        Some(u64::from_le_bytes(bytes))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Value {
        Value::Object(vec![
            ("nothing".into(), Value::Nothing),
            ("most".into(), Value::Whole(u64::MAX)),
            ("none".into(), Value::List(vec![])),
            ("names".into(), Value::List(vec![Value::Text("naïve".into()), Value::Real(-0.0)])),
        ])
    }

    #[test]
    fn decoded_values_equal_the_encoded_ones() {
        assert_eq!(Value::from_bytes(&example().to_bytes()), Some(example()));
        // NaN is not equal to itself, but its bits are.
        let odd = Value::Real(f64::from_bits(0x7ff8_0000_0000_0123)).to_bytes();
        let Some(Value::Real(read)) = Value::from_bytes(&odd) else { panic!("a number") };
        assert_eq!(read.to_bits(), 0x7ff8_0000_0000_0123);
    }

    #[test]
    fn truncated_trailing_and_deep_encodings_are_refused() {
        let bytes = example().to_bytes();
        for end in 0..bytes.len() {
            assert_eq!(Value::from_bytes(&bytes[..end]), None, "the first {end} bytes");
        }
        assert_eq!(Value::from_bytes(&[&bytes[..], b"n"].concat()), None);
        let deep = (0..DEEPEST).fold(Value::Nothing, |inner, _| Value::List(vec![inner]));
        assert_eq!(Value::from_bytes(&deep.to_bytes()), None);
    }
}
