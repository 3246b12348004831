//! An allocator that sets floats and masks against unmapped pages, so that a kernel that reads or writes one element
//! outside its buffer is stopped by the processor (after Perens' Electric Fence, 1987).
//!
//! A test binary takes it as its `#[global_allocator]`, and [`fenced`] says when it does so. A fault ends the run with
//! SIGSEGV: `--nocapture` shows what was printed before, a debugger where it was.

#![allow(unreachable_pub, reason = "each test binary compiles this for itself")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    process, ptr,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Where in its pages an allocation lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Side {
    /// An unmapped page ends where it starts.
    Start,
    /// An unmapped page starts where it ends.
    End,
}

thread_local! {
    static SIDE: Cell<Option<Side>> = const { Cell::new(None) };
}

/// Runs `f` with all that this thread allocates fenced on one side, unless it needs more than a float's alignment; both
/// sides in turn.
pub fn fenced(mut f: impl FnMut(Side)) {
    for side in [Side::Start, Side::End] {
        SIDE.set(Some(side));
        f(side);
        SIDE.set(None);
    }
}

pub struct Fence;

/// Addresses that fenced allocations are cut from; none is used twice.
struct Range {
    start: usize,
    /// Bytes of a page.
    page: usize,
}

/// Bytes of the range.
const SIZE: usize = 1 << 34;

fn range() -> &'static Range {
    static RANGE: OnceLock<Range> = OnceLock::new();
    RANGE.get_or_init(|| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, wherever the system likes it, that nothing can be read from.
        let (start, page) = unsafe {
            (libc::mmap(ptr::null_mut(), SIZE, libc::PROT_NONE, flags, -1, 0), libc::sysconf(libc::_SC_PAGESIZE))
        };
        match usize::try_from(page) {
            Ok(page) if start != libc::MAP_FAILED => Range { start: start.expose_provenance(), page },
            _ => process::abort(), // a panic would allocate
        }
    })
}

impl Range {
    /// The next so many bytes and an unmapped page on either side.
    fn take(&self, bytes: usize) -> Option<*mut u8> {
        static TAKEN: AtomicUsize = AtomicUsize::new(0);
        let at = TAKEN.fetch_add(bytes + self.page, Ordering::Relaxed) + self.page;
        (at + bytes + self.page <= SIZE).then(|| ptr::with_exposed_provenance_mut(self.start + at))
    }
}

// SAFETY: what `alloc` gives is the system's or pages of its own, aligned and large enough; `dealloc` tells one from
// the other by the address.
unsafe impl GlobalAlloc for Fence {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let fence = SIDE.try_with(Cell::get).ok().flatten();
        let Some(side) = fence.filter(|_| layout.align() <= align_of::<f32>()) else {
            // SAFETY: as the caller says.
            return unsafe { System.alloc(layout) };
        };
        let bytes = layout.size().next_multiple_of(range().page);
        let Some(start) = range().take(bytes) else { return ptr::null_mut() };
        // SAFETY: these pages of the range are nobody's.
        let done = unsafe { libc::mprotect(start.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) };
        match side {
            _ if done != 0 => ptr::null_mut(),
            Side::Start => start,
            Side::End => start.wrapping_add(bytes - layout.size()),
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let Range { start, page } = range();
        if !(*start..start + SIZE).contains(&at.addr()) {
            // SAFETY: as the caller says; it came from the system.
            return unsafe { System.dealloc(at, layout) };
        }
        let pages = at.map_addr(|at| at & !(page - 1));
        let bytes = layout.size().next_multiple_of(*page);
        // SAFETY: the allocation's own pages, which it no longer needs.
        unsafe {
            libc::madvise(pages.cast(), bytes, libc::MADV_DONTNEED);
            libc::mprotect(pages.cast(), bytes, libc::PROT_NONE);
        }
    }
}
