//! The integration tests of `plumb-geometry`, in one program: linking costs more than compiling them.

mod fit_model;
mod parse;
mod serde;
