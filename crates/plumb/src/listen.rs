//! The address at which the agent and `plumb serve` answer HTTP.

use std::net::SocketAddr;

/// The addresses that are accepted. A reader on another host would need a secret and an encrypted connection.
pub const EXPECTED: &str = "a loopback address with a port, such as \"127.0.0.1:9974\" (any other address needs TLS and a token, \
which Plumb does not have yet)";

/// Reads an address that this host alone can reach; `None` for any other text.
pub fn loopback(text: &str) -> Option<SocketAddr> {
    let address: SocketAddr = text.parse().ok()?;
    address.ip().is_loopback().then_some(address)
}
