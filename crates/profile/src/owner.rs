//! The owner of a process by the path of its cgroup: a service, a pod, a container, a virtual machine.

use serde::Serialize;

/// The owner that a path of a cgroup names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// A unit of systemd: `postgresql@15-main.service`.
    Unit(String),
    /// A unit of the systemd of a user.
    UserUnit {
        /// Its name.
        unit: String,
        /// The number of the user.
        uid: u32,
    },
    /// A pod of Kubernetes.
    Pod {
        /// Its UID, with hyphens.
        uid: String,
        /// The id of its container.
        #[serde(skip_serializing_if = "Option::is_none")]
        container: Option<String>,
    },
    /// A container by its id, or one of LXC or systemd-nspawn by its name.
    Container(String),
    /// A virtual machine by its name in systemd-machined, or by its number in Proxmox.
    Vm(String),
    /// Another cgroup, by its path.
    Cgroup(String),
}

/// Prefixes of scopes and directories that hold one container, by engine. The monitor of a container counts as the container.
const ENGINES: [&str; 5] = ["cri-containerd", "crio", "docker", "libpod", "nerdctl"];
/// Drivers of libvirt that run virtual machines. `lxc` runs containers.
const VM_DRIVERS: [&str; 6] = ["qemu", "xen", "libxl", "ch", "bhyve", "vz"];
/// Endings of units of systemd that hold processes.
const UNITS: [&str; 2] = [".service", ".scope"];
/// Digits of the id of a container.
const ID_DIGITS: usize = 64;

impl Owner {
    /// Finds the owner of a cgroup; `None` for the root of the hierarchy.
    #[must_use]
    pub fn of_cgroup(path: &str) -> Option<Owner> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let last = parts.last()?;
        if let Some((at, uid)) = parts
            .iter()
            .enumerate()
            .find_map(|(at, part)| Some((at, pod(part)?)))
        {
            let container = parts[at..].iter().find_map(|part| container(part));
            return Some(Owner::Pod { uid, container });
        }
        let owner = |at: usize| {
            let above = at.checked_sub(1).map_or("", |above| parts[above]);
            machine(above, parts[at])
                .or_else(|| container(parts[at]).map(Owner::Container))
                .or_else(|| lxc(above, parts[at]))
        };
        if let Some(owner) = (0..parts.len()).find_map(owner) {
            return Some(owner);
        }
        Some(match unit(&parts) {
            Some(unit) => unit,
            None if last.ends_with(".slice") => Owner::Unit((*last).to_owned()),
            None => Owner::Cgroup(path.to_owned()),
        })
    }
}

/// The innermost unit: the services of a user are below the unit of the systemd of that user.
fn unit(parts: &[&str]) -> Option<Owner> {
    let is_unit = |part: &&&str| UNITS.iter().any(|ending| part.ends_with(ending));
    let user = |part: &&str| {
        let uid = part.strip_prefix("user@")?.strip_suffix(".service")?;
        uid.parse::<u32>().ok()
    };
    let unit = (*parts.iter().rev().find(is_unit)?).to_owned();
    Some(match parts.iter().find_map(user) {
        Some(uid) if user(&unit.as_str()).is_none() => Owner::UserUnit { unit, uid },
        _ => Owner::Unit(unit),
    })
}

/// The UID of a pod: `kubepods-burstable-pod1f3c_...slice` by systemd, `pod1f3c-...` by cgroupfs, also within a longer part.
fn pod(part: &str) -> Option<String> {
    const DIGITS: usize = 36;
    let starts = part.match_indices("pod").map(|(at, word)| at + word.len());
    starts.into_iter().find_map(|start| {
        let rest = &part[start..];
        let end = rest
            .find(|letter: char| !(letter.is_ascii_hexdigit() || matches!(letter, '-' | '_')))
            .unwrap_or(rest.len());
        let uid = rest[..end].replace('_', "-");
        let digits = uid.chars().filter(char::is_ascii_hexdigit).count();
        // That of a static pod has no hyphens.
        (digits == 32 && (uid.len() == 32 || uid.len() == DIGITS)).then_some(uid)
    })
}

/// Whether a text is the id of a container.
#[must_use]
pub fn is_container_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.chars().all(|letter| letter.is_ascii_hexdigit())
}

/// The id of a container: `docker-ID.scope`, `libpod-conmon-ID.scope`, `crio-ID`, `SLICE:cri-containerd:ID`, `ID`.
fn container(part: &str) -> Option<String> {
    let scope = part.strip_suffix(".scope").unwrap_or(part);
    if let Some((before, id)) = scope.rsplit_once([':', '-']) {
        let engine = before.rsplit(':').next().unwrap_or(before);
        let engine = engine.strip_suffix("-conmon").unwrap_or(engine);
        return (ENGINES.contains(&engine) && is_container_id(id)).then(|| id.to_owned());
    }
    is_container_id(scope).then(|| scope.to_owned())
}

/// A machine that systemd-machined knows, or one of Proxmox.
fn machine(above: &str, part: &str) -> Option<Owner> {
    if above == "qemu.slice" {
        return part
            .strip_suffix(".scope")
            .map(|number| Owner::Vm(number.to_owned()));
    }
    if above != "machine.slice" {
        return None;
    }
    let unit = unescaped(part);
    let of_service = unit
        .strip_prefix("systemd-nspawn@")
        .and_then(|rest| rest.strip_suffix(".service"));
    if let Some(name) = of_service {
        return Some(Owner::Container(name.to_owned()));
    }
    let machine = unit.strip_prefix("machine-")?.strip_suffix(".scope")?;
    // libvirt: driver, number since the start of the daemon, name.
    let mut words = machine.splitn(3, '-');
    let (driver, number, name) = (words.next()?, words.next(), words.next());
    let is_number = number.is_some_and(|of| of.chars().all(|digit| digit.is_ascii_digit()));
    Some(match name.filter(|_| is_number) {
        Some(name) if VM_DRIVERS.contains(&driver) => Owner::Vm(name.to_owned()),
        Some(name) if driver == "lxc" => Owner::Container(name.to_owned()),
        // `qemu-embed-...` and the like.
        _ if VM_DRIVERS.contains(&driver) => Owner::Vm(machine.to_owned()),
        _ => Owner::Container(machine.to_owned()),
    })
}

/// A container of LXC: a directory in `lxc`, or one with a prefix.
fn lxc(above: &str, part: &str) -> Option<Owner> {
    let named = part.strip_prefix("lxc.payload.");
    let below = Some(part).filter(|_| above == "lxc");
    named
        .or(below)
        .map(|name| Owner::Container(name.to_owned()))
}

/// The name of a machine in a unit, without its escapes: `\x2d` is a hyphen. See `systemd-escape(1)`.
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
                Owner::UserUnit {
                    unit: "backup.service".to_owned(),
                    uid: 1000,
                },
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service".to_owned(),
                unit("user@1000.service"),
            ),
            (
                "/user.slice/user-1000.slice/session-3.scope".to_owned(),
                unit("session-3.scope"),
            ),
            (
                "/system.slice/dev-disk-by\\x2duuid.service/inner".to_owned(),
                unit("dev-disk-by\\x2duuid.service"),
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
                "/machine.slice/machine-debian\\x2d12\\x2dbuild.scope".to_owned(),
                container("debian-12-build"),
            ),
            (
                "/machine.slice/machine-lxc\\x2d3\\x2ddb.scope".to_owned(),
                container("db"),
            ),
            (
                format!("/system.slice/containerd.service/{burstable}:cri-containerd:{ID}"),
                pod(Some(ID)),
            ),
            (
                format!("/kubepods/burstable/pod1f3c9a52-7a4b-4c1d-9e0f-aabbccddeeff/crio-{ID}"),
                pod(Some(ID)),
            ),
            (
                format!(
                    "/system.slice/docker-{ID}.scope/kubelet.slice/kubelet-{burstable}/cri-containerd-{ID}.scope"
                ),
                pod(Some(ID)),
            ),
            (format!("/libpod_parent/libpod-{ID}"), container(ID)),
            (
                format!("/machine.slice/libpod-conmon-{ID}.scope"),
                container(ID),
            ),
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
        for path in ["/podium", "/a\\x", "/pod1f3c9a52", "/kubepods", "/docker"] {
            let expected = Owner::Cgroup(path.to_owned());
            assert_eq!(Owner::of_cgroup(path), Some(expected));
        }
        let expected = Owner::Unit("machine.slice".to_owned());
        assert_eq!(Owner::of_cgroup("/machine.slice"), Some(expected));
        for (name, expected) in [
            ("a\\x2db", "a-b"),
            ("a\\x", "a\\x"),
            ("\\x0a\\xff", "\\x0a\\xff"),
        ] {
            assert_eq!(unescaped(name), expected);
        }
    }
}
