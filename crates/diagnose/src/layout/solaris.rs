//! What several rules ask of a Solaris host.

use plumb_stack::node::keys;
use plumb_stack::{Kind, Node, NodeId, Source};

use super::context::Context;

/// Whether a mount option is set; `None` when the options are not known.
pub fn option(node: &Node, option: &str) -> Option<bool> {
    let options = node.word(keys::MOUNT_OPTIONS)?;
    Some(options.split(',').any(|set| set.trim() == option))
}

/// A number among the settings of the host, and who said so.
pub fn setting(context: &Context<'_>, key: &str) -> Option<(u64, Source)> {
    let host = context.stack.host()?;
    Some((host.number(key)?, host.facts.get(key)?.source.clone()))
}

/// Whether `/etc/system` was read: what it does not set has its default then.
pub fn is_system_file_read(context: &Context<'_>) -> bool {
    [keys::MAXPHYS, keys::SEGMAP_PERCENT, keys::MIRROR_WOW]
        .iter()
        .any(|key| setting(context, key).is_some())
}

/// Volumes of Solaris Volume Manager.
pub fn metadevices<'a>(
    context: &Context<'a>,
) -> impl Iterator<Item = (NodeId, &'a Node)> + use<'a> {
    context
        .stack
        .nodes()
        .filter(|(_, node)| node.word(keys::MANAGER) == Some("svm"))
}

/// Whether the host runs Solaris, as far as its dumps tell.
pub fn is_solaris(context: &Context<'_>) -> bool {
    context
        .stack
        .host()
        .and_then(|host| host.word(keys::SYSTEM))
        == Some("solaris")
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
        .filter(|(_, node)| node.word(keys::CONTENT) == Some("ufs"))
}
