//! `no-direct-io` in words.

use plumb_model::Target;
use plumb_model::facts::NoDirectIo;

use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &NoDirectIo) -> Sentences {
    let page = facts.page_bytes;
    Sentences::new(format!("{} is mounted without forcedirectio.", target::name(on)))
        .and(facts.block_bytes.map(|block| {
            format!(
                "For a write of {page} the file system reads a block of {block} first; direct I/O moves the page alone."
            )
        }))
        .say("Direct I/O lets several writers into one file at once (from Solaris 8 3/01 on) and saves a copy.")
        .say("Try it first: the database then reads from disk instead of the file cache, and may become slower.")
}

/// Facts with every branch of the sentences.
#[cfg(test)]
pub(super) fn examples() -> Vec<plumb_model::Facts> {
    use plumb_geometry::Bytes;

    vec![plumb_model::Facts::NoDirectIo(NoDirectIo {
        page_bytes: Bytes(2048),
        block_bytes: Some(Bytes(8192)),
        source: None,
    })]
}
