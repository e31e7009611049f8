//! The integration tests of `plumb-load`, in one program: linking costs more than compiling them.

mod beside_fio;
mod fio;
mod probe;
mod run;
mod series_plan;
mod session;
mod vdbench;
