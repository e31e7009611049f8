//! The integration tests of `plumb-label`, in one program: linking costs more than compiling them.

mod common;
mod gpt_damage;
mod gpt_device;
mod gpt_tools;
mod mbr_tools;
mod properties;
mod vtoc_sparc;
mod vtoc_x86;
