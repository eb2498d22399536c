//! Bits to bytes by their probability, and back: a carry-less arithmetic coder of 32 bits.
//!
//! The range from `low` to `high` is divided as the probability says, and the part of the bit that
//! came becomes the range. Bytes in which both ends are alike are written and forgotten.

use crate::model::ONE_BITS;
use alloc::vec::Vec;

#[derive(Clone, Copy)]
struct Range {
    low: u32,
    high: u32,
}

impl Range {
    const WHOLE: Range = Range { low: 0, high: u32::MAX };

    /// The last value that stands for a one, of which the probability is `one` of 2^`ONE_BITS`.
    fn split(self, one: u32) -> u32 {
        self.low + ((u64::from(self.high - self.low) * u64::from(one)) >> ONE_BITS) as u32
    }

    fn take(&mut self, bit: u32, split: u32) {
        if bit == 1 { self.high = split } else { self.low = split + 1 }
    }

    /// The byte in which both ends are alike, forgotten.
    fn settled(&mut self) -> Option<u8> {
        let byte = (self.high >> 24) as u8;
        (self.low >> 24 == u32::from(byte)).then(|| {
            *self = Range { low: self.low << 8, high: self.high << 8 | 0xff };
            byte
        })
    }
}

pub struct Encoder {
    range: Range,
    bytes: Vec<u8>,
}

impl Encoder {
    /// Writes behind these bytes.
    pub fn new(bytes: Vec<u8>) -> Encoder {
        Encoder { range: Range::WHOLE, bytes }
    }

    pub fn put(&mut self, bit: u32, one: u32) {
        self.range.take(bit, self.range.split(one));
        while let Some(byte) = self.range.settled() {
            self.bytes.push(byte);
        }
    }

    pub fn finished(mut self) -> Vec<u8> {
        self.bytes.extend(self.range.high.to_be_bytes());
        self.bytes
    }
}

pub struct Decoder {
    range: Range,
    value: u32,
    bytes: Vec<u8>,
    next: usize,
}

impl Decoder {
    /// Reads these bytes from one of them on; behind the last are zeros.
    pub fn new(bytes: Vec<u8>, next: usize) -> Decoder {
        let mut decoder = Decoder { range: Range::WHOLE, value: 0, bytes, next };
        for _ in 0..4 {
            decoder.shift();
        }
        decoder
    }

    fn shift(&mut self) {
        let byte = self.bytes.get(self.next).copied().unwrap_or_default();
        self.value = self.value << 8 | u32::from(byte);
        self.next += 1;
    }

    pub fn get(&mut self, one: u32) -> u32 {
        let split = self.range.split(one);
        let bit = u32::from(self.value <= split);
        self.range.take(bit, split);
        while self.range.settled().is_some() {
            self.shift();
        }
        bit
    }
}
