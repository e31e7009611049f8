//! Device nodes: who owns them, who may use them, and by which lasting names they are known. A changed label or volume
//! gives new nodes with the system's defaults, so all of it is listed before and restored after.

use serde::Serialize;

use crate::plan::Step;
use crate::shell::{file_name, join_words, word};

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
    pub fn for_names(system: System, names: &[String]) -> Nodes {
        let nodes = join_words(names.iter().map(String::as_str));
        let (before, after) = match system {
            System::Linux => linux(&nodes, names),
            System::Solaris => solaris(&nodes),
        };
        Nodes {
            names: names.to_vec(),
            before,
            after,
        }
    }
}

const RESTORED: &str = "chown and chmod with the values from before";

/// A rule of udev is what lasts on Linux; chown does until the next event of the device.
fn linux(nodes: &str, names: &[String]) -> (Vec<Step>, Vec<Step>) {
    let same: Vec<String> = names
        .iter()
        .map(|name| format!("-samefile {}", word(name)))
        .collect();
    let links = format!("find -L /dev/disk /dev/mapper {} | sort", same.join(" -o "));
    let rules: Vec<String> = names
        .iter()
        .map(|name| format!("-e {}", file_name(name)))
        .collect();
    let before = vec![
        Step::save(format!(
            "stat -L -c 'chown %u:%g %N && chmod %a %N' {nodes} > nodes.restore"
        )),
        Step::save(format!("{links} > nodes.names")),
        Step::look(format!("grep -rF {} /etc/udev/rules.d", rules.join(" "))),
    ];
    let after = vec![
        Step::new(
            "sh ./nodes.restore",
            "the nodes must be the ones meant",
            RESTORED,
        ),
        Step::look(format!("{links} | diff nodes.names -")),
        Step::new(
            "udevadm control --reload && udevadm trigger --action=change",
            "rules that match by start, size or UUID match no longer: mend them first",
            RESTORED,
        ),
    ];
    (before, after)
}

/// What lasts on Solaris stands in `/etc/minor_perm`: `driver:minor mode owner group`.
fn solaris(nodes: &str) -> (Vec<Step>, Vec<Step>) {
    let before = vec![
        Step::save(format!(
            "{{ ls -l {nodes}; ls -lL {nodes}; }} > nodes.before"
        )),
        Step::save("cp -p /etc/minor_perm minor_perm.before"),
    ];
    let after = vec![
        Step::new(
            "chown OWNER:GROUP NODE && chmod MODE NODE    # each as in nodes.before",
            "gone after a reboot unless /etc/minor_perm says the same",
            RESTORED,
        ),
        Step::new(
            "echo 'DRIVER:MINOR MODE OWNER GROUP' >> /etc/minor_perm    # its link ends in /DRIVER@...:MINOR",
            "a line for the wrong minor opens another device",
            "cp -p minor_perm.before /etc/minor_perm",
        ),
    ];
    (before, after)
}
