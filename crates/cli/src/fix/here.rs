//! The kernel's facts about a disk: users, identity, stated grids.

use std::path::Path;

use plumb_geometry::{Grid, GridKind};
use plumb_quoting::Command;
use plumb_stack::linux::{self, Live, Root};
use plumb_stack::node::{FactKey, keys};
use plumb_stack::{Builder, CellKind, GridFact, Kind, NodeId, Stack};

use crate::check::target;
use crate::failure::Failure;

/// A device or file among all others of this host, without labels and superblocks.
pub struct Here {
    stack: Stack,
    node: NodeId,
}

impl Here {
    /// Reads the storage stack of the host and finds the device or file in it.
    ///
    /// # Errors
    /// When it cannot be looked at, or has no such device.
    pub fn find(path: &Path) -> Result<Here, Failure> {
        let kernel = Live::default();
        let root = Root::open(Path::new("/"), &kernel).map_err(|error| Failure::failed(&error))?;
        let mut builder = Builder::default();
        let host = linux::collect(&root, &mut builder).map_err(|error| Failure::failed(&error))?;
        let node = target::on_host(path, &host, &root, &mut builder)?;
        let nowhere =
            || Failure::missing(format!("{}: found no such device or file", path.display()));
        Ok(Here {
            node: node.ok_or_else(nowhere)?,
            stack: builder.finish(),
        })
    }

    /// The kind of device.
    pub fn kind(&self) -> Kind {
        self.stack.node(self.node).kind
    }

    /// Its identity among disks, which survives attaching it again: empty without one.
    pub fn identity(&self) -> String {
        self.stack
            .node(self.node)
            .word(keys::IDENTITY)
            .unwrap_or_default()
            .to_owned()
    }

    /// Everything that uses it, or a partition of it, in words.
    pub fn users(&self) -> Vec<String> {
        let mut users = Vec::new();
        self.users_of(self.node, &mut users);
        users
    }

    /// Everything that uses it as a whole, and not a partition of it.
    pub fn own_users(&self) -> Vec<String> {
        self.stack
            .above(self.node)
            .iter()
            .filter_map(|above| self.user(self.node, *above))
            .collect()
    }

    /// The command that ends one of these uses; `None` if none always works.
    pub fn freed_by(&self) -> Option<Command> {
        let device = Path::new("/dev").join(self.stack.node(self.node).name.replace('!', "/"));
        self.stack
            .above(self.node)
            .iter()
            .find_map(|above| match self.stack.node(*above).kind {
                Kind::FileSystem => Some(Command::new("umount").path(&device)),
                Kind::Swap => Some(Command::new("swapoff").path(&device)),
                _ => None,
            })
    }

    /// As [`Here::users`], of another device of this host by the kernel's name.
    pub fn users_on(&self, name: &str) -> Vec<String> {
        let mut users = Vec::new();
        if let Some(id) = self.stack.find(name) {
            self.users_of(id, &mut users);
        }
        users
    }

    fn users_of(&self, id: NodeId, users: &mut Vec<String>) {
        for above in self.stack.above(id) {
            match self.user(id, *above) {
                Some(user) => users.push(user),
                None => self.users_of(*above, users),
            }
        }
    }

    /// The use of a device by a layer directly above; `None` if that is a part of it, which nobody may use.
    fn user(&self, id: NodeId, above: NodeId) -> Option<String> {
        let (name, node) = (&self.stack.node(id).name, self.stack.node(above));
        Some(match node.kind {
            Kind::Partition | Kind::SoftPartition => return None,
            Kind::FileSystem => {
                format!(
                    "{name} is mounted at {}",
                    node.word(keys::MOUNT).unwrap_or(&node.name)
                )
            }
            Kind::Swap => format!("{name} is used for paging"),
            kind => format!("{name} is part of the {} {}", kind.text(), node.name),
        })
    }

    /// Everything below it, itself first, by the kernel's names.
    fn under(&self) -> impl Iterator<Item = &plumb_stack::Node> {
        self.stack
            .under(self.node)
            .into_iter()
            .map(|id| self.stack.node(id))
    }

    /// The physical disks below it, through volumes, arrays and files shown as disks; empty if that is lost.
    pub fn disks(&self) -> Vec<String> {
        self.under()
            .filter(|node| node.kind.is_leaf())
            .map(|node| node.name.clone())
            .collect()
    }

    /// Whether a part of it is in memory: gone after a power cut.
    pub fn is_in_memory(&self) -> bool {
        self.under().any(|node| node.kind == Kind::Ram)
    }

    /// Whether it is on a device of that name.
    pub fn lies_on(&self, name: &str) -> bool {
        self.under().any(|node| node.name == name)
    }

    /// A fact that the kernel or the disk states of it.
    pub fn value<T>(&self, key: FactKey<T>) -> Option<&T> {
        self.stack.node(self.node).value(key)
    }

    /// Blocks that the layers below write as a whole, in bytes of the device.
    pub fn write_units(&self) -> Vec<Grid> {
        const WRITTEN_WHOLE: [CellKind; 4] = [
            CellKind::PhysicalBlock,
            CellKind::WriteAlignment,
            CellKind::IndirectionUnit,
            CellKind::ArrayUnit,
        ];
        let through = self.stack.grids_through(self.node).into_iter();
        let is_written = |fact: &GridFact| {
            WRITTEN_WHOLE.contains(&fact.what) && fact.grid.kind() == GridKind::Unit
        };
        through.filter(is_written).map(|fact| fact.grid).collect()
    }

    /// Physical blocks below it, in bytes of the device or file system.
    pub fn physical_blocks(&self) -> Vec<Grid> {
        let through = self.stack.grids_through(self.node).into_iter();
        through
            .filter(|fact| fact.what == CellKind::PhysicalBlock)
            .map(|fact| fact.grid)
            .collect()
    }

    /// Grids that are stated for the layers below, in bytes of the device.
    pub fn grids(&self) -> Vec<Grid> {
        let through = self.stack.grids_through(self.node).into_iter();
        through
            .filter(|fact| fact.what != CellKind::Assumed)
            .map(|fact| fact.grid)
            .collect()
    }
}
