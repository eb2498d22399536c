//! Which part of a WebAssembly module a byte is: an opcode, one of the immediates behind it, or none
//! of these (WebAssembly Core Specification 2.0, section 5).
//!
//! It reads along and refuses nothing: where it is wrong, predictions are worse, and that is all. Of
//! vectors and exceptions it knows nothing, since our compiler makes none.

use Next::*;

/// What the next byte is a part of.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
pub enum Next {
    /// A section: its number, its size, its bytes, if they are no code.
    Section,
    SectionSize,
    Bytes,
    /// Code: how many functions; of each its size, how many kinds of locals, and each kind.
    Functions,
    Size,
    Kinds,
    Kind,
    /// An instruction, or an immediate of one.
    Opcode,
    Variable,
    Align,
    Offset,
    Constant,
    Index,
    Label,
    Labels,
    /// The number behind 0xfc.
    Further,
    /// Bytes of a float.
    Float,
}

/// Where in a module the next byte is.
pub struct Place {
    next: Next,
    /// What comes behind it, if that is no opcode.
    behind: [Option<Next>; 2],
    /// How many more like it come: labels, bytes of a float, kinds of locals.
    more: u32,
    /// How many bytes of its number were there, and their value.
    part: u32,
    value: u32,
    /// How many bytes were there; at how many the section ends, and the function.
    at: u32,
    section_end: u32,
    function_end: u32,
    code: bool,
    /// The last opcodes, the newest in the low byte.
    pub opcodes: u64,
    /// The last variable that was named.
    pub variable: u32,
}

impl Place {
    /// Before the first byte.
    pub fn new() -> Place {
        Place {
            next: Bytes,
            behind: [None; 2],
            more: 0,
            part: 0,
            value: 0,
            at: 0,
            section_end: 8, // the magic number and the version
            function_end: 0,
            code: false,
            opcodes: 0,
            variable: 0,
        }
    }

    /// As a number below `STATES`: what the next byte is a part of, and which byte of it.
    pub fn state(&self) -> u32 {
        (self.next as u32) << 2 | self.part.min(3)
    }

    /// One byte on.
    pub fn pass(&mut self, byte: u8) {
        self.at = self.at.wrapping_add(1);
        match self.next {
            Bytes => {}
            Section => {
                self.code = byte == 10;
                self.next = SectionSize;
            }
            Opcode => self.opcode(byte),
            Float | Kind => {
                self.more = self.more.wrapping_sub(u32::from(self.next == Float || byte < 0x80));
                if self.more == 0 {
                    self.next = Opcode;
                }
            }
            _ => {
                self.value |= u32::from(byte & 0x7f).wrapping_shl(7 * self.part);
                self.part += 1;
                if byte < 0x80 {
                    let value = self.value;
                    (self.value, self.part) = (0, 0);
                    self.number(value);
                }
            }
        }
        if self.at == self.section_end && self.next != SectionSize {
            (self.next, self.part, self.value, self.opcodes) = (Section, 0, 0, 0);
        } else if self.code && self.at == self.function_end {
            (self.next, self.part, self.value) = (Size, 0, 0);
        }
    }

    /// A number that is no immediate, or an immediate, has ended.
    fn number(&mut self, value: u32) {
        self.next = match self.next {
            SectionSize => {
                self.section_end = self.at.wrapping_add(value);
                if self.code { Functions } else { Bytes }
            }
            Functions => Size,
            Size => {
                self.function_end = self.at.wrapping_add(value);
                (self.opcodes, self.variable) = (0, 0);
                Kinds
            }
            Kinds => {
                self.more = value.wrapping_mul(2);
                if value == 0 { Opcode } else { Kind }
            }
            Labels => {
                self.more = value;
                Label
            }
            Label if self.more > 0 => {
                self.more -= 1;
                Label
            }
            Further => self.then(match value {
                8 | 10 => [Some(Index), Some(Index)], // memory.init, memory.copy
                9 | 11 => [Some(Index), None],        // data.drop, memory.fill
                _ => [None; 2],
            }),
            ended => {
                if ended == Variable {
                    self.variable = value + 1;
                }
                self.then([self.behind[1], None])
            }
        };
    }

    fn opcode(&mut self, byte: u8) {
        self.opcodes = self.opcodes << 8 | u64::from(byte);
        self.more = match byte {
            0x43 => 4,
            0x44 => 8,
            _ => 0,
        };
        self.next = self.then(match byte {
            0x02..=0x04 | 0x10 | 0x23 | 0x24 | 0x3f | 0x40 => [Some(Index), None],
            0x0c | 0x0d => [Some(Label), None],
            0x0e => [Some(Labels), None],
            0x11 => [Some(Index), Some(Index)],
            0x20..=0x22 => [Some(Variable), None],
            0x28..=0x3e => [Some(Align), Some(Offset)],
            0x41 | 0x42 => [Some(Constant), None],
            0x43 | 0x44 => [Some(Float), None],
            0xfc => [Some(Further), None],
            _ => [None; 2],
        });
    }

    fn then(&mut self, behind: [Option<Next>; 2]) -> Next {
        self.behind = behind;
        behind[0].unwrap_or(Opcode)
    }
}

/// How many states there are.
pub const STATES: usize = (Float as usize + 1) << 2;

#[cfg(test)]
mod tests {
    use super::*;

    /// A function with a local, behind a section that is no code: block, br_table, i64.const, f64.const,
    /// i32.store, memory.copy; then another section.
    #[test]
    fn each_byte_of_a_module_has_its_place() {
        let bytes: &[(u8, Next)] = &[
            (5, Section),
            (1, SectionSize),
            (0x7f, Bytes),
            (10, Section),
            (43, SectionSize),
            (1, Functions),
            (41, Size),
            (1, Kinds),
            (1, Kind),
            (0x7f, Kind),
            (0x02, Opcode),
            (0x40, Index),
            (0x20, Opcode),
            (0x83, Variable),
            (0x01, Variable),
            (0x0e, Opcode),
            (2, Labels),
            (0, Label),
            (1, Label),
            (0, Label),
            (0x42, Opcode),
            (0x80, Constant),
            (0x01, Constant),
            (0x44, Opcode),
            (0x80, Float),
            (0, Float),
            (0, Float),
            (0x80, Float),
            (0, Float),
            (0, Float),
            (0, Float),
            (0x80, Float),
            (0x36, Opcode),
            (2, Align),
            (0x88, Offset),
            (0x10, Offset),
            (0xfc, Opcode),
            (10, Further),
            (0, Index),
            (0, Index),
            (0x11, Opcode),
            (3, Index),
            (0, Index),
            (0x6a, Opcode),
            (0x6a, Opcode),
            (0x6a, Opcode),
            (0x6a, Opcode),
            (0x0b, Opcode),
            (11, Section),
            (1, SectionSize),
            (0, Bytes),
            (0, Section),
        ];
        let mut place = Place::new();
        for byte in *b"\0asm\x01\0\0\0" {
            place.pass(byte);
        }
        for (at, (byte, next)) in bytes.iter().enumerate() {
            assert_eq!(place.next, *next, "byte {at}");
            place.pass(*byte);
        }
        assert!(place.state() < STATES as u32);
    }
}
