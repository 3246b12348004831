//! What the firmware's programs share: the board, its faults, its instruction counter, the depth of its stack.
#![no_std]

#[cfg(target_arch = "arm")]
mod cortex_m;
#[cfg(target_arch = "riscv32")]
mod riscv;

#[cfg(target_arch = "arm")]
pub use self::cortex_m::{Counter, stack_pointer};
#[cfg(target_arch = "riscv32")]
pub use self::riscv::{Counter, stack_pointer};
#[cfg(target_arch = "arm")]
pub use cortex_m_rt::entry;
#[cfg(target_arch = "riscv32")]
pub use riscv_rt::entry;

/// What a program's `#[panic_handler]` does: the message, and an exit code that fails.
pub fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    semihosting::println!("{info}");
    semihosting::process::exit(101)
}

/// How many bytes of stack `run` uses: paints what lies below, and looks how far the paint has gone.
#[inline(never)]
pub fn stack_of(run: &mut dyn FnMut()) -> usize {
    const PAINT: u32 = 0x5afe_57ac;
    const WORDS: usize = 8192;
    /// Words below the stack pointer that are not painted.
    const OWN: usize = 4;
    let top = (stack_pointer() & !3) - 4 * OWN;
    let word = |i: usize| (top - 4 * i) as *mut u32;
    for i in 0..WORDS {
        // SAFETY: the boards have megabytes of stack below, which nobody else uses.
        unsafe { word(i).write_volatile(PAINT) }
    }
    run();
    // SAFETY: as above.
    let untouched = (0..WORDS).rev().take_while(|i| unsafe { word(*i).read_volatile() } == PAINT).count();
    assert!(untouched > 0, "more stack than was painted");
    4 * (WORDS - untouched + OWN)
}
