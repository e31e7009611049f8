//! The integration tests of `plumb-stats`, in one program: linking costs more than compiling them.

mod coverage;
mod published;
