//! Reads bytes as the output of tools about a host's disks and volumes, and follows the result down to the disks.

use plumb_stack::dump::{self, Input};
use plumb_stack::{Builder, Verdict};

/// Most tops that are followed; more are more of the same, slowly.
const TOPS_MAX: usize = 32;

/// Dumps of one host, with a byte 0 between them. Whether one of them is of a tool.
pub fn all(data: &[u8]) -> bool {
    let (mut builder, mut is_dump) = (Builder::default(), false);
    for (at, piece) in data.split(|byte| *byte == 0).enumerate() {
        let text = String::from_utf8_lossy(piece);
        is_dump |= read(
            &Input {
                name: ["c1t0d0s2", "dump"][at % 2],
                text: &text,
            },
            &mut builder,
        );
    }
    dump::join(&mut builder);
    let stack = builder.finish();
    for top in stack.tops().into_iter().take(TOPS_MAX) {
        let landings = stack.landings(top);
        for standing in stack.standings_of(&landings) {
            if let Verdict::Misaligned { by } = standing.verdict {
                assert!(by < standing.fact.granularity(), "past the next boundary");
            }
        }
    }
    is_dump
}

/// As the format that takes it, or, where none does, as the one that its length chooses. Whether one takes it.
fn read(input: &Input<'_>, builder: &mut Builder) -> bool {
    let taken = dump::read(input, builder);
    if let Err(error) = &taken {
        assert!(!error.to_string().is_empty(), "an error says something");
        let formats: Vec<_> = dump::formats().collect();
        let format = formats[input.text.len() % formats.len()];
        if let Ok(taken) = (format.read)(input, builder) {
            assert!(
                taken.understood > 0,
                "{} understood nothing and was content",
                format.tool
            );
        }
    }
    taken.is_ok()
}
