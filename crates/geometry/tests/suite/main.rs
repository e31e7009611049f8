//! The integration tests of `plumb-geometry`, in one program: linking costs more than compiling them.

mod common;
mod fit_model;
mod map_model;
mod parity_tables;
mod parse;
mod serde;
