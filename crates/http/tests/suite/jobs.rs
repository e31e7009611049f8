//! Answers that another thread makes, and answers that a client has already.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use plumb_http::{Budget, LateAnswer};

use super::*;

/// A document of JSON.
const DOCUMENT: &str = "{\"a\":1}\n";

fn start_with(limits: Limits, handler: Handler) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    Server::start(listener, limits, Access::default(), handler).expect("a server")
}

fn job(work: impl FnOnce(&Budget) -> Answer + Send + 'static) -> Reply {
    let job: LateAnswer = Box::new(work);
    Reply::Later(job)
}

fn get(path: &str, header: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n")
}

/// The value of a header.
fn header<'r>(response: &'r str, name: &str) -> Option<&'r str> {
    let lines = response.split_once("\r\n\r\n").expect("a header").0.lines();
    let mut fields = lines.filter_map(|line| line.split_once(": "));
    fields
        .find(|(field, _)| *field == name)
        .map(|(_, value)| value)
}

/// A server whose jobs at `/slow` wait for a word, and tell their begin.
struct Gated {
    server: Server,
    begun: Receiver<()>,
    release: Sender<()>,
    /// Jobs at `/slow` that have begun.
    count: Arc<AtomicUsize>,
    /// Requests for `/slow` that the server has read.
    asked: Arc<AtomicUsize>,
}

fn gated(limits: Limits) -> Gated {
    let (release, gate) = channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let (begin, begun) = channel();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let asked = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&asked);
    let handler: Handler = Arc::new(move |request| match request.path {
        "/slow" => {
            noted.fetch_add(1, Ordering::Relaxed);
            let (gate, begin, count) = (Arc::clone(&gate), begin.clone(), Arc::clone(&counted));
            job(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                begin.send(()).expect("the test listens");
                // An error is the end of the test.
                let _ = gate.lock().expect("no panic").recv();
                Answer::json(DOCUMENT)
            })
        }
        "/panic" => job(|_| panic!("the test asks for it")),
        "/job" => job(|budget| Answer::text(200, format!("{}", budget.is_over()))),
        _ => Reply::Now(echo(request)),
    });
    Gated {
        server: start_with(limits, handler),
        begun,
        release,
        count,
        asked,
    }
}

impl Gated {
    /// Sends a request for `/slow` and waits until its job has begun.
    fn begin_slow(&self) -> TcpStream {
        let stream = self.send("/slow");
        self.begun.recv_timeout(wait::PATIENCE).expect("a begin");
        stream
    }

    fn send(&self, path: &str) -> TcpStream {
        let mut stream = connect(self.server.address());
        stream
            .write_all(get(path, "").as_bytes())
            .expect("a reader");
        stream
    }
}

/// While jobs wait, the server answers other requests, and the answer comes when it is made.
#[test]
fn a_job_delays_no_other_answer() {
    let gated = gated(PATIENT);
    let slow = [gated.begin_slow(), gated.begin_slow()];
    assert_eq!(status(&ask(gated.server.address(), ECHO)), "200 OK");
    // The job that began second may have come to the gate first.
    for _ in &slow {
        gated.release.send(()).expect("a job");
    }
    for stream in slow {
        assert_eq!(body(&read_all(stream)), DOCUMENT);
    }
    let response = ask(gated.server.address(), &get("/job", ""));
    assert_eq!(body(&response), "false", "time is left");
}

/// A job that is late does not keep its client, and one that nobody waits for is not begun.
#[test]
fn late_answers_are_refused() {
    let hasty = Limits {
        budget: Duration::from_secs(6),
        ..PATIENT
    };
    let gated = gated(hasty);
    let late = [gated.begin_slow(), gated.begin_slow(), gated.send("/slow")];
    for stream in late {
        let response = read_all(stream);
        assert_eq!(status(&response), "503 Service Unavailable");
        assert_eq!(header(&response, "retry-after"), Some("6"));
        let document: serde_json::Value = serde_json::from_str(body(&response)).expect("JSON");
        assert_eq!(document["schema"], "plumb.error/1");
        assert_eq!(document["error"]["place"], "/slow");
        assert_eq!(document["error"]["found"], "no answer within 6000 ms");
    }
    for _ in 0..2 {
        gated.release.send(()).expect("a job");
    }
    let response = ask(gated.server.address(), &get("/job", ""));
    assert_eq!(body(&response), "false");
    assert_eq!(gated.count.load(Ordering::Relaxed), 2);
}

/// Two jobs run and 16 wait; a further one is refused at once.
#[test]
fn a_full_queue_refuses() {
    let gated = gated(PATIENT);
    let mut streams = vec![gated.begin_slow(), gated.begin_slow()];
    for _ in 0..16 {
        streams.push(gated.send("/slow"));
    }
    wait::until("18 requests", wait::PATIENCE, || {
        gated.asked.load(Ordering::Relaxed) == 18
    });
    let response = read_all(gated.send("/slow"));
    assert_eq!(status(&response), "503 Service Unavailable");
    assert_eq!(header(&response, "retry-after"), Some("600"));
    insta::assert_snapshot!(body(&response));
    for _ in &streams {
        gated.release.send(()).expect("a job");
    }
    for stream in streams {
        assert_eq!(status(&read_all(stream)), "200 OK");
    }
}

#[test]
fn a_panic_takes_no_thread() {
    let gated = gated(PATIENT);
    let answers = [(); 5].map(|()| {
        let response = ask(gated.server.address(), &get("/panic", ""));
        format!("{}\n{}", status(&response), body(&response))
    });
    insta::assert_snapshot!(answers.join("\n\n"));
    let response = ask(gated.server.address(), &get("/job", ""));
    assert_eq!(status(&response), "200 OK");
}

/// Clients that do not read hold at most 64 MiB of answers, and give them back.
#[test]
fn unread_answers_are_bounded() {
    let large = Bytes::from("x".repeat(24 << 20));
    let handler: Handler = Arc::new(move |_| {
        let large = large.clone();
        job(move |_| Answer::json(large))
    });
    let server = start_with(PATIENT, handler);
    let open = || {
        let mut stream = connect(server.address());
        stream.write_all(GET).expect("a reader");
        let mut first = [0; 12];
        stream.read_exact(&mut first).expect("a status");
        (stream, String::from_utf8_lossy(&first).into_owned())
    };
    let (one, first) = open();
    let (two, second) = open();
    let (_, third) = open();
    assert_eq!([first, second], ["HTTP/1.1 200", "HTTP/1.1 200"]);
    assert_eq!(third, "HTTP/1.1 503");
    assert!(read_all(one).len() > 24 << 20);
    drop(two);
    wait::until("room for an answer", wait::PATIENCE, || {
        open().1 == "HTTP/1.1 200"
    });
}

#[test]
fn a_client_that_has_the_body_gets_none() {
    let handler: Handler = Arc::new(|request| match request.path {
        "/other" => Reply::Now(Answer::json("{}")),
        "/text" => Reply::Now(Answer::text(200, "text")),
        _ => job(|_| Answer::json(DOCUMENT)),
    });
    let server = start_with(PATIENT, handler);
    let ask = |path: &str, header: &str| ask(server.address(), &get(path, header));
    let whole = ask("/", "");
    let tag = header(&whole, "etag").expect("a tag").to_owned();
    assert_eq!(body(&whole), DOCUMENT);
    assert_eq!(header(&whole, "content-type"), Some("application/json"));
    assert_eq!(header(&whole, "cache-control"), Some("private, no-cache"));
    assert_ne!(header(&ask("/other", ""), "etag"), Some(tag.as_str()));
    assert_eq!(header(&ask("/text", ""), "etag"), None);
    for (header_line, is_known) in [
        (format!("If-None-Match: {tag}\r\n"), true),
        (format!("If-None-Match: \"a\", W/{tag}\r\n"), true),
        (
            format!("If-None-Match: \"a\"\r\nIf-None-Match: {tag}\r\n"),
            true,
        ),
        ("If-None-Match: *\r\n".to_owned(), true),
        (
            format!("If-None-Match: {}\r\n", tag.trim_matches('"')),
            false,
        ),
        ("If-None-Match: \"a\"\r\n".to_owned(), false),
    ] {
        let response = ask("/", &header_line);
        let expected = match is_known {
            true => ("304 Not Modified", ""),
            false => ("200 OK", DOCUMENT),
        };
        assert_eq!(
            (status(&response), body(&response)),
            expected,
            "{header_line}"
        );
        assert_eq!(header(&response, "etag"), Some(tag.as_str()));
    }
    let head = "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let response = super::ask(server.address(), head);
    assert_eq!((status(&response), body(&response)), ("200 OK", ""));
    assert_eq!(header(&response, "etag"), Some(tag.as_str()));
    assert_eq!(header(&response, "content-length"), Some("8"));
}
