//! The conditions under which a client gets answers: an encrypted connection, a name of this host, and a token.
//!
//! On loopback only the name is always checked. A server that other hosts can reach has to have a certificate and a token: see
//! [`Access::is_for_other_hosts`]. TLS 1.3 is the only version, and no session is resumed, so that a renewed certificate counts for
//! every later connection.

use std::fmt;
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HeaderMap};
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, ParsedCertificate};
use rustls::{InconsistentKeys, ServerConfig};
use subtle::{Choice, ConstantTimeEq};

/// Least characters of a token: 32 hexadecimal digits are 128 bits.
const TOKEN_MIN: usize = 32;

/// The protocol inside of the encrypted connection (ALPN).
const PROTOCOL: &[u8] = b"http/1.1";

/// The conditions of a server. The default admits every client of a loopback address.
#[derive(Clone, Default)]
pub struct Access {
    tls: Option<Tls>,
    tokens: Option<Vec<String>>,
}

#[derive(Clone)]
struct Tls {
    config: Arc<ServerConfig>,
    /// The certificate of this host, which has its names.
    certificate: CertificateDer<'static>,
}

/// A file of [`Access`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessFile {
    /// The certificate of the host, with those of its issuers behind it.
    Certificate,
    /// The private key of the certificate.
    Key,
    /// The tokens.
    Tokens,
}

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessFault {
    /// The file.
    pub file: AccessFile,
    /// Number of its line from 1 on; `None` for the whole file.
    pub line: Option<usize>,
    /// Its contents in words; never a secret.
    pub found: String,
}

impl AccessFile {
    /// The contents that are accepted.
    #[must_use]
    pub fn expected(self) -> &'static str {
        match self {
            AccessFile::Certificate => {
                "a certificate in PEM (-----BEGIN CERTIFICATE-----), that of this host first"
            }
            AccessFile::Key => {
                "the private key of the certificate in PEM (-----BEGIN PRIVATE KEY-----), without a passphrase"
            }
            AccessFile::Tokens => {
                "tokens of at least 32 characters, one a line, without spaces: `openssl rand -hex 32` makes one"
            }
        }
    }

    fn fault(self, found: impl fmt::Display) -> AccessFault {
        AccessFault {
            file: self,
            line: None,
            found: found.to_string(),
        }
    }
}

impl Access {
    /// Encrypts connections: `certificate` is the text of a PEM file with the certificate of this host and those of its issuers, `key`
    /// that of one with its private key.
    ///
    /// # Errors
    /// If one of them is damaged, absent or of another kind, or the key is that of another certificate.
    pub fn set_tls(&mut self, certificate: &[u8], key: &[u8]) -> Result<(), AccessFault> {
        let of_certificate = AccessFile::Certificate;
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.map_err(|error| of_certificate.fault(pem_words(&error)))?;
        let Some(certificate) = chain.first().cloned() else {
            return Err(of_certificate.fault("no certificate"));
        };
        let unreadable = |error| {
            of_certificate.fault(format_args!("a certificate that cannot be read ({error})"))
        };
        ParsedCertificate::try_from(&certificate).map_err(unreadable)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            PemError::NoItemsFound => AccessFile::Key.fault("no private key"),
            error => AccessFile::Key.fault(pem_words(&error)),
        })?;
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions();
        let builder = builder.map_err(unreadable)?;
        let made = builder.with_no_client_auth().with_single_cert(chain, key);
        let mut config = made.map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                AccessFile::Key.fault("the key of another certificate")
            }
            rustls::Error::InvalidCertificate(_) => unreadable(error),
            error => AccessFile::Key.fault(error),
        })?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        self.tls = Some(Tls {
            config: Arc::new(config),
            certificate,
        });
        Ok(())
    }

    /// Admits only clients that send a token of this text, which has one in each line.
    ///
    /// # Errors
    /// If a token is short or has other characters than visible ASCII, or the text has no token.
    pub fn set_tokens(&mut self, text: &str) -> Result<(), AccessFault> {
        let mut tokens = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let token = line.trim();
            let found = if token.is_empty() {
                continue;
            } else if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                "a space or a character that is not ASCII".to_owned()
            } else if token.len() < TOKEN_MIN {
                format!("a token of {} characters", token.len())
            } else {
                tokens.push(token.to_owned());
                continue;
            };
            return Err(AccessFault {
                line: Some(number + 1),
                ..AccessFile::Tokens.fault(found)
            });
        }
        if tokens.is_empty() {
            return Err(AccessFile::Tokens.fault("no token"));
        }
        self.tokens = Some(tokens);
        Ok(())
    }

    /// Whether other hosts may reach a server with these conditions: connections are encrypted, and clients have a token.
    #[must_use]
    pub fn is_for_other_hosts(&self) -> bool {
        self.tls.is_some() && self.tokens.is_some()
    }

    /// The begin of an address of the server.
    pub(crate) fn scheme(&self) -> &'static str {
        match self.tls {
            Some(_) => "https",
            None => "http",
        }
    }

    pub(crate) fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.as_ref().map(|tls| Arc::clone(&tls.config))
    }

    /// Whether a request with these headers has a token, or needs none.
    pub(crate) fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(tokens) = &self.tokens else {
            return true;
        };
        let sent = headers.get(AUTHORIZATION);
        let sent = sent.and_then(|value| bearer(value.as_bytes()));
        // The time tells nothing but the length of a token: each token is compared, and each of its bytes.
        let mut is_one = Choice::from(0);
        for token in tokens {
            is_one |= token.as_bytes().ct_eq(sent.unwrap_or_default());
        }
        is_one.into()
    }

    /// Whether the certificate is for a name or an address, as a `Host` header names it without the port.
    pub(crate) fn is_name(&self, host: &str) -> bool {
        let Some(tls) = &self.tls else {
            return false;
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let name = ServerName::try_from(bare.unwrap_or(host));
        let certificate = ParsedCertificate::try_from(&tls.certificate);
        match (certificate, name) {
            (Ok(certificate), Ok(name)) => verify_server_name(&certificate, &name).is_ok(),
            _ => false,
        }
    }
}

/// A damaged PEM file in words; the library prints lines as numbers of bytes.
fn pem_words(error: &PemError) -> &'static str {
    match error {
        PemError::MissingSectionEnd { .. } => "no end of a section (-----END)",
        PemError::IllegalSectionStart { .. } => "a damaged begin of a section (-----BEGIN)",
        PemError::Base64Decode(_) => "a section that is not in base64",
        _ => "damaged text",
    }
}

/// The token of an `Authorization` header; the word before it has no case (RFC 9110).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn of_tokens(text: &str) -> Result<Access, AccessFault> {
        let mut access = Access::default();
        access.set_tokens(text).map(|()| access)
    }

    #[test]
    fn files_of_tokens_are_checked() {
        let (one, two) = ("a".repeat(32), "b/+=~._-".repeat(5));
        let access = of_tokens(&format!("\n{one}\r\n\n  {two}\n")).expect("two tokens");
        assert_eq!(access.tokens, Some(vec![one.clone(), two]));
        for (text, line, found) in [
            ("", None, "no token"),
            ("\n \n", None, "no token"),
            (
                &*format!("{one}\n{}", "c".repeat(31)),
                Some(2),
                "a token of 31 characters",
            ),
            (
                &*format!("{one} {one}"),
                Some(1),
                "a space or a character that is not ASCII",
            ),
            (
                &*"é".repeat(40),
                Some(1),
                "a space or a character that is not ASCII",
            ),
        ] {
            let fault = of_tokens(text).err().expect(found);
            assert_eq!(
                (fault.line, fault.found.as_str()),
                (line, found),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_request_needs_one_of_the_tokens() {
        let (one, two) = ("a".repeat(32), "b".repeat(40));
        let access = of_tokens(&format!("{one}\n{two}\n")).expect("two tokens");
        let admits = |value: Option<String>| {
            let mut headers = HeaderMap::new();
            let value = value.map(|value| HeaderValue::from_str(&value).expect("a value"));
            headers.extend(value.map(|value| (AUTHORIZATION, value)));
            access.admits(&headers)
        };
        for (value, is_admitted) in [
            (format!("Bearer {one}"), true),
            (format!("bearer  {two} "), true),
            (format!("Bearer {}", "a".repeat(31)), false),
            (format!("Bearer {}", "a".repeat(33)), false),
            (format!("Bearer {}", "b".repeat(32)), false),
            (format!("Bearer {one} {two}"), false),
            ("Bearer ".to_owned(), false),
            ("Bearer".to_owned(), false),
            (format!("Basic {one}"), false),
            (one.clone(), false),
        ] {
            assert_eq!(admits(Some(value.clone())), is_admitted, "{value}");
        }
        assert!(!admits(None));
        assert!(Access::default().admits(&HeaderMap::new()));
        assert!(!access.is_for_other_hosts());
    }
}
