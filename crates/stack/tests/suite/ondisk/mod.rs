//! What is found on disks that the real tools made, against what these tools print.

mod arrays;
mod boot_sectors;
mod checksums;
mod cut;
mod encrypted;
mod file_systems;
mod images;
mod labels;
mod pools;
mod properties;
mod sparse;
mod tools;
mod volumes;
