//! What a diagnosis could not see, and the commands that would.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

use plumb_capture::CaptureError;
use plumb_report::diagnose::Unseen;
use plumb_stack::{Kind, NodeId, Stack};

/// The same command again, with all permissions; `None` where it had them and was refused all the same.
fn again() -> Option<String> {
    // Its owner is the effective user.
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let words: Vec<String> = std::env::args().map(|word| quoted(&word)).collect();
    (!is_root).then(|| format!("sudo {}", words.join(" ")))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+=@:,%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// I/O that could not be watched.
#[must_use]
pub fn io(why: &CaptureError) -> Unseen {
    let commands = match why {
        CaptureError::NotPermitted => again().into_iter().collect(),
        _ => Vec::new(),
    };
    Unseen {
        what: format!("the I/O: {why}"),
        commands,
    }
}

/// I/O of layers of which none makes requests here.
#[must_use]
pub fn no_requests() -> Unseen {
    Unseen {
        what: "the I/O: none of these layers makes requests on this host".to_owned(),
        commands: Vec::new(),
    }
}

/// What is on devices that could not be opened.
#[must_use]
pub fn content(
    stack: &Stack,
    wanted: Option<&HashSet<NodeId>>,
    unread: &[(String, std::io::Error)],
) -> Option<Unseen> {
    let is_wanted = |name: &str| {
        wanted.is_none_or(|wanted| stack.find(name).is_some_and(|id| wanted.contains(&id)))
    };
    let mut unread = unread.iter().filter(|(name, _)| is_wanted(name));
    let (first, error) = unread.next()?;
    let more = match unread.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let again = again();
    let even = if again.is_none() {
        ", though the user is root"
    } else {
        ""
    };
    Some(Unseen {
        what: format!("labels and superblocks of {first}{more}: {error}{even}"),
        commands: again.into_iter().collect(),
    })
}

/// What lies below the virtual disks of a guest.
#[must_use]
pub fn below(stack: &Stack, wanted: Option<&HashSet<NodeId>>) -> Option<Unseen> {
    let is_wanted = |id: &NodeId| wanted.is_none_or(|wanted| wanted.contains(id));
    let disks: Vec<&str> = stack
        .nodes()
        .filter(|(id, node)| node.kind == Kind::VirtualDisk && stack.is_leaf(*id) && is_wanted(id))
        .map(|(_, node)| node.name.as_str())
        .collect();
    let first = disks.first()?;
    let them = if disks.len() == 1 {
        "a virtual disk"
    } else {
        "virtual disks"
    };
    Some(Unseen {
        what: format!(
            "what lies below {}, {them}: only the host of this guest can tell. Run there the first, here the second",
            disks.join(", ")
        ),
        commands: vec![
            "plumb check --collect host.tar.zst".to_owned(),
            format!("plumb check --from host.tar.zst --join {first}=/dev/DEVICE"),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_again() {
        for (word, typed) in [
            ("--grid", "--grid"),
            ("4k@512", "4k@512"),
            ("/srv/a b", "'/srv/a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$HOME", "'$HOME'"),
        ] {
            assert_eq!(quoted(word), typed);
        }
    }
}
