//! The certificate of a server and its private key, made by `openssl`, and requests by `curl`: two programs that share no code with the
//! server.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::wait;

/// A key of 256 bits on a curve, as arguments of `openssl req -newkey`.
pub const CURVE: &[&str] = &["ec", "-pkeyopt", "ec_paramgen_curve:P-256"];

/// A certificate that is its own issuer.
pub struct Certificate {
    /// File of the certificate, in PEM.
    pub certificate: PathBuf,
    /// File of its private key, in PEM; its owner alone can read it.
    pub key: PathBuf,
}

impl Certificate {
    /// Makes `NAME.crt` and `NAME.key` in a folder. `names` are those of the server, such as `DNS:db1.example,IP:127.0.0.1`; `new_key`
    /// are arguments for the key, such as [`CURVE`].
    ///
    /// # Panics
    /// If `openssl` fails.
    #[must_use]
    pub fn make(folder: &Path, name: &str, names: &str, new_key: &[&str]) -> Certificate {
        let made = Certificate {
            certificate: folder.join(format!("{name}.crt")),
            key: folder.join(format!("{name}.key")),
        };
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-nodes", "-days", "2", "-newkey"]);
        command
            .args(new_key)
            .args(["-subj", "/CN=plumb", "-addext"]);
        command.arg(format!("subjectAltName={names}"));
        command.arg("-out").arg(&made.certificate);
        command.arg("-keyout").arg(&made.key);
        let done = wait::output_of(&mut command);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "openssl: {said}");
        made
    }
}

/// Runs `curl` with these arguments, which trusts this certificate alone. The last line of its output is the status of the
/// answer, 000 without one.
#[must_use]
pub fn curl(trusted: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--noproxy", "*"]);
    command.args(["--write-out", "\n%{http_code}", "--cacert"]);
    wait::output_of(command.arg(trusted).args(args))
}
