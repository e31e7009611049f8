//! Reads bytes as a user's table of known arrays, and asks it of a disk by its model, its name and by a picked row.

use plumb_stack::catalogue::Catalogue;
use plumb_stack::node::keys;
use plumb_stack::{Builder, Kind, Source, Verdict};

/// One table.
pub fn table(data: &[u8]) -> bool {
    let table = match Catalogue::parse("input", &String::from_utf8_lossy(data)) {
        Ok(table) => table,
        Err(error) => {
            assert!(error.to_string().starts_with("input"), "{error}");
            return false;
        }
    };
    assert!(
        table
            .joins()
            .iter()
            .all(|join| join.place.starts_with("input:"))
    );
    for (model, picked) in [
        (Some("ACME FastStore 9000"), None),
        (None, table.rows().first()),
    ] {
        let mut builder = Builder::default();
        let disk = builder.node("c3t0d0");
        builder.kind(disk, Kind::Disk, &Source::User);
        if let Some(model) = model {
            builder.fact(disk, keys::MODEL, model, &Source::User);
        }
        table.apply(&mut builder, picked);
        assert!(
            builder.get(disk).grids.len() <= 1,
            "the first row that fits counts"
        );
        for standing in builder.finish().standings(disk) {
            if let Verdict::Misaligned { by } = standing.verdict {
                assert!(by < standing.fact.granularity(), "past the next boundary");
            }
        }
    }
    true
}
