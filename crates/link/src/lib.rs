//! A link: a queue discipline, a transmitter with a rate, and a wire with a delay and a loss law.
//!
//! One verb moves it: `transmit(now)` starts the next transmission that is due and says when its packet reaches the far
//! end. The discipline is asked at the time the transmitter became free, not at the time of the call, so calling late,
//! early or twice changes nothing: a simulator and a real-time loop see the same link.
//!
//! Bytes are charged honestly: the discipline counts the IP packet plus the link-layer header, the transmitter
//! counts everything the wire carries (`Framing`).

mod framing;
mod loss;

pub use framing::{Cells, Framing};
pub use loss::{Loss, LossLaw};
