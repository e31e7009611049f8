//! Joins disks of guests with devices of hosts by identity, if the identity is unique.
//!
//! A target or hypervisor shows a device under an identity of its own making, and the guest's kernel sees it: this is
//! certain if only one device has that identity. If two hosts see the same identity and neither exports it, it is one
//! disk seen from both, and the user has to decide. Sizes prove nothing; they are only compared with each other.

use std::collections::BTreeMap;

use super::Builder;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::{Kind, Placing, keys};

/// How identities begin that are unique in the world; the others are put together of names.
const UNIQUE: [&str; 4] = ["naa.", "eui.", "uuid.", "0x"];

impl Builder {
    /// Joins every disk with the device that another host shows under its identity. Adds notes on joins, on failed
    /// joins, and on disks that may be one disk.
    pub fn join_by_identity(&mut self) {
        let mut shown: BTreeMap<String, Vec<NodeId>> = BTreeMap::new();
        let mut seen: BTreeMap<String, Vec<NodeId>> = BTreeMap::new();
        for id in self.ids() {
            let node = self.get(id);
            let shown_as = if node.kind == Kind::Export {
                node.value(keys::IDENTITY).map(std::slice::from_ref)
            } else {
                node.value(keys::EXPORTED_AS).map(Vec::as_slice)
            };
            for identity in shown_as.unwrap_or_default() {
                shown.entry(identity.clone()).or_default().push(id);
            }
            let is_disk = matches!(node.kind, Kind::Disk | Kind::VirtualDisk | Kind::Path);
            if let Some(identity) = node
                .word(keys::IDENTITY)
                .filter(|_| is_disk && !node.is_joined)
                && node.placing == Placing::Leaf
            {
                seen.entry(identity.to_owned()).or_default().push(id);
            }
        }
        for (identity, disks) in seen {
            match shown.get(&identity).map(Vec::as_slice) {
                Some([device]) => disks
                    .iter()
                    .for_each(|disk| self.join_shown(*disk, *device, &identity)),
                Some(_) => self.note(format!(
                    "several devices are shown as {identity}: none was joined by it"
                )),
                None => self.propose(&disks, &identity),
            }
        }
    }

    fn join_shown(&mut self, disk: NodeId, device: NodeId, identity: &str) {
        // A host may be its own guest: an initiator on the machine of the target.
        if self.get(disk).host == self.get(device).host {
            return;
        }
        let source = Source::Identity {
            id: identity.to_owned(),
        };
        let names = (self.get(disk).name.clone(), self.get(device).name.clone());
        match self.join(disk, device, &source) {
            Ok(()) => self.note(format!(
                "{} is on {}, which is shown to it as {identity}",
                names.0, names.1
            )),
            Err(why) => self.note(format!(
                "{} has the identity {identity} that {} is shown under, and was not joined: {why}",
                names.0, names.1
            )),
        }
    }

    fn propose(&mut self, disks: &[NodeId], identity: &str) {
        if !UNIQUE.iter().any(|head| identity.starts_with(head)) {
            return;
        }
        let first = self.get(disks[0]);
        let other = disks[1..]
            .iter()
            .map(|id| self.get(*id))
            .find(|node| node.host != first.host);
        if let Some(other) = other {
            let (a, b) = (&first.name, &other.name);
            self.note(format!(
                "{a} and {b} are one disk, {identity}: if one host hands it to the other, add --join {a}={b} \
                 or --join {b}={a}"
            ));
        }
    }
}
