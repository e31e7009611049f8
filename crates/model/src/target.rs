//! The target of a rule: a device, a part of it, or the host.

use plumb_geometry::Bytes;
use plumb_stack::graph::HOST;
use plumb_stack::{Kind, NodeId, Stack};
use plumb_trace::Layer;
use serde::{Deserialize, Serialize};

/// The layer of a target, or the layer that recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TargetLayer {
    /// The layer at which the I/O were seen.
    Seen(Layer),
    /// The kind of a layer of a stack.
    Stack(Kind),
    /// A host and its settings.
    Host(HostLayer),
}

/// The layer of a finding about a host as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostLayer {
    /// The only one.
    Host,
}

/// A part of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// A partition, by its name or number.
    Partition(String),
    /// The bytes from the first to the second, which is the first one outside.
    Range {
        /// First byte.
        start_bytes: Bytes,
        /// First byte behind.
        end_bytes: Bytes,
    },
}

/// The thing that a rule judged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Target {
    /// The host that has the device; absent where one host was judged and its name is not known.
    pub host: Option<String>,
    /// Device as the source names it.
    pub device: String,
    /// Part of the device; absent for the whole.
    pub part: Option<Part>,
    /// Layer at which the I/O were seen, or the kind of layer that the device is.
    pub layer: TargetLayer,
    /// WWN, UUID or serial of the device; absent if nothing states one.
    pub identity: Option<String>,
    /// The node in the stack of this process. Ids mean nothing elsewhere, so it is not serialised.
    #[serde(skip)]
    pub node: Option<NodeId>,
}

impl Target {
    /// A device at which I/O were seen.
    #[must_use]
    pub fn seen(device: &str, part: Option<Part>, layer: Layer) -> Target {
        Target {
            host: None,
            device: device.to_owned(),
            part,
            layer: TargetLayer::Seen(layer),
            identity: None,
            node: None,
        }
    }

    /// A layer of a stack; the node of the host's facts is the host.
    #[must_use]
    pub fn layer(stack: &Stack, id: NodeId) -> Target {
        let node = stack.node(id);
        if node.name == HOST {
            return Target::host();
        }
        Target {
            host: node.host.clone(),
            device: node.name.clone(),
            part: None,
            layer: TargetLayer::Stack(node.kind),
            identity: stack.identity(id),
            node: Some(id),
        }
    }

    /// The host as a whole.
    #[must_use]
    pub fn host() -> Target {
        Target {
            host: None,
            device: HOST.to_owned(),
            part: None,
            layer: TargetLayer::Host(HostLayer::Host),
            identity: None,
            node: None,
        }
    }

    /// Whether the target is a layer of a stack, and not a device whose I/O were seen.
    #[must_use]
    pub fn is_layer(&self) -> bool {
        matches!(self.layer, TargetLayer::Stack(_))
    }

    /// Whether the target is a host as a whole.
    #[must_use]
    pub fn is_host(&self) -> bool {
        matches!(self.layer, TargetLayer::Host(_))
    }
}
