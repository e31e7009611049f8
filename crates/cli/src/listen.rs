//! The address at which the agent and `plumb serve` answer HTTP, and the files that protect the answers.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use plumb_http::{Access, AccessFault, AccessFile};

use crate::failure::Failure;

/// The addresses that are accepted without a secret and an encrypted connection: this host alone can reach them.
const LOOPBACK: &str = "a loopback address with a port, such as \"127.0.0.1:9974\"";

/// Most bytes of a file that are read.
const BYTES_MAX: u64 = 1 << 20;

/// Rights of users that are neither the owner of a file nor in its group.
const OTHERS: u32 = 0o007;

/// The accepted addresses; `names` are those of the three files that any other address needs.
pub fn expected(names: [&str; 3]) -> String {
    let [certificate, key, token] = names;
    format!(
        "{LOOPBACK} (any other address needs TLS and a token: {certificate}, {key} and {token})"
    )
}

/// The files that protect the answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessFiles {
    /// The certificate of this host, in PEM.
    pub certificate: Option<PathBuf>,
    /// Its private key, in PEM.
    pub key: Option<PathBuf>,
    /// Tokens, one a line.
    pub tokens: Option<PathBuf>,
}

impl AccessFiles {
    /// Whether a server with these files may listen at an address.
    pub fn permit(&self, address: SocketAddr) -> bool {
        let is_complete = self.certificate.is_some() && self.key.is_some() && self.tokens.is_some();
        address.ip().is_loopback() || is_complete
    }

    /// The files that are named.
    pub fn paths(&self) -> Vec<PathBuf> {
        let all = [&self.certificate, &self.key, &self.tokens];
        all.into_iter().flatten().cloned().collect()
    }

    /// Reads the files.
    ///
    /// # Errors
    /// If one cannot be read, other users can read a secret, or the contents do not fit.
    pub fn access(&self) -> Result<Access, Failure> {
        let mut access = Access::default();
        if let (Some(certificate), Some(key)) = (&self.certificate, &self.key) {
            let texts = (
                contents(certificate, AccessFile::Certificate)?,
                contents(key, AccessFile::Key)?,
            );
            let set = access.set_tls(&texts.0, &texts.1);
            set.map_err(|fault| self.failure(&fault))?;
        }
        if let Some(tokens) = &self.tokens {
            let text = contents(tokens, AccessFile::Tokens)?;
            let set = access.set_tokens(&String::from_utf8_lossy(&text));
            set.map_err(|fault| self.failure(&fault))?;
        }
        Ok(access)
    }

    fn failure(&self, fault: &AccessFault) -> Failure {
        let path = match fault.file {
            AccessFile::Certificate => &self.certificate,
            AccessFile::Key => &self.key,
            AccessFile::Tokens => &self.tokens,
        };
        let path = path.as_deref().unwrap_or(Path::new(""));
        let line = fault
            .line
            .map_or_else(String::new, |line| format!(":{line}"));
        let place = format!("{}{line}", path.display());
        mistake(place, &fault.found, fault.file.expected())
    }
}

fn mistake(place: impl fmt::Display, found: &str, expected: &str) -> Failure {
    Failure::usage(format!("{place}: found {found}, expected {expected}"))
}

/// The contents of a file; those of a secret only if other users cannot read them.
fn contents(path: &Path, kind: AccessFile) -> Result<Vec<u8>, Failure> {
    let refuse = |found: &str, expected: &str| Err(mistake(path.display(), found, expected));
    let unreadable = |error: io::Error| {
        let found = format!("a file that cannot be read ({error})");
        mistake(path.display(), &found, kind.expected())
    };
    let file = open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return refuse("no regular file", kind.expected());
    }
    let mode = metadata.mode() & 0o777;
    if kind != AccessFile::Certificate && mode & OTHERS != 0 {
        let found = format!("mode {mode:04o}");
        return refuse(
            &found,
            "a file that other users cannot read, such as mode 0600",
        );
    }
    if metadata.len() > BYTES_MAX {
        return refuse("more than 1 MiB", kind.expected());
    }
    let mut bytes = Vec::new();
    let read = file.take(BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(unreadable)?;
    Ok(bytes)
}

/// Opens a file; a pipe without a writer must not keep the program waiting.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
}
