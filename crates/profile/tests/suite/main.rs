//! The integration tests of `plumb-profile`, in one program: linking costs more than compiling them.

mod model;
