//! Requests and answers, as a handler sees them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::{Method, Response, StatusCode};
use serde::Serialize;

use crate::access::Access;
use crate::query::{Query, printable};

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

impl Request<'_> {
    /// The parameters behind the question mark.
    ///
    /// # Errors
    /// If one cannot be read, is not one of `known`, or comes twice.
    pub fn parameters(&self, known: &[&str]) -> Result<Query, RequestFault> {
        Query::parse(self.query.unwrap_or(""), known)
    }
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
    /// Tag of the body: a client that has a body with this tag gets none. `None` for an answer that nobody may keep.
    pub tag: Option<u64>,
    /// Seconds after which the client may ask again.
    pub retry_after_seconds: Option<u32>,
}

/// The reason for which a request has no answer, in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestFault {
    /// The part of the request, or of its answer.
    pub place: String,
    /// The text there.
    pub found: String,
    /// The texts that are accepted there.
    pub expected: String,
}

/// The document of a fault.
#[derive(Serialize)]
struct FaultDocument<'f> {
    schema: &'static str,
    error: &'f RequestFault,
}

impl RequestFault {
    /// A fault of a parameter.
    #[must_use]
    pub fn of_parameter(name: &str, found: &str, expected: impl Into<String>) -> RequestFault {
        RequestFault {
            place: format!("parameter `{}`", printable(name)),
            found: printable(found),
            expected: expected.into(),
        }
    }

    /// The answer with this fault.
    #[must_use]
    pub fn answer(&self, status: u16) -> Answer {
        let document = FaultDocument {
            schema: "plumb.error/1",
            error: self,
        };
        // Three texts can always be written.
        let text = plumb_quoting::json::line(&document).unwrap_or_default();
        Answer {
            content_type: JSON,
            ..Answer::text(status, text + "\n")
        }
    }
}

/// Plain text.
const TEXT: &str = "text/plain; charset=utf-8";

/// A JSON document; its characters are UTF-8 by definition.
const JSON: &str = "application/json";

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
            tag: None,
            retry_after_seconds: None,
        }
    }

    /// A JSON document, with its tag.
    #[must_use]
    pub fn json(document: impl Into<Bytes>) -> Answer {
        let body = document.into();
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        Answer {
            content_type: JSON,
            tag: Some(hasher.finish()),
            body,
            ..Answer::text(200, "")
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

    /// The response to a request with these headers. A HEAD request gets the headers alone: hyper leaves out the body.
    pub(crate) fn response(mut self, request: &HeaderMap) -> Response<Full<Bytes>> {
        let tag = self.tag.map(|tag| format!("\"{tag:016x}\""));
        if let Some(tag) = &tag
            && has_tag(request, tag)
        {
            self.status = 304;
            self.body = Bytes::new();
        }
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
        let tag = tag.and_then(|tag| HeaderValue::from_str(&tag).ok());
        let keep = match tag {
            // A client asks before it uses its copy.
            Some(_) => "private, no-cache",
            None => "no-store",
        };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
        headers.extend(tag.map(|tag| (ETAG, tag)));
        let seconds = self.retry_after_seconds.map(HeaderValue::from);
        headers.extend(seconds.map(|seconds| (RETRY_AFTER, seconds)));
        let needed = match self.status {
            401 => Some((WWW_AUTHENTICATE, "Bearer")),
            405 => Some((ALLOW, "GET, HEAD")),
            _ => None,
        };
        headers.extend(needed.map(|(name, value)| (name, HeaderValue::from_static(value))));
        response
    }
}

/// Whether a request says that the client has the body with a tag.
fn has_tag(request: &HeaderMap, tag: &str) -> bool {
    let lists = request.get_all(IF_NONE_MATCH).into_iter();
    let words = lists.filter_map(|list| list.to_str().ok());
    let mut words = words.flat_map(|list| list.split(','));
    words.any(|word| {
        let word = word.trim();
        word == "*" || word.strip_prefix("W/").unwrap_or(word) == tag
    })
}

/// The answer to a request without a token. It names nothing of this host.
pub(crate) fn not_admitted() -> Answer {
    Answer::text(
        401,
        "found no known token, expected a header `Authorization: Bearer TOKEN`\n",
    )
}

/// The answer to a request that no handler sees.
pub(crate) fn refusal(
    method: &Method,
    headers: &HeaderMap,
    address: &str,
    access: &Access,
) -> Option<Answer> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Some(Answer::text(
            405,
            "found another method, expected GET or HEAD\n",
        ));
    }
    let host = headers.get(hyper::header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or("");
    if is_own(host, address) || access.is_name(without_port(host)) {
        return None;
    }
    let shown: String = host.escape_debug().take(80).collect();
    let known = match access.tls() {
        Some(_) => "a name of the certificate",
        None => address,
    };
    Some(Answer::text(
        421,
        format!("found host '{shown}', expected localhost or {known}\n"),
    ))
}

/// The name in a `Host` header. A tunnel has a port of its own, so the port does not count.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Whether a `Host` header names this host, with any port.
fn is_own(host: &str, address: &str) -> bool {
    let name = without_port(host);
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
