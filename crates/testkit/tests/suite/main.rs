//! The integration tests of `plumb-testkit`, in one program: linking costs more than compiling them.

mod blkparse;
mod command;
mod fio;
mod log_writes;
mod maps;
