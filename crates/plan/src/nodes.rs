//! Device nodes: their owners, permissions and lasting names. A changed label or volume gives new nodes with the
//! system's defaults, so all of it is listed before and restored after.

use plumb_quoting::shell::file_name;
use plumb_quoting::{Command, NoCommand};
use serde::Serialize;

use crate::plan::Step;

/// Whose tools and habits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// Linux with udev.
    Linux,
    /// Solaris and illumos.
    Solaris,
}

/// Steps that list before a change and restore after it.
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
    /// The steps for these nodes; `names` as the system calls them, with their directories.
    ///
    /// # Errors
    /// When a name is one that no command can hold.
    pub fn for_names(system: System, names: &[String]) -> Result<Nodes, NoCommand> {
        let (before, after) = match system {
            System::Linux => (linux_before(names)?, linux_after(names)?),
            System::Solaris => (solaris_before(names)?, solaris_after()?),
        };
        Ok(Nodes {
            names: names.to_vec(),
            before,
            after,
        })
    }
}

type Steps = Result<Vec<Step>, NoCommand>;

const RESTORED: &str = "chown and chmod with the values from before";

/// Lists the lasting names of the nodes.
fn links(names: &[String]) -> Command {
    let find = Command::new("find -L /dev/disk /dev/mapper");
    let find = names.iter().enumerate().fold(find, |find, (at, name)| {
        find.flags(if at > 0 { "-o -samefile" } else { "-samefile" })
            .path(name)
    });
    find.pipe(Command::new("sort"))
}

/// A rule of udev lasts on Linux; chown does until the next event of the device.
fn linux_before(names: &[String]) -> Steps {
    let states = Command::new("stat -L -c 'chown %u:%g %N && chmod %a %N'").paths(names);
    let rules = names.iter().fold(Command::new("grep -rF"), |grep, name| {
        grep.flags("-e").arg(file_name(name))
    });
    Ok(vec![
        Step::save(states.to_file("nodes.restore"))?,
        Step::save(links(names).to_file("nodes.names"))?,
        Step::look(rules.flags("/etc/udev/rules.d"))?,
    ])
}

fn linux_after(names: &[String]) -> Steps {
    Ok(vec![
        Step::new(
            Command::new("sh ./nodes.restore"),
            "the nodes must be the ones meant",
            RESTORED,
        )?,
        Step::look(links(names).pipe(Command::new("diff nodes.names -")))?,
        Step::new(
            Command::new("udevadm control --reload && udevadm trigger --action=change"),
            "rules that match by start, size or UUID no longer match: correct them first",
            RESTORED,
        )?,
    ])
}

/// On Solaris, `/etc/minor_perm` lasts: `driver:minor mode owner group`.
fn solaris_before(names: &[String]) -> Steps {
    let links = Command::new("ls -l").paths(names);
    let nodes = Command::new("ls -lL").paths(names);
    Ok(vec![
        Step::save(links.group(nodes).to_file("nodes.before"))?,
        Step::save(Command::new("cp -p /etc/minor_perm minor_perm.before"))?,
    ])
}

fn solaris_after() -> Steps {
    Ok(vec![
        Step::new(
            Command::new("chown OWNER:GROUP NODE && chmod MODE NODE")
                .remark("each as in nodes.before"),
            "gone after a reboot unless /etc/minor_perm says the same",
            RESTORED,
        )?,
        Step::new(
            Command::new("echo 'DRIVER:MINOR MODE OWNER GROUP' >> /etc/minor_perm")
                .remark("its link ends in /DRIVER@...:MINOR"),
            "a line for the wrong minor opens another device",
            Command::new("cp -p minor_perm.before /etc/minor_perm"),
        )?,
    ])
}
