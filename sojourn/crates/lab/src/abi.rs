//! The interface between the page and the module: bytes in the module's memory.
//!
//! The page writes a request at the address that `room` returns, calls `ask`, which returns the
//! answer's length, and reads the answer at the address that `answer` returns. It stays there until
//! the next call.

#![allow(unsafe_code)]

use crate::Lab;
use std::cell::RefCell;

#[derive(Default)]
struct Exchange {
    lab: Lab,
    request: Vec<u8>,
    answer: Vec<u8>,
}

thread_local! {
    static EXCHANGE: RefCell<Exchange> = RefCell::default();
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Returns the address for a request of this many bytes.
// Unsafe only because no other crate may export this name; none does.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    EXCHANGE.with_borrow_mut(|exchange| {
        exchange.request = vec![0; bytes];
        exchange.request.as_mut_ptr()
    })
}

/// Answers the request; returns the answer's length in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ask() -> usize {
    std::panic::set_hook(Box::new(|panic| {
        PANIC.with_borrow_mut(|text| *text = panic.to_string());
    }));
    EXCHANGE.with_borrow_mut(|exchange| {
        let request = std::mem::take(&mut exchange.request);
        exchange.answer = exchange.lab.answer(&String::from_utf8_lossy(&request));
        exchange.answer.len()
    })
}

/// Returns the address of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    EXCHANGE.with_borrow(|exchange| exchange.answer.as_ptr())
}

/// Returns the address of a panic's message: an invariant is broken, and the module must not be
/// used again.
#[unsafe(no_mangle)]
pub extern "C" fn panicked() -> *const u8 {
    PANIC.with_borrow(|text| text.as_ptr())
}

/// Returns the length of that message in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn panicked_bytes() -> usize {
    PANIC.with_borrow(String::len)
}
