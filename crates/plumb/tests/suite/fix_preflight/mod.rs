//! `plumb fix move`: what it refuses and how it says so, and what it leaves to be gone on with.

mod disk;
mod grub;
mod interrupted;
mod journals;
mod logical;
mod neighbours;
mod other_disks;
mod refused;
mod unfinished;
