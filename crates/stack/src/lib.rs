//! The layers under a file or a device: disks, partitions, volumes, file systems, and the placement of each one's bytes
//! on the layers below.
//!
//! Sources (a live Linux host, dumps of any host, facts from the user) add facts to a [`Builder`]; it joins the facts
//! of one device into one [`Node`], and keeps contradictions as a [`Problem`]. The finished [`Stack`] is folded: it
//! gives the position of byte 0 of a volume on the disk below, through every layer between. Only this position decides
//! about alignment; a layer alone never does.
//!
//! - [`node`]: a layer, how it places its bytes ([`Placing`]), the grids it states
//! - [`node_facts`]: everything else that sources state of a layer, typed
//! - [`grid`]: a grid with its source, and whether to believe it
//! - [`obstacle`]: why places are not known, and statements doubted
//! - [`builder`]: joins the statements of several sources
//! - [`dm_table`]: lines of a device mapper table, from the kernel or a dump
//! - [`dump`]: output of other tools
//! - [`linux`]: a live Linux host, or the files of one
//! - [`ondisk`]: content of labels and superblocks; [`devices`]: reads those of all devices of a host
//! - [`collection`]: everything that a check reads of a host, packed into a file and unpacked elsewhere
//! - [`edit`]: the stack that a change would leave
//! - [`graph`]: the finished graph; [`fold`]: positions of bytes
//! - [`verdict`]: aligned, misaligned by a number of bytes, or unknown with the reason; [`survey`]: that of every node; [`listing`]: both in
//!   the form of documents
//! - [`catalogue`]: known facts about arrays and drives that do not state them

#![forbid(unsafe_code)]

pub mod builder;
pub mod catalogue;
pub mod collection;
pub mod devices;
pub mod dm_table;
pub mod dump;
pub mod edit;
pub mod fold;
pub mod graph;
pub mod grid;
mod hole;
pub mod linux;
pub mod listing;
mod md;
pub mod node;
pub mod node_facts;
pub mod obstacle;
pub mod ondisk;
mod overlaps;
pub mod problem_ids;
pub mod survey;
pub mod verdict;

pub use builder::{Builder, JoinError};
pub use edit::{StackEdit, StackPart};
pub use fold::{Landing, Landings};
pub use graph::{NodeId, Stack};
pub use grid::{Belief, CellKind, GridFact, Source};
pub use node::{Chunks, Kind, Member, Node, Part, Placing, Problem};
pub use obstacle::{GridDoubt, ImageObstacle, LuksFault, Obstacle};
pub use problem_ids::ProblemId;
pub use survey::{Overall, Stand, Survey};
pub use verdict::{Standing, Verdict};
