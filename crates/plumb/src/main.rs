//! `plumb`: finds the I/O that does not fit the storage beneath it.
//!
//! All code is in libraries, because the optimizer treats the whole program as it treats the package of the binary: with small code for the
//! commands in this package, the loops over events would not be vectorized.

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    plumb_cli::run()
}
