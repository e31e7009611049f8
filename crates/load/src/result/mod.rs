//! Results of the commands that load a target, a module for each: the types that `report` renders and that serialise themselves.
//! The field names are those of the JSON documents, whose schemas are in `docs/schema`.

pub mod bench;
pub mod probe;
pub mod replay;
