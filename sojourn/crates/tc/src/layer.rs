//! Link layers in words: the bytes that a packet has in addition to its IP bytes, for the
//! discipline and on the wire.
//!
//! The names and overheads are cake's and tc-stab's (`pppoe-ptm`, `docsis`), so users can describe
//! a line by the name that other tools use. `atm overhead 40 mpu 0 header 14` gives the numbers.
//! `ether-vlan` behind a name adds a tag.
//!
//! Source: tc-cake(8), tc-stab(8).

use crate::error::TcError;
use link::{Cells, Framing};
use values::text::{did_you_mean, listed, nearest, quoted, up_to, words};

const fn framing(header: u32, overhead: u32, minimum: u32, cells: Cells) -> Framing {
    Framing { header_bytes: header, overhead_bytes: overhead, minimum_bytes: minimum, cells }
}

/// The layers by cake's names. The header is 14 if queued packets have an Ethernet header.
pub static LAYERS: &[(&str, Framing)] = &[
    ("none", framing(0, 0, 0, Cells::None)),
    // 14 of header, 4 of checksum, 8 of preamble, 12 of gap.
    ("ethernet", framing(14, 38, 84, Cells::None)),
    // The charge of a Linux shaper (htb, tbf without overhead): the packet with its Ethernet
    // header.
    ("linux", framing(14, 14, 0, Cells::None)),
    // The cable modem's shaper counts whole Ethernet frames.
    ("docsis", framing(14, 18, 64, Cells::None)),
    // The two bytes are PPP's protocol field.
    ("ppp", framing(0, 2, 0, Cells::None)),
    // Each of these includes AAL5's trailer of 8 bytes.
    ("atm", framing(0, 8, 0, Cells::Atm)),
    ("ipoa-vcmux", framing(0, 8, 0, Cells::Atm)),
    ("ipoa-llcsnap", framing(0, 16, 0, Cells::Atm)),
    ("pppoa-vcmux", framing(0, 10, 0, Cells::Atm)),
    ("pppoa-llc", framing(0, 14, 0, Cells::Atm)),
    ("bridged-vcmux", framing(14, 24, 0, Cells::Atm)),
    ("bridged-llcsnap", framing(14, 32, 0, Cells::Atm)),
    ("pppoe-vcmux", framing(14, 32, 0, Cells::Atm)),
    ("pppoe-llcsnap", framing(14, 40, 0, Cells::Atm)),
    ("ptm", framing(14, 22, 0, Cells::Ptm)),
    ("bridged-ptm", framing(14, 22, 0, Cells::Ptm)),
    ("pppoe-ptm", framing(14, 30, 0, Cells::Ptm)),
    // More than any of these, for lines whose type is unknown.
    ("conservative", framing(14, 48, 0, Cells::Atm)),
];

/// cake's word for a tag of IEEE 802.1Q. It may be repeated.
pub(crate) const VLAN: &str = "ether-vlan";
pub(crate) const VLAN_BYTES: u32 = 4;

const ALIASES: &[(&str, &str)] = &[
    ("pppoe-llc", "pppoe-llcsnap"),
    ("bridged-llc", "bridged-llcsnap"),
    ("ipoa-llc", "ipoa-llcsnap"),
];
/// Common names of lines, and the link layer of most such lines.
const EVERYDAY: &[(&str, &str)] = &[
    ("cable docsis3 hfc", "docsis"),
    ("fiber fibre ftth gpon lan eth", "ethernet"),
    ("vdsl vdsl2 fttc", "pppoe-ptm"),
    ("adsl adsl2 adsl2+", "pppoe-llcsnap"),
    ("dsl xdsl pppoe", "pppoe-ptm for most VDSL, or pppoe-llcsnap for old ADSL"),
];
const NUMBERS: &[&str] = &["header", "overhead", "mpu"];
const MOST: u32 = 1000;

/// The word for cells: `none`, `atm` or `ptm`.
pub fn cells_word(cells: Cells) -> &'static str {
    match cells {
        Cells::None => "none",
        Cells::Atm => "atm",
        Cells::Ptm => "ptm",
    }
}

/// The layer's name, or the words for its numbers.
pub fn write_layer(framing: &Framing) -> String {
    if let Some((name, _)) = LAYERS.iter().find(|(_, layer)| layer == framing) {
        return (*name).to_owned();
    }
    let Framing { header_bytes, overhead_bytes, minimum_bytes, cells } = framing;
    let cells = cells_word(*cells);
    format!("{cells} header {header_bytes} overhead {overhead_bytes} mpu {minimum_bytes}")
}

/// The error for a value that is not a text; `shown` is the quoted value.
pub fn not_a_layer(shown: &str) -> TcError {
    let problem = format!("{shown} is not a link layer");
    TcError::new(problem, format!(r#"write a name in quotes, like "ethernet"; {}"#, known()))
}

fn known() -> String {
    format!("known link layers: {}", listed(LAYERS.iter().map(|(name, _)| *name)))
}

/// The hint for a word that is not a link layer.
fn instead_of(name: &str) -> String {
    let everyday =
        EVERYDAY.iter().flat_map(|(words, layer)| words.split(' ').map(move |word| (word, *layer)));
    let names = LAYERS.iter().map(|(name, _)| *name);
    let near = nearest(name, names.chain(everyday.clone().map(|(word, _)| word)));
    match everyday.clone().find(|(word, _)| Some(*word) == near) {
        Some((word, layer)) if word.eq_ignore_ascii_case(name) => format!("write {layer}"),
        Some((word, layer)) => format!("for {word} write {layer}"),
        None => did_you_mean(near, &known()),
    }
}

/// Reads a link layer: `ethernet`; `pppoe-ptm ether-vlan`; `overhead 44`; `atm overhead 40 mpu 64
/// header 14`.
pub fn read_layer(text: &str) -> Result<Framing, TcError> {
    let tokens = words(up_to(text, 1_000));
    let Some((first, at)) = tokens.first() else {
        return Err(not_a_layer(&quoted(text)));
    };
    let name = ALIASES.iter().find(|(alias, _)| alias == first).map_or(*first, |(_, name)| *name);
    let (mut framing, mut rest) = match LAYERS.iter().find(|(each, _)| *each == name) {
        Some((_, layer)) => (*layer, &tokens[1..]),
        // Numbers without a name are those of a line without cells.
        None if NUMBERS.contains(first) => (Framing::NONE, &tokens[..]),
        None => {
            let problem = format!("unknown link layer {}", quoted(name));
            return Err(TcError::new(problem, instead_of(name)).at(at.clone()));
        }
    };
    while let [(word, at), after @ ..] = rest {
        rest = after.get(1..).unwrap_or_default();
        let number = match *word {
            VLAN => {
                framing.overhead_bytes += VLAN_BYTES;
                rest = after;
                continue;
            }
            "header" => &mut framing.header_bytes,
            "overhead" => &mut framing.overhead_bytes,
            "mpu" => &mut framing.minimum_bytes,
            _ => {
                let problem = format!("a link layer has no word {}", quoted(word));
                let hint =
                    format!("known words: {}", listed(NUMBERS.iter().copied().chain([VLAN])));
                return Err(TcError::new(problem, hint).at(at.clone()));
            }
        };
        let digits = after.first().map_or("", |(text, _)| *text);
        let shaped = (1..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        let Some(bytes) = digits.parse().ok().filter(|bytes| shaped && *bytes <= MOST) else {
            let problem = format!("{word} needs a number of bytes from 0 to {MOST}");
            return Err(TcError::new(problem, format!("write it like {word} 38")).at(at.clone()));
        };
        *number = bytes;
    }
    Ok(framing)
}
