//! Questions of several rules to a Solaris host.

use plumb_stack::node::{FactKey, keys};
use plumb_stack::node_facts::{ContentKind, HostSystem, VolumeManager};
use plumb_stack::{Kind, Node, NodeId, Source};

use super::context::Context;

/// Whether a mount option is set; `None` when the options are not known.
pub fn option(node: &Node, option: &str) -> Option<bool> {
    Some(node.value(keys::MOUNT_OPTIONS)?.has(option))
}

/// A number among the settings of the host, with its source.
pub fn setting<T: Copy>(context: &Context<'_>, key: FactKey<T>) -> Option<(T, Source)> {
    let fact = context.stack.host()?.fact(key)?;
    Some((fact.value, fact.source.clone()))
}

/// Whether `/etc/system` was read: a setting that it does not contain has its default then.
pub fn is_system_file_read(context: &Context<'_>) -> bool {
    setting(context, keys::MAXPHYS).is_some()
        || setting(context, keys::SEGMAP_PERCENT).is_some()
        || setting(context, keys::MIRROR_WOW).is_some()
}

/// Volumes of Solaris Volume Manager.
pub fn metadevices<'a>(
    context: &Context<'a>,
) -> impl Iterator<Item = (NodeId, &'a Node)> + use<'a> {
    context
        .stack
        .nodes()
        .filter(|(_, node)| node.value(keys::MANAGER) == Some(&VolumeManager::Svm))
}

/// Whether the host runs Solaris, as far as its dumps tell.
pub fn is_solaris(context: &Context<'_>) -> bool {
    context
        .stack
        .host()
        .and_then(|host| host.value(keys::SYSTEM))
        == Some(&HostSystem::Solaris)
        || metadevices(context).next().is_some()
}

/// Mirrors of Solaris Volume Manager with more than one side.
pub fn mirrors<'a>(context: &Context<'a>) -> impl Iterator<Item = (NodeId, &'a Node)> + use<'a> {
    metadevices(context)
        .filter(|(_, node)| node.kind == Kind::Mirror && node.placing.below().len() > 1)
}

/// UFS file systems that are mounted, or are to be.
pub fn ufs<'a>(context: &Context<'a>) -> impl Iterator<Item = (NodeId, &'a Node)> {
    context
        .file_systems()
        .filter(|(_, node)| node.value(keys::CONTENT) == Some(&ContentKind::Ufs))
}
