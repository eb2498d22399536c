//! TCP as dialogues: scripts of segments that arrive and segments that must leave, in the style of
//! packetdrill.
//!
//! Each script follows the RFC or the mechanism in its name, with the arithmetic beside it. Some
//! re-express, in our own tables, the checks of packetdrill's scripts for Linux, which they name.

mod player;
mod profiles;

mod accecn;
mod application;
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
