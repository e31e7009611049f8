//! `too-many-metadevices` in words.

use plumb_geometry::{group_digits, plural};
use plumb_model::facts::TooManyMetadevices;

use super::Sentences;

/// The sentences of its finding.
pub(super) fn words(facts: &TooManyMetadevices) -> Sentences {
    match facts {
        TooManyMetadevices::Limit {
            set,
            metadevices,
            nmd,
            nmd_max,
            ..
        } => {
            let of_set = set
                .as_ref()
                .map_or_else(String::new, |set| format!(" of set {set}"));
            Sentences::new(format!(
                "There are {}{of_set}, and nmd is {}.",
                plural(*metadevices, "metadevice"),
                group_digits(*nmd)
            ))
            .and(format!(
                "nmd can be raised to {} in md.conf and takes effect at a boot -r; fewer volumes are the better remedy.",
                group_digits(*nmd_max)
            ))
        }
        TooManyMetadevices::Columns {
            metadevices,
            needed,
            stripes,
            columns,
        } => Sentences::new(format!(
            "{} have {}, and {} would do.",
            plural(*stripes, "stripe"),
            plural(*metadevices, "metadevice"),
            group_digits(*needed)
        ))
        .and(format!(
            "{} are columns of {}: one stripe over whole slices, with soft partitions on it, holds as many volumes.",
            plural(*columns, "soft partition"),
            plural(*stripes, "stripe")
        )),
    }
}

/// Facts with every branch of the sentences.
#[cfg(test)]
pub(super) fn examples() -> Vec<plumb_model::Facts> {
    let limit = TooManyMetadevices::Limit {
        set: Some("oracle".to_owned()),
        metadevices: 120,
        nmd: 128,
        nmd_max: 8192,
        source: super::tests::kernel(),
    };
    let columns = TooManyMetadevices::Columns {
        metadevices: 3400,
        needed: 201,
        stripes: 200,
        columns: 3200,
    };
    [limit, columns]
        .map(plumb_model::Facts::TooManyMetadevices)
        .to_vec()
}
