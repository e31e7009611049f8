//! The owner of a process in words.

use std::borrow::Cow;

use plumb_profile::Owner;
use plumb_quoting::visible;

/// Digits of a container's id that people read and tools accept.
const ID_DIGITS: usize = 12;

/// `nginx.service`, `VM web-1`, `container 4f1c2a6b8d9e of pod 1f3c...`.
#[must_use]
pub fn owner(owner: &Owner) -> String {
    match owner {
        Owner::Unit(name) => visible(name).to_string(),
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

/// The owner that the path of a cgroup names, if it names one.
pub(crate) fn owner_of_cgroup(path: Option<&str>) -> Option<String> {
    path.and_then(Owner::of_cgroup).as_ref().map(owner)
}

/// An id by its first digits; a name whole.
fn short(id: &str) -> String {
    let is_id = id.len() == 64 && id.chars().all(|letter| letter.is_ascii_hexdigit());
    let shown: Cow<'_, str> = if is_id {
        id[..ID_DIGITS].into()
    } else {
        visible(id).to_string().into()
    };
    shown.into_owned()
}
