use core::arch::asm;

// the default handler spins for ever; this one prints nothing, because printing can panic
#[unsafe(export_name = "ExceptionHandler")]
fn exception(_: &riscv_rt::TrapFrame) -> ! {
    semihosting::process::exit(3)
}

pub fn stack_pointer() -> usize {
    let pointer: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mv {}, sp", out(reg) pointer, options(nomem, nostack)) }
    pointer
}

/// Counts instructions with `minstret`.
pub struct Counter(());

impl Counter {
    pub fn start() -> Self {
        Self(())
    }

    /// Instructions that `run` takes, up to four thousand million.
    pub fn count(&mut self, run: &mut dyn FnMut()) -> u64 {
        let retired = |run: &mut dyn FnMut()| {
            let start = riscv::register::minstret::read();
            run();
            riscv::register::minstret::read().wrapping_sub(start)
        };
        let empty = retired(&mut || {});
        (retired(run) - empty) as u64
    }
}
