//! `metainit` and `metattach` as somebody typed them, with or without a prompt before.
//!
//! The words behind `metainit` are those of md.tab. Without `-o` and `-A`, the command chooses the place of a soft
//! partition, which is unknown here. *Unverified* except for examples in documents.

use std::collections::HashMap;

use super::super::text::{anything, beginning, count};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::md_tab::{Statement, continued, statement};
use super::names::on_solaris;
use super::volume::{Volume, VolumeShape, declare};
use crate::builder::{Builder, device_name};

pub(super) static FORMAT: Format = Format {
    tool: "metainit",
    is_verified: false,
    sniff,
    read,
};

/// Words of a command that are read: far more than any shell would have taken.
const WORDS_MAX: usize = 1 << 16;

/// A command with its words; a set was put before the names in it.
struct MetainitCommand<'a> {
    name: &'a str,
    words: Vec<String>,
}

fn sniff(input: &Input<'_>) -> Sniff {
    let is_other = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        statement(&words).is_some()
    };
    let mut is_own = false;
    for line in beginning(input) {
        is_own |= command(line).is_some();
        // A comment in md.tab may tell how something was made.
        if is_other(line) {
            return Sniff::No;
        }
    }
    if is_own { Sniff::Yes } else { Sniff::No }
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let (mut volumes, mut by_name): (Vec<Volume>, HashMap<String, usize>) = Default::default();
    for (line, text) in continued(input.text) {
        let Some(command) = command(&text) else {
            let is_answer =
                text.is_empty() || text.ends_with("is setup") || text.contains(" is attached");
            taken.passed_over += u64::from(!is_answer);
            continue;
        };
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        if command.name == "metattach" {
            count(&mut taken, attach(&words, &mut volumes, &by_name));
            continue;
        }
        let statement = statement(&words);
        count(&mut taken, statement.is_some());
        if let Some(Statement::Volume { name, shape, size }) = statement {
            by_name.insert(name.clone(), volumes.len());
            volumes.push(Volume {
                name,
                shape,
                size,
                source: input.source(FORMAT.tool, line),
            });
        }
    }
    for volume in volumes {
        on_solaris(builder, &volume.source);
        declare(volume, builder);
    }
    anything(
        taken,
        input,
        FORMAT.tool,
        "a command as in \"metainit d10 1 1 c0t0d0s0\"",
    )
}

/// The command of a line, if it is one of these two.
fn command(line: &str) -> Option<MetainitCommand<'_>> {
    let all: Vec<&str> = line.split_whitespace().take(WORDS_MAX).collect();
    let name = |word: &&str| match word.rsplit('/').next() {
        Some("metainit") => Some("metainit"),
        Some("metattach") => Some("metattach"),
        _ => None,
    };
    let (at, name) = all
        .iter()
        .enumerate()
        .find_map(|(at, word)| Some((at, name(word)?)))?;
    if at > 0 && !all[at - 1].ends_with(['#', '$', '%', '>']) {
        return None;
    }
    let mut words = all[at + 1..].iter().copied();
    let (mut set, mut own) = (None, Vec::new());
    while let Some(word) = words.next() {
        match word {
            "-s" if own.is_empty() => set = words.next(),
            "-f" | "-n" if own.is_empty() => {}
            word => own.push(word),
        }
    }
    let own = own.into_iter().map(|word| in_set(word, set)).collect();
    Some(MetainitCommand { name, words: own })
}

/// Volumes of a set are called with the set before them.
fn in_set(word: &str, set: Option<&str>) -> String {
    let number = word.strip_prefix('d').unwrap_or_default();
    let is_volume = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match set {
        Some(set) if is_volume => format!("{set}/{word}"),
        _ => word.to_owned(),
    }
}

/// Attaches a submirror to a mirror that was made before; other attached devices are at positions that the command does
/// not have.
fn attach(words: &[&str], volumes: &mut [Volume], by_name: &HashMap<String, usize>) -> bool {
    let &[mirror, submirror] = words else {
        return false;
    };
    let volume = by_name
        .get(device_name(mirror).as_ref())
        .and_then(|at| volumes.get_mut(*at));
    match volume.map(|volume| &mut volume.shape) {
        Some(VolumeShape::Mirror { submirrors, .. }) => {
            submirrors.push(device_name(submirror).into_owned());
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_with_and_without_a_prompt() {
        for (line, expected) in [
            ("# metainit d10 1 1 c1t0d0s0", Some("d10 1 1 c1t0d0s0")),
            ("metainit -f d10 1 1 c1t0d0s0", Some("d10 1 1 c1t0d0s0")),
            (
                "[root@host ~]# metainit d1 1 1 c1t0d0s0",
                Some("d1 1 1 c1t0d0s0"),
            ),
            (
                "host# /usr/sbin/metainit -s ora d1 -p d0 1g",
                Some("ora/d1 -p ora/d0 1g"),
            ),
            ("d10: Concat/Stripe is setup", None),
            ("see metainit(1M)", None),
        ] {
            let found = command(line).map(|command| command.words.join(" "));
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }

    /// The way that the manual recommends: a mirror of one, and the others attached.
    #[test]
    fn submirrors_are_attached() {
        let text = "# metainit d0 -m d1\nd0: Mirror is setup\n# metattach d0 d2\nd0: submirror d2 is attached\n\
                    # metattach d9 d2\n";
        let mut builder = Builder::default();
        let taken = read(
            &Input {
                name: "commands",
                text,
            },
            &mut builder,
        )
        .expect("reads");
        assert_eq!(
            taken,
            Taken {
                understood: 2,
                passed_over: 1
            }
        );
        crate::dump::join(&mut builder);
        let d0 = builder
            .find("d0")
            .map(|id| builder.get(id).placing.below().len());
        assert_eq!(d0, Some(2));
    }
}
