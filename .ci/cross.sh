# shellcheck shell=bash
# Compilers and emulators for other machines, for a place where rustup's targets can't be downloaded and Debian's
# packages can. To be sourced. Everything lands in $TC; what is there already is not made again.
#
# The compiler is Debian's rustc-web, unpacked and not installed, with the source of the standard library beside it
# (rust-web-src), from which the library of each target is built once. The linker for bare metal is rustup's rust-lld.
TC=${TC:-${XDG_CACHE_HOME:-$HOME/.cache}/synthesizer-attention-cross}
export DEBIAN_FRONTEND=noninteractive

apt_get() { # one at a time
  mkdir -p "$(dirname "$TC")"
  flock "$TC.lock" apt-get "$@"
}

apt_install() {
  dpkg -s "$@" >/dev/null 2>&1 && return
  apt_update && apt_get install -qqy --no-install-recommends "$@" >/dev/null
}

apt_update() { # once a day
  [ -n "$(find /var/lib/apt/lists -name '*Packages*' -mmin -1440 2>/dev/null)" ] || apt_get update -qq
}

# Unpacks packages into a folder without installing them.
apt_unpack() { # FOLDER PACKAGE...
  local to=$1 debs
  shift
  apt_update
  mkdir -p "$to"
  debs=$(mktemp -d "$TC/debs.XXXX")
  (cd "$debs" && apt-get download -qq "$@" 2>/dev/null && for deb in *.deb; do dpkg -x "$deb" "$to"; done)
  rm -r "$debs"
}

depends() { # PATTERN PACKAGE...
  local pattern=$1
  shift
  apt-cache depends "$@" | awk -v pattern="^($pattern)" '$1 == "Depends:" && $2 ~ pattern { print $2 }' | sort -u
}

cross_compiler() {
  [ -x "$TC/bin/cargo" ] && return
  mkdir -p "$TC/bin"
  apt_update
  local std
  std=$(depends libstd libstd-rust-web-dev)
  # shellcheck disable=SC2046 # names of packages are words
  apt_install gcc libc6-dev $(depends lib "$std" cargo-web)
  apt_unpack "$TC" rustc-web cargo-web rust-web-src libstd-rust-web-dev "$std"
  rm -rf "${TC:?}"/usr/src/rustc-*/{src,compiler} "${TC:?}/usr/share"
  ln -sfn "$(rustc +stable --print sysroot)/lib/rustlib/x86_64-unknown-linux-gnu/bin" \
    "$TC/usr/lib/rustlib/x86_64-unknown-linux-gnu/bin"
  local tool
  for tool in rustc rustdoc cargo; do # cargo last: it says that all is there
    cat > "$TC/bin/$tool" <<SCRIPT
#!/bin/sh
unset RUSTUP_TOOLCHAIN
export LD_LIBRARY_PATH=$TC/usr/lib/x86_64-linux-gnu RUSTC=$TC/bin/rustc RUSTDOC=$TC/bin/rustdoc
exec $TC/usr/bin/$tool "\$@"
SCRIPT
    chmod +x "$TC/bin/$tool"
  done
}

# The standard library (or core and alloc alone) of a target, as `rustup target add` would bring it.
cross_target() { # TARGET std|core
  local target=$1 library=$TC/usr/lib/rustlib/$1/lib build=$TC/build-$1
  compgen -G "$library/libcore-*.rlib" >/dev/null && return
  mkdir -p "$build/src" "$library"
  local crates=core,alloc features=
  if [ "$2" = std ]; then
    crates=std,panic_abort,proc_macro,test features=panic-unwind
    : > "$build/src/lib.rs"
  else
    echo '#![no_std]' > "$build/src/lib.rs"
  fi
  printf '[package]\nname = "nothing"\nedition = "2021"\n[workspace]\n[profile.release]\ncodegen-units = 1\n' \
    > "$build/Cargo.toml"
  # bitcode, so that programs can be built with lto
  (cd "$build" && RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Cembed-bitcode=yes CARGO_TARGET_DIR=$build/target \
    "$TC/bin/cargo" build -q --release --target "$target" -Zbuild-std=$crates ${features:+-Zbuild-std-features=$features})
  find "$build/target/$target/release/deps" -name 'lib*.rlib' ! -name 'libnothing-*' ! -name 'libcore-*' \
    -exec cp {} "$library" \;
  cp "$build/target/$target/release/deps"/libcore-*.rlib "$library" # last: it says that all is there
  rm -r "$build"
}

# crt1 and libc for wasm32-wasip1. Debian's libc is older than the functions of threads that std refers to; they say
# that there are none.
wasi_libc() {
  local to=$TC/usr/lib/rustlib/wasm32-wasip1/lib/self-contained
  [ -e "$to/crt1-command.o" ] && return
  apt_install wasi-libc
  mkdir -p "$to"
  ln -sf /usr/lib/wasm32-wasi/{crt1-reactor.o,libc.a} "$to"
  cat > "$TC/pthread.rs" <<'SOURCE'
#![no_std]
type Pointer = *mut u8;
const NOT_SUPPORTED: i32 = 58;
#[unsafe(no_mangle)]
pub extern "C" fn pthread_create(_: Pointer, _: Pointer, _: Pointer, _: Pointer) -> i32 {
    NOT_SUPPORTED
}
#[unsafe(no_mangle)]
pub extern "C" fn pthread_join(_: usize, _: Pointer) -> i32 {
    NOT_SUPPORTED
}
#[unsafe(no_mangle)]
pub extern "C" fn pthread_detach(_: usize) -> i32 {
    NOT_SUPPORTED
}
#[unsafe(no_mangle)]
pub extern "C" fn pthread_attr_init(_: Pointer) -> i32 {
    0
}
#[unsafe(no_mangle)]
pub extern "C" fn pthread_attr_setstacksize(_: Pointer, _: usize) -> i32 {
    0
}
#[unsafe(no_mangle)]
pub extern "C" fn pthread_attr_destroy(_: Pointer) -> i32 {
    0
}
SOURCE
  "$TC/bin/rustc" --edition 2024 --crate-type lib --target wasm32-wasip1 -O -Cpanic=abort --emit=obj \
    -o "$TC/pthread.o" "$TC/pthread.rs"
  "$TC/usr/lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld" -flavor wasm -r -o "$to/crt1-command.o" \
    /usr/lib/wasm32-wasi/crt1-command.o "$TC/pthread.o"
}

# qemu-system-arm and -riscv32, unpacked: installed they can replace another package of QEMU.
system_emulators() {
  [ -x "$TC/qemu/usr/bin/qemu-system-riscv32" ] && return
  mkdir -p "$TC"
  apt_update
  # shellcheck disable=SC2046
  apt_install $(depends lib qemu-system-arm qemu-system-misc)
  apt_unpack "$TC/qemu" qemu-system-arm qemu-system-misc
  find "$TC/qemu/usr/bin" -type f ! -name qemu-system-arm ! -name qemu-system-riscv32 -delete
}
