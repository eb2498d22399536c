//! Packs the module that it reads, behind the module that unpacks it: `pack unpacker.wasm <in >out`.
//!
//! What it writes begins with how many bytes the unpacker has, four bytes, the lowest first.

use std::io::{Error, Read, Result, Write, stdin, stdout};

fn main() -> Result<()> {
    let unpacker = std::env::args().nth(1).ok_or_else(|| Error::other("name the unpacker"))?;
    let unpacker = std::fs::read(unpacker)?;
    let mut module = Vec::new();
    stdin().read_to_end(&mut module)?;
    let mut out = stdout();
    out.write_all(&(unpacker.len() as u32).to_le_bytes())?;
    out.write_all(&unpacker)?;
    out.write_all(&pack::packed(&module))
}
