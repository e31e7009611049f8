//! The parts that a diagnosis or a check could not see, and the commands that would.

use std::collections::HashSet;

use plumb_capture::CaptureError;
use plumb_model::result::check::Unseen;
use plumb_quoting::{Command, CommandLine, NoCommand};
use plumb_stack::{Kind, NodeId, Stack};

use crate::typed;

/// Something that could not be seen, and the commands that would see it, or the reason why they cannot be given.
fn unseen(clause: String, mut what: String, commands: impl IntoIterator<Item = Command>) -> Unseen {
    let lines: Result<Vec<CommandLine>, NoCommand> =
        commands.into_iter().map(Command::line).collect();
    let commands = lines.unwrap_or_else(|why| {
        what += &format!("; {why}");
        Vec::new()
    });
    Unseen {
        what,
        clause,
        is_below_guest: false,
        commands,
    }
}

/// I/O that could not be watched.
#[must_use]
pub fn io(why: &CaptureError) -> Unseen {
    let command = match why {
        CaptureError::NotPermitted => typed::as_root(),
        _ => None,
    };
    unseen(
        format!("the I/O ({why})"),
        format!("the I/O: {why}"),
        command,
    )
}

/// I/O of layers that make no requests here.
#[must_use]
pub fn no_requests() -> Unseen {
    unseen(
        "the I/O, since none of these layers makes requests on this host".to_owned(),
        "the I/O: none of these layers makes requests on this host".to_owned(),
        None,
    )
}

/// The contents of devices that could not be opened.
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
    let is_late = error.kind() == std::io::ErrorKind::TimedOut;
    let again = typed::as_root().filter(|_| !is_late);
    let even = if again.is_none() && !is_late {
        ", though the user is root"
    } else {
        ""
    };
    let what = format!("labels and superblocks of {first}{more}: {error}{even}");
    let why = error.to_string();
    let why = why.split(" (os error").next().unwrap_or_default();
    let clause = format!("labels and superblocks of {first}{more} ({why})");
    Some(unseen(clause, what, again))
}

/// The storage below the virtual disks of a guest.
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
    let what = format!(
        "the storage below {}, {them}: only the host of this guest can show it",
        disks.join(", ")
    );
    let joined = Command::new("plumb check --from host.tar.zst")
        .option("--join", format!("{first}=/dev/DEVICE"))
        .remark("then here");
    let clause = format!("layers below {}", disks.join(", "));
    let commands = [
        Command::new("plumb check --collect host.tar.zst").remark("on the host of this guest"),
        joined,
    ];
    Some(Unseen {
        is_below_guest: true,
        ..unseen(clause, what, commands)
    })
}
