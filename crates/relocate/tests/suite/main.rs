//! The integration tests of `plumb-relocate`, in one program: linking costs more than compiling them.

mod hiding;
