//! Requests and answers, as a handler sees them.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Response, StatusCode};

/// A request whose method and host the server has checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'r> {
    /// The path, such as `/metrics`.
    pub path: &'r str,
    /// The text behind the question mark.
    pub query: Option<&'r str>,
    /// Media types that the client wants; empty if it does not say.
    pub accept: &'r str,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body; answers can share one.
    pub body: Bytes,
}

/// Plain text.
const TEXT: &str = "text/plain; charset=utf-8";

/// A page may load nothing from elsewhere, and no other page may show it in a frame.
const CONTENT_SECURITY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'";

impl Answer {
    /// An answer in plain text.
    #[must_use]
    pub fn text(status: u16, text: impl Into<String>) -> Answer {
        Answer {
            status,
            content_type: TEXT,
            body: Bytes::from(text.into()),
        }
    }

    /// An answer for a path that does not exist.
    #[must_use]
    pub fn not_found(path: &str, known: &[&str]) -> Answer {
        let shown: String = path.escape_debug().take(80).collect();
        Answer::text(
            404,
            format!("found path {shown}, expected one of {}\n", known.join(", ")),
        )
    }

    /// The response to send. A HEAD request gets the headers alone: hyper leaves out the body.
    pub(crate) fn response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        for (name, value) in [
            ("content-security-policy", CONTENT_SECURITY),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status == 405 {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

/// The answer to a request that no handler sees.
pub(crate) fn refusal(method: &Method, headers: &HeaderMap, address: &str) -> Option<Answer> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Some(Answer::text(
            405,
            "found another method, expected GET or HEAD\n",
        ));
    }
    let host = headers.get(hyper::header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or("");
    if is_own(host, address) {
        return None;
    }
    let shown: String = host.escape_debug().take(80).collect();
    Some(Answer::text(
        421,
        format!("found host '{shown}', expected localhost or {address}\n"),
    ))
}

/// Whether a `Host` header names this host, with any port: a tunnel has a port of its own.
fn is_own(host: &str, address: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let names = ["localhost", "127.0.0.1", "[::1]", address];
    names.iter().any(|own| own.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_this_machine_alone_are_served() {
        for host in [
            "localhost",
            "LOCALHOST:9974",
            "127.0.0.1:1",
            "[::1]:9974",
            "[::1]",
            "127.0.0.5:80",
        ] {
            assert!(is_own(host, "127.0.0.5"), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:9974",
            "127.0.0.1.evil.example",
            "127.0.0.1:9974:80",
            "localhost:x",
            "::1",
            "[::2]:9974",
        ] {
            assert!(!is_own(host, "127.0.0.5"), "{host}");
        }
    }
}
