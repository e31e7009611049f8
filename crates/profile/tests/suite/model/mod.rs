//! Profiles held against slow and obvious models, merged in every order, cut at every place, and damaged.

mod codec;
mod cuts;
mod fit;
mod infer;
mod latency;
mod merge;
mod ordered;
mod slow;
mod support;
mod timeline;
mod what_if;
