//! TCP as dialogues: scripts of what arrives and what must leave, in the manner of packetdrill.
//!
//! Each script is written from the RFC or the mechanism that its name states, with the arithmetic
//! beside it. Some re-express what packetdrill's scripts for Linux check (named there), in our own
//! tables.

mod player;
mod profiles;

mod accecn;
mod cubic;
mod dctcp;
mod ecn;
mod fast_retransmit;
mod ledbat;
mod limited_transmit;
mod ns2;
mod prague;
mod rack;
mod receiver;
mod sack;
mod spurious;
mod timer;
mod vegas;
mod window;
