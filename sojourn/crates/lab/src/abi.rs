//! How the page hands over a request and takes the answer: bytes in the module's memory.
//!
//! The page writes a request where `room` says, calls `ask`, and reads as many bytes as that says
//! from where `told` says. They stay there until the next call.

#![allow(unsafe_code)]

use crate::Lab;
use std::cell::RefCell;

#[derive(Default)]
struct Desk {
    lab: Lab,
    request: Vec<u8>,
    answer: Vec<u8>,
}

thread_local! {
    static DESK: RefCell<Desk> = RefCell::default();
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Where a request of so many bytes is to be written.
// Unsafe only in that no other crate may export this name; none does.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    DESK.with_borrow_mut(|desk| {
        desk.request = vec![0; bytes];
        desk.request.as_mut_ptr()
    })
}

/// Answers what was written there; how many bytes the answer has.
#[unsafe(no_mangle)]
pub extern "C" fn ask() -> usize {
    std::panic::set_hook(Box::new(|panic| {
        PANIC.with_borrow_mut(|told| *told = panic.to_string());
    }));
    DESK.with_borrow_mut(|desk| {
        let request = std::mem::take(&mut desk.request);
        desk.answer = desk.lab.answer(&String::from_utf8_lossy(&request));
        desk.answer.len()
    })
}

/// Where the answer is.
#[unsafe(no_mangle)]
pub extern "C" fn told() -> *const u8 {
    DESK.with_borrow(|desk| desk.answer.as_ptr())
}

/// Where the words of a panic are: an invariant of ours was broken, and the module is of no more use.
#[unsafe(no_mangle)]
pub extern "C" fn panicked() -> *const u8 {
    PANIC.with_borrow(|told| told.as_ptr())
}

/// How many bytes they have.
#[unsafe(no_mangle)]
pub extern "C" fn panicked_bytes() -> usize {
    PANIC.with_borrow(String::len)
}
