//! Flags of `plumb serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::listen;

/// Flags of `plumb serve`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "The paths are /api/v1/devices, /api/v1/findings, /api/v1/glance, /api/v1/histograms and /api/v1/tables; \
docs/history.md describes them. The agent answers them as well, at its own address.\n\
No window is changed. The history may be a copy, and an agent may write to it meanwhile. Every user of this host can read the answers. \
SIGTERM or Ctrl-C ends the command.\n\
Exit status: 0 ended in good order, 2 usage, 4 not permitted, 5 failed."
)]
pub struct Serve {
    /// Folder of the history, for instance a backup
    #[arg(value_name = "DIR", conflicts_with = "state_dir")]
    pub folder: Option<PathBuf>,
    /// Folder of the history (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Loopback address to listen at; port 0 is any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9975", value_parser = address)]
    pub listen: SocketAddr,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    listen::loopback(text).ok_or_else(|| format!("found `{text}`, expected {}", listen::EXPECTED))
}
