//! The server against clients that speak to it over a socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use plumb_http::{Access, Answer, Bytes, Handler, Limits, Reply, Request, Server};
use plumb_testkit::wait;

/// A whole request.
const ECHO: &str = "GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n";
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// 64 MiB fit in no buffer of a socket.
const WHOLE: usize = 64 << 20;

/// Limits that no test waits for.
const PATIENT: Limits = Limits {
    header: Duration::from_secs(600),
    connection: Duration::from_secs(600),
    connections_max: 128,
    header_bytes_max: 16 << 10,
    headers_max: 64,
    budget: Duration::from_secs(600),
    refusal: Duration::from_secs(600),
};

mod access;
mod jobs;

fn start(
    limits: Limits,
    answer: impl Fn(&Request<'_>) -> Answer + Send + Sync + 'static,
) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let handler: Handler = Arc::new(move |request| answer(request).into());
    Server::start(listener, limits, Access::default(), handler).expect("a server")
}

/// Answers with its question.
fn echo(request: &Request<'_>) -> Answer {
    match request.path {
        "/echo" => Answer::text(200, format!("{request:?}")),
        other => Answer::not_found(other, &["/echo"]),
    }
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("a connection");
    stream
        .set_read_timeout(Some(wait::PATIENCE))
        .expect("a limit");
    stream
}

/// The bytes up to the end of the connection.
fn read_all(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        // The server closed while bytes of the client were on their way.
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("no end of the connection: {error}"),
    }
    String::from_utf8(bytes).expect("text")
}

fn ask(to: SocketAddr, request: &str) -> String {
    let mut stream = connect(to);
    stream.write_all(request.as_bytes()).expect("a reader");
    read_all(stream)
}

fn status(response: &str) -> &str {
    let line = response.lines().next().unwrap_or("");
    line.strip_prefix("HTTP/1.1 ").unwrap_or(line)
}

fn body(response: &str) -> &str {
    response.split_once("\r\n\r\n").expect("a header").1
}

#[test]
fn a_request_is_answered_with_headers_that_protect_the_reader() {
    let server = start(PATIENT, echo);
    let request = "GET /echo?device=sda HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n";
    let response = ask(server.address(), request);
    assert_eq!(status(&response), "200 OK");
    insta::assert_snapshot!(body(&response));
    for header in [
        "content-security-policy: default-src 'none';",
        "x-content-type-options: nosniff\r\n",
        "referrer-policy: no-referrer\r\n",
        "cache-control: no-store\r\n",
        "content-type: text/plain; charset=utf-8\r\n",
    ] {
        assert!(response.contains(header), "{header} in {response}");
    }
}

#[test]
fn head_gets_the_headers_alone() {
    let server = start(PATIENT, echo);
    let response = ask(
        server.address(),
        "HEAD /echo HTTP/1.1\r\nHost: localhost\r\n\r\n",
    );
    assert_eq!((status(&response), body(&response)), ("200 OK", ""));
    let length = "Request { path: \"/echo\", query: None, accept: \"\" }".len();
    assert!(response.contains(&format!("content-length: {length}\r\n")));
}

#[test]
fn unfit_requests_are_refused_with_a_reason() {
    let server = start(PATIENT, echo);
    let line = |method: &str, path: &str, host: &str| {
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n")
    };
    for (request, expected_status, expected_body) in [
        (
            line("GET", "/other\u{1b}", "localhost"),
            "400 Bad Request",
            "",
        ),
        (
            line("GET", "/other", "localhost"),
            "404 Not Found",
            "found path /other, expected one of /echo\n",
        ),
        (
            line("POST", "/echo", "localhost"),
            "405 Method Not Allowed",
            "found another method, expected GET or HEAD\n",
        ),
        (
            line("GET", "/echo", "evil.example"),
            "421 Misdirected Request",
            "found host 'evil.example', expected localhost or 127.0.0.1\n",
        ),
        (
            "GET /echo HTTP/1.1\r\n\r\n".to_owned(),
            "421 Misdirected Request",
            "found host '', expected localhost or 127.0.0.1\n",
        ),
        ("\0\0\0\0\r\n\r\n".to_owned(), "400 Bad Request", ""),
    ] {
        let response = ask(server.address(), &request);
        assert_eq!(
            (status(&response), body(&response)),
            (expected_status, expected_body),
            "{request}"
        );
    }
}

#[test]
fn long_headers_are_refused() {
    let server = start(PATIENT, echo);
    let long = format!(
        "GET /echo HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(20 << 10)
    );
    let many = format!(
        "GET /echo HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "X: y\r\n".repeat(100)
    );
    for request in [long, many] {
        let response = ask(server.address(), &request);
        assert_eq!(status(&response), "431 Request Header Fields Too Large");
    }
    let fitting = format!(
        "GET /echo HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(10 << 10)
    );
    assert_eq!(status(&ask(server.address(), &fitting)), "200 OK");
}

/// Clients that send half a header for ever take no place from others: of 500 the oldest go.
#[test]
fn half_a_header_takes_no_place() {
    let server = start(PATIENT, echo);
    let half = |_| {
        let mut stream = connect(server.address());
        stream
            .write_all(b"GET /echo HTTP/1.1\r\nHost: local")
            .expect("a reader");
        stream
    };
    let mut slow: Vec<TcpStream> = (0..500).map(half).collect();
    let response = ask(server.address(), ECHO);
    assert_eq!(status(&response), "200 OK");
    // The last of them is there still, and may end its request.
    let mut last = slow.pop().expect("500 of them");
    last.write_all(b"host\r\n\r\n").expect("a reader");
    assert_eq!(status(&read_all(last)), "200 OK");
    // The first one was closed without an answer.
    assert_eq!(read_all(slow.swap_remove(0)), "");
}

#[test]
fn connections_end_after_their_time() {
    let short = Limits {
        header: Duration::from_millis(200),
        ..PATIENT
    };
    let server = start(short, echo);
    let mut half = connect(server.address());
    half.write_all(b"GET /echo").expect("a reader");
    for stream in [half, connect(server.address())] {
        let answer = read_all(stream);
        assert!(
            answer.is_empty() || status(&answer) == "408 Request Timeout",
            "{answer}"
        );
    }

    // The server waits for a client that does not read.
    let short = Limits {
        connection: Duration::from_millis(200),
        ..PATIENT
    };
    let (answered, answers) = std::sync::mpsc::channel();
    let server = start(short, move |_| {
        answered.send(()).expect("the test listens");
        Answer::text(200, "x".repeat(WHOLE))
    });
    let mut stream = connect(server.address());
    stream.write_all(GET).expect("a reader");
    answers.recv_timeout(wait::PATIENCE).expect("an answer");
    std::thread::sleep(Duration::from_secs(1));
    assert!(read_all(stream).len() < WHOLE);
}

/// Clients that do not read their answers take no place from others, and share one answer.
#[test]
fn a_client_that_does_not_read_takes_no_place() {
    let (answered, answers) = std::sync::mpsc::channel();
    let large = Bytes::from("x".repeat(WHOLE));
    let server = start(PATIENT, move |request| {
        answered.send(()).expect("the test listens");
        match request.path {
            "/" => Answer {
                body: large.clone(),
                ..Answer::text(200, "")
            },
            _ => echo(request),
        }
    });
    let idle = |_| {
        let mut stream = connect(server.address());
        stream.write_all(GET).expect("a reader");
        answers.recv_timeout(wait::PATIENCE).expect("an answer");
        stream
    };
    let mut idle: Vec<TcpStream> = (0..200).map(idle).collect();
    let response = ask(server.address(), ECHO);
    assert_eq!(status(&response), "200 OK");
    // The last of them gets all of its answer, the first one does not.
    let last = read_all(idle.pop().expect("200 of them"));
    assert_eq!(body(&last).len(), WHOLE);
    assert!(read_all(idle.swap_remove(0)).len() < WHOLE);
}

#[test]
fn a_dropped_server_listens_no_more() {
    let server = start(PATIENT, echo);
    let address = server.address();
    let mut half = connect(address);
    half.write_all(b"GET /echo").expect("a reader");
    drop(server);
    assert_eq!(read_all(half), "");
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn addresses_that_others_reach_are_refused() {
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
    let handler: Handler = Arc::new(|request| Reply::Now(echo(request)));
    let refused = Server::start(listener, PATIENT, Access::default(), handler).err();
    let words = refused.expect("a refusal").to_string();
    let expected = "expected a loopback address (any other address needs TLS and a token)";
    assert!(words.ends_with(expected), "{words}");
}

/// While an answer is made, many more clients can connect than are served at a time.
#[test]
fn clients_of_a_busy_server_connect_at_once() {
    let (release, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let (begin, begun) = std::sync::mpsc::channel();
    let server = start(PATIENT, move |request| {
        if request.path == "/wait" {
            begin.send(()).expect("the test listens");
            // The thread of the server is busy until then; an error is the end of the test.
            let _ = gate.lock().expect("no panic").recv();
        }
        echo(request)
    });
    // A test that fails drops it before the server, whose thread waits for it.
    let release = release;
    let mut busy = connect(server.address());
    let request = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n";
    busy.write_all(request.as_bytes()).expect("a reader");
    begun.recv_timeout(wait::PATIENCE).expect("a request");
    // The kernel drops the first packet of a client for whom it has no room, so that it cannot connect.
    let limit = Duration::from_secs(60);
    let clients: Vec<TcpStream> = (0..1_000)
        .map(|number| {
            TcpStream::connect_timeout(&server.address(), limit)
                .unwrap_or_else(|error| panic!("client {number}: {error}"))
        })
        .collect();
    drop(clients);
    release.send(()).expect("the server waits");
    assert_eq!(status(&read_all(busy)), "404 Not Found");
    assert_eq!(status(&ask(server.address(), ECHO)), "200 OK");
}
