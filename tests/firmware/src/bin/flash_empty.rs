//! The start-up code alone: what `flash_dense` is compared with.
#![no_std]
#![no_main]

use synthesizer_attention_firmware as board;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    semihosting::process::exit(101)
}

#[board::entry]
fn main() -> ! {
    semihosting::process::exit(0)
}
