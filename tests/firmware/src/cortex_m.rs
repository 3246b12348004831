use core::arch::asm;

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;

// the default handler spins for ever; this one prints nothing, because printing can panic
#[cortex_m_rt::exception]
unsafe fn HardFault(_: &cortex_m_rt::ExceptionFrame) -> ! {
    semihosting::process::exit(3)
}

pub fn stack_pointer() -> usize {
    let pointer: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, sp", out(reg) pointer, options(nomem, nostack)) }
    pointer
}

/// Counts instructions with SysTick under QEMU's `-icount shift=7`, where every instruction takes 2^7 ns.
pub struct Counter(SYST);

/// Frequency of the clock that SysTick counts.
const HERTZ: u64 = match u64::from_str_radix(env!("SYSTICK_HZ"), 10) {
    Ok(hertz) => hertz,
    Err(_) => panic!("SYSTICK_HZ is a number"),
};

impl Counter {
    /// To be called once.
    pub fn start() -> Self {
        let mut timer = cortex_m::Peripherals::take().expect("called once").SYST;
        timer.set_clock_source(SystClkSource::Core);
        timer.set_reload(0x00ff_ffff);
        timer.clear_current();
        timer.enable_counter();
        Self(timer)
    }

    /// Instructions that `run` takes, up to ten million.
    pub fn count(&mut self, run: &mut dyn FnMut()) -> u64 {
        let mut ticks = |run: &mut dyn FnMut()| {
            // the counter starts at 0, goes to the reload value and then down; reading the flag clears it
            self.0.clear_current();
            while SYST::get_current() == 0 {}
            self.0.has_wrapped();
            let start = SYST::get_current();
            run();
            let end = SYST::get_current();
            let wrapped = if self.0.has_wrapped() { 1 << 24 } else { 0 };
            u64::from(start) + wrapped - u64::from(end)
        };
        let empty = ticks(&mut || {});
        let ticks = ticks(run) - empty;
        (ticks * 1_000_000_000).div_euclid(HERTZ << 7)
    }
}
