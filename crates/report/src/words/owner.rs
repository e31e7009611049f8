//! The owner of a process in words.

use plumb_profile::Owner;
use plumb_profile::owner::is_container_id;
use plumb_quoting::visible;

/// Digits of a container's id that people read and tools accept.
const ID_DIGITS: usize = 12;

/// `nginx.service`, `VM web-1`, `container 4f1c2a6b8d9e of pod 1f3c...`.
#[must_use]
pub fn owner(owner: &Owner) -> String {
    match owner {
        Owner::Unit(name) => visible(name).to_string(),
        Owner::UserUnit { unit, uid } => format!("{} of user {uid}", visible(unit)),
        Owner::Pod {
            uid,
            container: None,
        } => format!("pod {}", visible(uid)),
        Owner::Pod {
            uid,
            container: Some(id),
        } => format!("container {} of pod {}", short(id), visible(uid)),
        Owner::Container(id) => format!("container {}", short(id)),
        Owner::Vm(name) => format!("VM {}", visible(name)),
        Owner::Cgroup(path) => format!("cgroup {}", visible(path)),
    }
}

/// A command and the owner of its process: `dd of backup.service`.
pub(crate) fn command_of(command: &str, of: Option<&Owner>) -> String {
    match of {
        Some(of) => format!("{command} of {}", owner(of)),
        None => command.to_owned(),
    }
}

/// An id by its first digits; a name whole.
fn short(id: &str) -> String {
    match is_container_id(id) {
        true => id[..ID_DIGITS].to_owned(),
        false => visible(id).to_string(),
    }
}
