//! The integration tests of `plumb-report`, in one program: linking costs more than compiling them.

mod check;
mod page;
