//! A small HTTP/1.1 server for a few readers: GET and HEAD, no bodies. Other hosts reach it only by TLS and with a token: see [`Access`].
//!
//! One thread serves all connections. It stays responsive, and its memory bounded, whatever number of clients connects and however slowly
//! they send: see [`Limits`]. Each connection carries one request. A handler can leave an answer that takes long to one of two further
//! threads ([`Reply::Later`]); it has a budget of time.
//!
//! A page on the Internet can make a browser send requests to an address of its own host (DNS rebinding). Such a request has the name of
//! that page in its `Host` header, so a request for an unknown host is refused. With TLS the names of the certificate are known, too.

#![forbid(unsafe_code)]

mod access;
mod answer;
mod query;
mod server;
mod workers;

pub use access::{Access, AccessFault, AccessFile};
pub use answer::{Answer, Request, RequestFault};
pub use bytes::Bytes;
pub use query::Query;
pub use server::{Handler, Limits, Server};
pub use workers::{Budget, LateAnswer, Reply};
