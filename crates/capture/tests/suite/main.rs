//! The integration tests of `plumb-capture`, in one program: linking costs more than compiling them.

mod bio_layer;
mod common;
mod filter;
mod index;
mod loop_device;
mod record;
mod tracefs;
mod tracefs_end;
mod vfs;
