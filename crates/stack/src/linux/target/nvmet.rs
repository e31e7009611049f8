//! Namespaces of the kernel's NVMe target: `nvmet/subsystems/NQN/namespaces/NSID`.

use std::collections::HashMap;

use plumb_sys::Directory;

use super::backing::Backing;
use super::{CONFIG, Export};
use crate::linux::Root;
use crate::linux::reader::SysfsReader;

/// Transport and address of a subsystem.
type Port = (Option<String>, Option<String>);

/// All namespaces that are enabled.
pub(super) fn read(root: &Root<'_>, reader: &mut SysfsReader) -> Vec<Export> {
    let mut exports = Vec::new();
    let Ok(config) = root.directory.below(&format!("{CONFIG}/nvmet")) else {
        return exports;
    };
    let ports = read_ports(reader, &config);
    let Some(subsystems) = reader.child(&config, "subsystems") else {
        return exports;
    };
    for nqn in reader.names(&config, "subsystems") {
        let Some(subsystem) = reader.child(&subsystems, &nqn) else {
            continue;
        };
        let Some(namespaces) = reader.child(&subsystem, "namespaces") else {
            continue;
        };
        for nsid in reader.names(&subsystem, "namespaces") {
            let namespace = reader.child(&namespaces, &nsid);
            let export = namespace.and_then(|namespace| one(reader, &namespace, &nqn, &nsid));
            let (transport, portal) = ports.get(&nqn).cloned().unwrap_or_default();
            exports.extend(export.map(|export| Export {
                transport,
                portal,
                ..export
            }));
        }
    }
    exports
}

/// The first port of each subsystem.
fn read_ports(reader: &mut SysfsReader, config: &Directory) -> HashMap<String, Port> {
    let mut found = HashMap::new();
    let Some(ports) = reader.child(config, "ports") else {
        return found;
    };
    for number in reader.names(config, "ports") {
        let Some(port) = reader.child(&ports, &number) else {
            continue;
        };
        let transport = reader.word(&port, "addr_trtype");
        let words = ["addr_traddr", "addr_trsvcid"].map(|name| reader.word(&port, name));
        let portal = words.into_iter().flatten().collect::<Vec<_>>().join(":");
        let portal = (!portal.is_empty()).then_some(portal);
        for nqn in reader.names(&port, "subsystems") {
            found
                .entry(nqn)
                .or_insert_with(|| (transport.clone(), portal.clone()));
        }
    }
    found
}

fn one(reader: &mut SysfsReader, namespace: &Directory, nqn: &str, nsid: &str) -> Option<Export> {
    if reader.text(namespace, "enable")? != "1" {
        return None;
    }
    let path = reader
        .word(namespace, "device_path")
        .filter(|path| path.starts_with('/'));
    // All zeros where none was given.
    let mut id = |name: &str| {
        let id = reader.word(namespace, name);
        id.filter(|id| {
            id.bytes()
                .any(|byte| byte.is_ascii_hexdigit() && byte != b'0')
        })
    };
    let (uuid, nguid) = (id("device_uuid"), id("device_nguid"));
    let as_wwid = |nguid: &String| format!("eui.{}", nguid.replace('-', "").to_ascii_lowercase());
    Some(Export {
        names: vec![format!("{nqn}/ns{nsid}")],
        path: format!("{CONFIG}/nvmet/subsystems/{nqn}/namespaces/{nsid}"),
        by: "nvmet",
        backstore: "nvmet".to_owned(),
        backing: path.map_or_else(Backing::default, Backing::Path),
        target: Some(nqn.to_owned()),
        unit: nsid.parse().ok(),
        // The kernel's order: a UUID before an NGUID (`wwid_show` of the NVMe host).
        identity: uuid
            .as_ref()
            .map(|uuid| format!("uuid.{uuid}"))
            .or(nguid.as_ref().map(as_wwid)),
        uuid,
        nguid,
        ..Export::default()
    })
}
