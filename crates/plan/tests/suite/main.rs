//! The integration tests of `plumb-plan`, in one program: linking costs more than compiling them.

mod common;
mod properties;
mod seeds;
mod stack;
mod tools;
