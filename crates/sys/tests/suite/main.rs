//! The integration tests of `plumb-sys`, in one program: linking costs more than compiling them.

mod live;
