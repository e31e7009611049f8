//! Device nodes: who owns them, who may use them, and by which lasting names they are known. A changed label or volume
//! gives new nodes with the system's defaults, so all of it is listed before and restored after.

use serde::Serialize;

use crate::plan::Step;
use crate::shell::{file_name, word};

/// Whose tools and habits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// Linux with udev.
    Linux,
    /// Solaris and illumos.
    Solaris,
}

/// What to list before a change and to restore after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Nodes {
    /// The nodes.
    pub names: Vec<String>,
    /// Before the first step of a remedy.
    pub before: Vec<Step>,
    /// After its last step.
    pub after: Vec<Step>,
}

impl Nodes {
    /// What to do about these nodes; `names` as the system calls them, with their directories.
    #[must_use]
    pub fn of(system: System, names: &[String]) -> Nodes {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for name in names {
            let (first, last) = match system {
                System::Linux => linux(name),
                System::Solaris => solaris(name),
            };
            before.extend(first);
            after.extend(last);
        }
        Nodes { names: names.to_vec(), before, after }
    }
}

/// A rule of udev is what lasts on Linux; chown does until the next event of the device.
fn linux(name: &str) -> (Vec<Step>, Vec<Step>) {
    let (node, file) = (word(name), file_name(name));
    let before = vec![
        Step::save(format!("stat -c 'chown %u:%g %n && chmod %a %n' {node} > {file}.nodes")),
        Step::save(format!("find -L /dev/disk /dev/mapper -samefile {node} | sort > {file}.names")),
        Step::look(format!("grep -rnE 'OWNER|GROUP|MODE' /etc/udev/rules.d | grep -F {file}")),
    ];
    let restored = "chown and chmod with the values from before";
    let after = vec![
        Step::new(format!("sh ./{file}.nodes"), "the node must be the one meant", restored),
        Step::look(format!("find -L /dev/disk /dev/mapper -samefile {node} | sort | diff {file}.names -")),
        Step::new(
            "udevadm control --reload && udevadm trigger --action=change",
            "rules in /etc/udev/rules.d that match by start or size no longer match: mend them first",
            restored,
        ),
    ];
    (before, after)
}

/// What lasts on Solaris stands in `/etc/minor_perm`: `driver:minor mode owner group`.
fn solaris(name: &str) -> (Vec<Step>, Vec<Step>) {
    let (node, file) = (word(name), file_name(name));
    let before = vec![
        Step::save(format!("ls -l {node} > {file}.nodes; ls -lL {node} >> {file}.nodes")),
        Step::save("cp -p /etc/minor_perm /etc/minor_perm.before"),
    ];
    let after = vec![
        Step::new(
            format!("chown OWNER:GROUP {node} && chmod MODE {node}    # as in {file}.nodes"),
            "gone after a reboot unless /etc/minor_perm says the same",
            "chown and chmod with the values from before",
        ),
        Step::new(
            format!(
                "echo 'DRIVER:MINOR MODE OWNER GROUP' >> /etc/minor_perm    \
                 # DRIVER and MINOR: the link in {file}.nodes ends in /DRIVER@...:MINOR"
            ),
            "a line for the wrong minor opens another device",
            "cp -p /etc/minor_perm.before /etc/minor_perm",
        ),
    ];
    (before, after)
}
