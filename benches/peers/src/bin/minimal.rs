//! Loads and calls each peer of this build, at L = D = 64: a line of its name, the microseconds that loading and the
//! first call took, and the heap allocations of every call after those that warm up. `costs` builds it with one peer at
//! a time.

use std::time::Instant;

use synthesizer_attention_peers::{Candidate, Layer, Result, all};

const CALLS: u32 = 1000;

fn main() -> Result<()> {
    synthesizer_attention_peers::one_thread();
    let layer = Layer::<64, 64>::new();
    for Candidate { name, load } in all() {
        let start = Instant::now();
        let mut peer = load(&layer)?;
        let loaded = Instant::now();
        peer.repeat(1)?;
        let called = Instant::now();
        peer.repeat(CALLS)?;
        let before = heap::allocations();
        peer.repeat(CALLS)?;
        let allocations = (heap::allocations() - before) as f64 / f64::from(CALLS);
        let [load, first] = [loaded - start, called - loaded].map(|time| 1e6 * time.as_secs_f64());
        println!("{name}\t{load:.1}\t{first:.1}\t{allocations:.0}");
    }
    Ok(())
}

/// Stands in for glibc's allocation functions, so that those of a C++ library are counted too.
mod heap {
    use std::ffi::{c_int, c_void};
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

    pub fn allocations() -> u64 {
        ALLOCATIONS.load(Relaxed)
    }

    unsafe extern "C" {
        safe fn __libc_malloc(size: usize) -> *mut c_void;
        safe fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
        safe fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
        fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    }

    #[unsafe(no_mangle)]
    extern "C" fn malloc(size: usize) -> *mut c_void {
        ALLOCATIONS.fetch_add(1, Relaxed);
        __libc_malloc(size)
    }

    #[unsafe(no_mangle)]
    extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
        ALLOCATIONS.fetch_add(1, Relaxed);
        __libc_calloc(count, size)
    }

    #[unsafe(no_mangle)]
    extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
        ALLOCATIONS.fetch_add(1, Relaxed);
        __libc_memalign(alignment, size)
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn posix_memalign(block: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
        const ENOMEM: c_int = 12;
        let allocated = aligned_alloc(alignment, size);
        if allocated.is_null() {
            return ENOMEM;
        }
        // SAFETY: by contract `block` can be written to.
        unsafe { *block = allocated }
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: by contract `block` is null or came from one of these functions, all of which glibc's stand behind.
        unsafe { __libc_realloc(block, size) }
    }
}
