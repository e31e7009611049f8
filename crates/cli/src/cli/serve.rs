//! Flags of `plumb serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::listen::{self, AccessFiles};

/// Flags of `plumb serve`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "The paths are /api/v1/devices, /api/v1/findings, /api/v1/glance, /api/v1/histograms and /api/v1/tables; \
docs/history.md describes them. The agent answers them as well, at its own address.\n\
No window is changed. The history may be a copy, and an agent may write to it meanwhile. Without --token-file every user of this host can \
read the answers. A client sends a token in the header `Authorization: Bearer TOKEN`, and names the host as its certificate does. SIGTERM \
or Ctrl-C ends the command.\n\
Exit status: 0 ended in good order, 2 usage, 4 not permitted, 5 failed."
)]
pub struct Serve {
    /// Folder of the history, for instance a backup
    #[arg(value_name = "DIR", conflicts_with = "state_dir")]
    pub folder: Option<PathBuf>,
    /// Folder of the history (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Address to listen at; one beyond loopback needs the three files, and port 0 is any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9975", value_parser = address)]
    pub listen: SocketAddr,
    /// Certificate of this host in PEM, for TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// Private key of the certificate in PEM; other users must not be able to read it
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// Tokens of at least 32 characters, one a line; other users must not be able to read them
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// Flags of the files that an address beyond loopback needs.
const FILES: [&str; 3] = ["--tls-certificate", "--tls-key", "--token-file"];

impl Serve {
    /// The files that protect the answers.
    pub fn access_files(&self) -> AccessFiles {
        AccessFiles {
            certificate: self.tls_certificate.clone(),
            key: self.tls_key.clone(),
            tokens: self.token_file.clone(),
        }
    }

    /// The mistake in the address, if there is one.
    pub fn address_mistake(&self) -> Option<String> {
        let is_fitting = self.access_files().permit(self.listen);
        let found = self.listen.to_string();
        (!is_fitting).then(|| format!("--listen: {}", mistake(&found)))
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| mistake(text))
}

fn mistake(found: &str) -> String {
    format!("found `{found}`, expected {}", listen::expected(FILES))
}
