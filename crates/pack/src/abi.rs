//! How the page hands over what is packed and takes what it was: bytes in the module's memory.
//!
//! The page writes it where `room` says, calls `go` until that says 1, and reads as many bytes as
//! `unpacked_bytes` says from where `unpacked` says. There is one thread, and each module unpacks
//! once: memory is taken and never given back. A panic's words would be most of this module, so it has
//! none.

#![allow(unsafe_code)]

use crate::Unpacking;
use alloc::vec;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32;
use core::cell::{Cell, RefCell};

struct Desk {
    packed: RefCell<Vec<u8>>,
    unpacking: RefCell<Option<Unpacking>>,
}

// SAFETY: the module has one thread.
unsafe impl Sync for Desk {}

static DESK: Desk = Desk { packed: RefCell::new(Vec::new()), unpacking: RefCell::new(None) };

/// Where what is packed is to be written: so many bytes.
// Unsafe only in that no other crate may export this name; none does.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    let mut packed = DESK.packed.borrow_mut();
    *packed = vec![0; bytes];
    packed.as_mut_ptr()
}

/// Unpacks so many bytes more; 1 at the end.
#[unsafe(no_mangle)]
pub extern "C" fn go(more: usize) -> u32 {
    let mut unpacking = DESK.unpacking.borrow_mut();
    let begun = || Unpacking::new(DESK.packed.take());
    u32::from(unpacking.get_or_insert_with(begun).go(more))
}

/// Where the bytes are.
#[unsafe(no_mangle)]
pub extern "C" fn unpacked() -> *const u8 {
    DESK.unpacking.borrow().as_ref().map_or(core::ptr::null(), |so_far| so_far.unpacked().as_ptr())
}

/// How many they are.
#[unsafe(no_mangle)]
pub extern "C" fn unpacked_bytes() -> usize {
    DESK.unpacking.borrow().as_ref().map_or(0, |so_far| so_far.unpacked().len())
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    wasm32::unreachable()
}

/// Takes memory from the end of what the module has.
struct Taken {
    from: Cell<usize>,
    end: Cell<usize>,
}

// SAFETY: the module has one thread.
unsafe impl Sync for Taken {}

#[global_allocator]
static TAKEN: Taken = Taken { from: Cell::new(0), end: Cell::new(0) };

const PAGE: usize = 65536;

// SAFETY: what it gives lies in memory that is grown here, behind all that it gave before.
unsafe impl GlobalAlloc for Taken {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let from = self.from.get().next_multiple_of(layout.align());
        let end = from + layout.size();
        if end <= self.end.get() {
            self.from.set(end);
            return from as *mut u8;
        }
        let pages = layout.size().div_ceil(PAGE);
        let grown = wasm32::memory_grow(0, pages);
        if grown == usize::MAX {
            return core::ptr::null_mut();
        }
        self.from.set(grown * PAGE + layout.size());
        self.end.set((grown + pages) * PAGE);
        (grown * PAGE) as *mut u8
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what `alloc` asks of its caller is asked of this one's. What is grown is zero.
        unsafe { self.alloc(layout) }
    }
}
