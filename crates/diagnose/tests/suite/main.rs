//! The integration tests of `plumb-diagnose`, in one program: linking costs more than compiling them.

mod common;
mod compare;
mod doubts;
mod layout;
mod layouts;
mod planted;
mod practice;
mod rules;
