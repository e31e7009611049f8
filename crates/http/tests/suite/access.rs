//! TLS, tokens and names of the host, against `curl` with certificates of `openssl`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plumb_http::AccessFile;
use plumb_testkit::certificate::{CURVE, Certificate, curl};
use plumb_testkit::require;

use super::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A request to `/echo` for a host with further headers.
fn request(host: &str, headers: &str) -> String {
    format!("GET /echo HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n")
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// A server at an address, and the number of requests that its handler has seen.
fn guarded(listen: &str, limits: Limits, access: Access) -> (Server, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(listen).expect("a port");
    let asked = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&asked);
    let handler: Handler = Arc::new(move |request| {
        counter.fetch_add(1, Ordering::Relaxed);
        echo(request).into()
    });
    let server = Server::start(listener, limits, access, handler).expect("a server");
    (server, asked)
}

fn with_token() -> Access {
    let mut access = Access::default();
    access.set_tokens(TOKEN).expect("a token");
    access
}

fn with_both(made: &Certificate) -> Access {
    let read = |path: &Path| std::fs::read(path).expect("a file");
    let mut access = with_token();
    let set = access.set_tls(&read(&made.certificate), &read(&made.key));
    set.expect("a certificate");
    access
}

fn make(folder: &Path, name: &str) -> Certificate {
    Certificate::make(folder, name, "DNS:*.db.example,IP:127.0.0.1", CURVE)
}

/// The exit status of curl, the body, and the status of the answer.
fn fetch(server: &Server, trusted: &Certificate, host: &str, args: &[&str]) -> (i32, String) {
    let port = server.address().port();
    let url = format!("https://{host}:{port}/echo");
    let resolve = format!("{host}:{port}:127.0.0.1");
    let mut all = vec!["--max-time", "300", "--resolve", &resolve, &url];
    all.extend(args);
    let done = curl(&trusted.certificate, &all);
    let status = done.status.code().expect("an exit status");
    (status, String::from_utf8(done.stdout).expect("text"))
}

/// The protocol inside of TLS that a server takes of two.
fn protocol(port: u16) -> String {
    let done = wait::output_of(
        Command::new("openssl")
            .args(["s_client", "-alpn", "h2,http/1.1", "-connect"])
            .arg(format!("127.0.0.1:{port}"))
            .stdin(Stdio::null()),
    );
    let out = String::from_utf8_lossy(&done.stdout);
    let mut values = out
        .lines()
        .filter_map(|line| line.strip_prefix("ALPN protocol: "));
    values.next().unwrap_or("").to_owned()
}

#[test]
fn requests_without_a_token_reach_no_handler() {
    let limits = Limits {
        refusal: Duration::ZERO,
        ..PATIENT
    };
    let (server, asked) = guarded("127.0.0.1:0", limits, with_token());
    let longer = format!("{TOKEN}0");
    for headers in [
        String::new(),
        bearer(&longer),
        bearer(&TOKEN[1..]),
        bearer(""),
        format!("Authorization: Basic {TOKEN}\r\n"),
        format!("X-Token: {TOKEN}\r\n"),
    ] {
        // Without a token, nobody learns the names of the host.
        for host in ["localhost", "evil.example"] {
            let response = ask(server.address(), &request(host, &headers));
            assert_eq!(status(&response), "401 Unauthorized", "{headers}");
            assert!(
                response.contains("www-authenticate: Bearer\r\n"),
                "{response}"
            );
        }
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let response = ask(server.address(), &request("localhost", &bearer(TOKEN)));
    assert_eq!(status(&response), "200 OK");
    let response = ask(server.address(), &request("evil.example", &bearer(TOKEN)));
    assert_eq!(status(&response), "421 Misdirected Request");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

/// Clients that guess wait for their answer, take no place from others, and are the first to go when there are too many.
#[test]
fn guesses_hold_up_nobody() {
    let (server, _) = guarded("127.0.0.1:0", PATIENT, with_token());
    let guess = |number: usize| {
        let mut stream = connect(server.address());
        let request = request("localhost", &bearer(&format!("{number:032}")));
        stream.write_all(request.as_bytes()).expect("a reader");
        stream
    };
    let mut guesses: Vec<TcpStream> = (0..300).map(guess).collect();
    let response = ask(server.address(), &request("localhost", &bearer(TOKEN)));
    assert_eq!(status(&response), "200 OK");
    let last = guesses.pop().expect("300 of them");
    last.set_nonblocking(true).expect("a socket");
    let waits = (&last).read(&mut [0]).expect_err("no answer yet");
    assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(read_all(guesses.swap_remove(0)), "");
}

#[test]
fn other_hosts_are_answered_by_tls() {
    require!(Tool("curl"), Tool("openssl"));
    let folder = plumb_testkit::temp_dir("http-tls");
    let limits = Limits {
        refusal: Duration::ZERO,
        ..PATIENT
    };
    let header = format!("Authorization: Bearer {TOKEN}");
    let other = make(folder.path(), "other");
    for (name, new_key) in [("curve", CURVE), ("rsa", &["rsa:2048"][..])] {
        let names = "DNS:*.db.example,IP:127.0.0.1";
        let made = Certificate::make(folder.path(), name, names, new_key);
        let (server, asked) = guarded("0.0.0.0:0", limits, with_both(&made));
        let ask = |host: &str, args: &[&str]| fetch(&server, &made, host, args);
        let good = "Request { path: \"/echo\", query: None, accept: \"*/*\" }";
        // A client that prefers HTTP/2 takes the version that the server has.
        let version = ["--write-out", " %{http_version} %{http_code}", "-H"];
        let version = [&version[..], &[header.as_str()]].concat();
        assert_eq!(
            ask("one.db.example", &version),
            (0, format!("{good} 1.1 200"))
        );
        assert_eq!(
            ask("127.0.0.1", &["-H", &header]),
            (0, format!("{good}\n200"))
        );
        assert_eq!(asked.load(Ordering::Relaxed), 2);

        let (code, answer) = ask("one.db.example", &[]);
        assert_eq!((code, answer.ends_with("\n401")), (0, true), "{answer}");
        let wrong = format!("{header}0");
        let (code, answer) = ask("127.0.0.1", &["-H", &wrong]);
        assert_eq!((code, answer.ends_with("\n401")), (0, true), "{answer}");
        for host in ["evil.example", "db.example", "127.0.0.2", "[::2]:9974", ""] {
            let host = format!("Host: {host}");
            let (_, answer) = ask("127.0.0.1", &["-H", &header, "-H", &host]);
            assert!(answer.ends_with("\n421"), "{host}: {answer}");
        }
        assert_eq!(protocol(server.address().port()), "http/1.1");
        // Status 35 of curl is a failed handshake, 60 an unknown certificate.
        let (code, _) = ask("127.0.0.1", &["-H", &header, "--tls-max", "1.2"]);
        assert_eq!(code, 35);
        assert_eq!(fetch(&server, &other, "127.0.0.1", &["-H", &header]).0, 60);
        let near = SocketAddr::from(([127, 0, 0, 1], server.address().port()));
        let mut plain = connect(near);
        let text = request("localhost", &bearer(TOKEN));
        plain.write_all(text.as_bytes()).expect("a reader");
        let mut alert = Vec::new();
        match plain.read_to_end(&mut alert) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("no end of the connection: {error}"),
        }
        assert!(!alert.starts_with(b"HTTP"), "{alert:?}");
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }
}

/// Clients that begin no handshake, end none, or send no request after it hold up nobody, and their time is limited.
#[test]
fn slow_handshakes_hold_up_nobody() {
    require!(Tool("curl"), Tool("openssl"));
    let folder = plumb_testkit::temp_dir("http-slow-tls");
    let made = make(folder.path(), "one");
    let header = format!("Authorization: Bearer {TOKEN}");
    let (server, _) = guarded("127.0.0.1:0", PATIENT, with_both(&made));
    // The begin of a record with a ClientHello of 256 bytes.
    let hello = [22, 3, 1, 1, 4, 1, 0, 1, 0];
    let slow = |number: usize| {
        let mut stream = connect(server.address());
        let sent = &hello[..number % (hello.len() + 1)];
        stream.write_all(sent).expect("a reader");
        stream
    };
    let mut silent: Vec<TcpStream> = (0..500).map(slow).collect();
    let (code, answer) = fetch(&server, &made, "127.0.0.1", &["-H", &header]);
    assert_eq!((code, answer.ends_with("\n200")), (0, true), "{answer}");
    assert_eq!(read_all(silent.swap_remove(0)), "");

    let short = Limits {
        header: Duration::from_secs(1),
        ..PATIENT
    };
    let (server, _) = guarded("127.0.0.1:0", short, with_both(&made));
    for len in [0, 5, hello.len()] {
        let mut stream = connect(server.address());
        stream.write_all(&hello[..len]).expect("a reader");
        assert_eq!(read_all(stream), "", "{len} bytes");
    }
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-connect"])
        .arg(server.address().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl starts");
    wait::exit("openssl", wait::PATIENCE, &mut client);
}

#[test]
fn a_renewed_certificate_counts_for_later_connections() {
    require!(Tool("curl"), Tool("openssl"));
    let folder = plumb_testkit::temp_dir("http-renewed");
    let (first, second) = (make(folder.path(), "first"), make(folder.path(), "second"));
    let header = format!("Authorization: Bearer {TOKEN}");
    let (server, _) = guarded("0.0.0.0:0", PATIENT, with_both(&first));
    let codes =
        || [&first, &second].map(|made| fetch(&server, made, "127.0.0.1", &["-H", &header]).0);
    assert_eq!(codes(), [0, 60]);
    server.set_access(with_both(&second)).expect("both secrets");
    assert_eq!(codes(), [60, 0]);
    for open in [Access::default(), with_token()] {
        let refused = server.set_access(open).expect_err("an open server");
        let words = refused.to_string();
        assert!(words.starts_with("found address 0.0.0.0:"), "{words}");
    }
    assert_eq!(codes(), [60, 0]);
    assert!(server.url().starts_with("https://0.0.0.0:"));
}

#[test]
fn files_of_tls_are_checked() {
    require!(Tool("openssl"));
    let folder = plumb_testkit::temp_dir("http-pem");
    let (one, other) = (make(folder.path(), "one"), make(folder.path(), "other"));
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
    let [certificate, key, other_key] =
        [&one.certificate, &one.key, &other.key].map(|path| read(path));
    // The first bytes of the certificate are others.
    let damaged = certificate.replace("MII", "AAA");
    let (certificate, key) = (certificate.as_str(), key.as_str());
    let cut = &certificate[..certificate.len() / 2];
    let of_certificate = AccessFile::Certificate;
    for (certificate, key, file, found) in [
        ("", key, of_certificate, "no certificate"),
        (key, key, of_certificate, "no certificate"),
        (cut, key, of_certificate, "no end of a section"),
        (
            &*damaged,
            key,
            of_certificate,
            "a certificate that cannot be read (invalid peer certificate",
        ),
        (certificate, "", AccessFile::Key, "no private key"),
        (certificate, certificate, AccessFile::Key, "no private key"),
        (
            certificate,
            &*other_key,
            AccessFile::Key,
            "the key of another certificate",
        ),
    ] {
        let mut access = Access::default();
        let set = access.set_tls(certificate.as_bytes(), key.as_bytes());
        let fault = set.expect_err(found);
        assert_eq!(fault.file, file, "{fault:?}");
        assert!(fault.found.starts_with(found), "{fault:?}");
        assert!(!access.is_for_other_hosts());
    }
}
