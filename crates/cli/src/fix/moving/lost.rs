//! Bytes that a move could not bring along: as they are printed, and as the file JOURNAL.lost that names them.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use plumb_model::result::fix::{MovedLoss, OwnerSearch};
use plumb_quoting::visible;
use plumb_relocate::moving::{LossKind, LostRange};
use plumb_report::fix::{obstacle_words, owner_words};
use plumb_sys::{FileContent, NewFile};

/// Ranges in the form that is printed.
pub fn ranges(lost: &[LostRange]) -> Vec<MovedLoss> {
    let printed = |lost: &LostRange| MovedLoss {
        start_bytes: lost.range.start,
        len_bytes: lost.range.end - lost.range.start,
        why: match lost.kind {
            LossKind::Unreadable => "unreadable",
            LossKind::Doubtful => "unproven",
        },
        owners: None,
    };
    lost.iter().map(printed).collect()
}

/// Writes the file beside the journal, and returns its path when it is on its medium. An older one of the same name is
/// removed first: the end of a move is reported once more, and its journal has the ranges as well.
///
/// # Errors
/// The error of the system.
pub fn write(
    journal: &Path,
    partition: &str,
    lost: &[MovedLoss],
    search: Option<&OwnerSearch>,
) -> io::Result<PathBuf> {
    let mut name = journal.as_os_str().to_owned();
    name.push(".lost");
    let path = PathBuf::from(name);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // It contains positions of the partition's data: for root alone.
    let mut file = NewFile::create(&path, FileContent::DiskData)?;
    file.write_all(text(partition, lost, search).as_bytes())?;
    file.finish()?;
    Ok(path)
}

fn text(partition: &str, lost: &[MovedLoss], search: Option<&OwnerSearch>) -> String {
    let mut text = format!(
        "# Bytes of {} that a move could not bring along, counted from the start of the partition.\n\
         # unreadable: the bytes are zeros now. unproven: they do not match their sum, and are as they were found.\n\
         # Below each range: the files that have bytes of it, where the tools of the file system tell.\n",
        visible(partition)
    );
    if let Some(obstacle) = search.and_then(|search| search.obstacle.as_ref()) {
        // Writing to a string does not fail, here and below.
        let _ = writeln!(text, "# {}", visible(&obstacle_words(obstacle)));
    }
    text.push_str("# first-byte last-byte state\n");
    for lost in lost {
        let last = lost.start_bytes + lost.len_bytes - 1;
        let _ = writeln!(text, "{} {last} {}", lost.start_bytes, lost.why);
        for owner in lost.owners.iter().flatten() {
            let _ = writeln!(text, "  {}", visible(&owner_words(owner)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use plumb_model::result::fix::{LossOwner, OwnerObstacle};

    use super::*;

    /// Once more over the same file, and never through a link.
    #[test]
    fn every_range_is_a_line() {
        let lost = [
            LostRange {
                range: 4096..8192,
                kind: LossKind::Unreadable,
            },
            LostRange {
                range: 0..65_536,
                kind: LossKind::Doubtful,
            },
        ];
        let mut printed = ranges(&lost);
        let owners = ["/a b", "/\u{1b}[2J\n7 8 unreadable"];
        let owners = owners.map(|name| LossOwner::File(name.to_owned()));
        printed[0].owners = Some(owners.to_vec());
        let search = OwnerSearch {
            file_system: Some("ext"),
            is_complete: false,
            obstacle: Some(OwnerObstacle::TooMany { blocks: 1 }),
            command: None,
        };
        let dir = plumb_testkit::temp_dir("lost");
        let (journal, victim) = (dir.path().join("j"), dir.path().join("victim"));
        fs::write(&victim, "mine").expect("room");
        std::os::unix::fs::symlink(&victim, dir.path().join("j.lost")).expect("room");
        for _ in 0..2 {
            let path = write(&journal, "/dev/sdb1", &printed, Some(&search)).expect("room");
            let text = fs::read_to_string(&path).expect("the file");
            let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
            // No name of a file can look like a range, or reach a terminal.
            let expected = [
                "4096 8191 unreadable",
                "  file /a b",
                r"  file /\u{1b}[2J\u{a}7 8 unreadable",
                "0 65535 unproven",
            ];
            assert_eq!(lines, expected);
            let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).expect("it"));
            assert_eq!(mode & 0o777, 0o600);
        }
        let text = fs::read_to_string(dir.path().join("j.lost")).expect("it");
        insta::assert_snapshot!(text);
        assert_eq!(fs::read_to_string(&victim).expect("it"), "mine");
    }
}
