//! The rules on layouts: each fires, stays silent, and says so when it cannot tell. Stacks are made by hand, and what is
//! expected of them is worked out by hand or taken from the documents that the pages name.

mod alignment;
mod host;
mod lab;
mod many;
mod model;
mod pages;
mod paths;
mod problems;
mod real;
mod seen;
mod soft_partitions;
mod stripes;
mod targets;
mod units;
