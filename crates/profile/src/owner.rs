//! The owner of a process by the path of its cgroup: a service, a pod, a container, a virtual machine.

use serde::Serialize;

/// The owner that a path of a cgroup names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// A unit of systemd: `postgresql.service`.
    Unit(String),
    /// A pod of Kubernetes.
    Pod {
        /// Its UID, with hyphens.
        uid: String,
        /// The id of its container.
        #[serde(skip_serializing_if = "Option::is_none")]
        container: Option<String>,
    },
    /// A container of Docker, Podman, containerd or CRI-O by its id, or one of LXC or systemd-nspawn by its name.
    Container(String),
    /// A virtual machine of libvirt by its name, or of Proxmox by its number.
    Vm(String),
    /// Another cgroup, by its path.
    Cgroup(String),
}

/// Letters at the start of a scope that holds one container, by engine.
const ENGINES: [&str; 4] = ["cri-containerd-", "crio-", "docker-", "libpod-"];
/// Endings of units of systemd that hold processes.
const UNITS: [&str; 2] = [".service", ".scope"];

impl Owner {
    /// Finds the owner of a cgroup; `None` for the root, which owns the processes of no one else.
    #[must_use]
    pub fn of_cgroup(path: &str) -> Option<Owner> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let last = parts.last()?;
        if let Some(at) = parts.iter().position(|part| pod(part).is_some()) {
            let container = parts.get(at + 1).and_then(|part| container(part));
            return Some(Owner::Pod {
                uid: pod(parts[at])?,
                container,
            });
        }
        let owner = |at: usize| {
            let above = at.checked_sub(1).map_or("", |above| parts[above]);
            machine(above, parts[at])
                .or_else(|| container(parts[at]).map(Owner::Container))
                .or_else(|| in_plain_folder(above, parts[at]))
        };
        if let Some(owner) = (0..parts.len()).find_map(owner) {
            return Some(owner);
        }
        // The innermost unit: the service of a user is below the unit of the user's manager.
        let is_unit = |part: &&&str| UNITS.iter().any(|ending| part.ends_with(ending));
        Some(match parts.iter().rev().find(is_unit) {
            Some(unit) => Owner::Unit(unescaped(unit)),
            None if last.ends_with(".slice") => Owner::Unit(unescaped(last)),
            None => Owner::Cgroup(path.to_owned()),
        })
    }
}

/// The UID of a pod: `kubepods-burstable-pod1f3c_...slice` by systemd, `pod1f3c-...` by cgroupfs.
fn pod(part: &str) -> Option<String> {
    let name = match part.strip_suffix(".slice") {
        Some(unit) => unit.strip_prefix("kubepods")?.rsplit_once("-pod")?.1,
        None => part.strip_prefix("pod")?,
    };
    let uid = name.replace('_', "-");
    let is_uid = uid.len() >= 32 && uid.chars().all(|of| of.is_ascii_hexdigit() || of == '-');
    is_uid.then_some(uid)
}

/// The id of a container: the name of a scope, or a directory of 64 hexadecimal digits.
fn container(part: &str) -> Option<String> {
    let id = match part.strip_suffix(".scope") {
        Some(scope) => ENGINES.iter().find_map(|of| scope.strip_prefix(of))?,
        None => part,
    };
    let is_id = id.len() == 64 && id.chars().all(|letter| letter.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}

/// A machine that systemd-machined knows, or one of Proxmox.
fn machine(above: &str, part: &str) -> Option<Owner> {
    if above == "machine.slice" {
        let unit = unescaped(part);
        if let Some(name) = unit
            .strip_prefix("systemd-nspawn@")
            .and_then(|rest| rest.strip_suffix(".service"))
        {
            return Some(Owner::Container(name.to_owned()));
        }
        let machine = unit.strip_prefix("machine-")?.strip_suffix(".scope")?;
        // libvirt: driver, number since the start of the daemon, name.
        let of_libvirt = machine.split_once('-').and_then(|(driver, rest)| {
            let (number, name) = rest.split_once('-')?;
            let is_number = !number.is_empty() && number.chars().all(|of| of.is_ascii_digit());
            is_number.then(|| (driver.to_owned(), name.to_owned()))
        });
        return Some(match of_libvirt {
            Some((driver, name)) if driver == "lxc" => Owner::Container(name),
            Some((_, name)) => Owner::Vm(name),
            None => Owner::Container(machine.to_owned()),
        });
    }
    let number = part
        .strip_suffix(".scope")
        .filter(|_| above == "qemu.slice")?;
    Some(Owner::Vm(number.to_owned()))
}

/// A container of LXC: a directory in `lxc`, or one with a prefix.
fn in_plain_folder(above: &str, part: &str) -> Option<Owner> {
    let named = part.strip_prefix("lxc.payload.");
    let below = Some(part).filter(|_| above == "lxc");
    named
        .or(below)
        .map(|name| Owner::Container(name.to_owned()))
}

/// The name of a unit without its escapes: `\x2d` is a hyphen. See `systemd-escape(1)`.
fn unescaped(unit: &str) -> String {
    let mut name = String::new();
    let mut rest = unit;
    while let Some((before, after)) = rest.split_once("\\x") {
        name += before;
        let code = after
            .get(..2)
            .and_then(|of| u8::from_str_radix(of, 16).ok());
        match code.filter(|code| code.is_ascii_graphic()) {
            Some(code) => {
                name.push(char::from(code));
                rest = &after[2..];
            }
            None => {
                name += "\\x";
                rest = after;
            }
        }
    }
    name + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4f1c2a6b8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192";

    /// Paths as systemd, Kubernetes, Docker, libvirt, Proxmox and LXC name them.
    #[test]
    fn paths_name_their_owner() {
        let pod = |container: Option<&str>| Owner::Pod {
            uid: "1f3c9a52-7a4b-4c1d-9e0f-aabbccddeeff".to_owned(),
            container: container.map(str::to_owned),
        };
        let unit = |name: &str| Owner::Unit(name.to_owned());
        let container = |name: &str| Owner::Container(name.to_owned());
        let vm = |name: &str| Owner::Vm(name.to_owned());
        let burstable = "kubepods-burstable-pod1f3c9a52_7a4b_4c1d_9e0f_aabbccddeeff.slice";
        for (path, expected) in [
            (
                "/system.slice/nginx.service".to_owned(),
                unit("nginx.service"),
            ),
            (
                "/system.slice/system-postgresql.slice/postgresql@15-main.service".to_owned(),
                unit("postgresql@15-main.service"),
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/backup.service".to_owned(),
                unit("backup.service"),
            ),
            (
                "/user.slice/user-1000.slice/session-3.scope".to_owned(),
                unit("session-3.scope"),
            ),
            (
                "/system.slice/dev-disk-by\\x2duuid.service/inner".to_owned(),
                unit("dev-disk-by-uuid.service"),
            ),
            ("/system.slice".to_owned(), unit("system.slice")),
            (
                format!(
                    "/kubepods.slice/kubepods-burstable.slice/{burstable}/cri-containerd-{ID}.scope"
                ),
                pod(Some(ID)),
            ),
            (format!("/kubepods.slice/{burstable}"), pod(None)),
            (
                format!("/kubepods/burstable/pod1f3c9a52-7a4b-4c1d-9e0f-aabbccddeeff/{ID}"),
                pod(Some(ID)),
            ),
            (format!("/system.slice/docker-{ID}.scope"), container(ID)),
            (format!("/docker/{ID}"), container(ID)),
            (
                format!("/machine.slice/libpod-{ID}.scope/container"),
                container(ID),
            ),
            (
                "/machine.slice/machine-qemu\\x2d12\\x2dweb\\x2d1.scope/libvirt/emulator"
                    .to_owned(),
                vm("web-1"),
            ),
            ("/qemu.slice/101.scope".to_owned(), vm("101")),
            (
                "/lxc/105/ns/system.slice/ssh.service".to_owned(),
                container("105"),
            ),
            ("/lxc.payload.web/init.scope".to_owned(), container("web")),
            (
                "/machine.slice/systemd-nspawn@build.service/payload".to_owned(),
                container("build"),
            ),
            (
                "/batch/night".to_owned(),
                Owner::Cgroup("/batch/night".to_owned()),
            ),
        ] {
            assert_eq!(Owner::of_cgroup(&path), Some(expected), "{path}");
        }
    }

    #[test]
    fn the_root_has_no_owner_and_odd_names_stay() {
        assert_eq!(Owner::of_cgroup("/"), None);
        assert_eq!(Owner::of_cgroup(""), None);
        for path in ["/podium", "/a\\x", "/a\\xff/b\\x0a", "/machine.slice"] {
            assert!(Owner::of_cgroup(path).is_some(), "{path}");
        }
    }
}
