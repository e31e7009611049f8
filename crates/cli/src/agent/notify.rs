//! Notifications: each change of a finding goes to the command and the webhook of the configuration.
//!
//! Each receiver has a thread and a queue of its own, so that one that hangs delays neither the counts nor the other. A delivery that
//! fails is tried again with growing waits, in order; the log names the first failure, and the end of the failures.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plumb_geometry::plural;
use plumb_model::result::history::FindingMessage;
use plumb_quoting::visible;
use plumb_report::history::finding_message;
use rustix::fs::{MemfdFlags, memfd_create};

use super::command::CommandRun;
use super::judge::Change;
use crate::output;

/// Notifications that wait for a receiver; beyond it the oldest is dropped.
const WAITING_MAX: usize = 1000;
/// Wait after the first failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Age at which a notification that could not be delivered is dropped: it is no news any more.
const AGE_MAX: Duration = Duration::from_secs(86_400);
/// Time for a command, and for the request and the answer of a webhook.
const DELIVERY_MAX: Duration = Duration::from_secs(30);
/// Length of the first line of an answer.
const STATUS_LINE_MAX: usize = 1024;
/// Time for the last notifications at the end of the agent.
const END_MAX: Duration = Duration::from_secs(5);

/// The receivers of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receivers {
    /// A program with its arguments; none when empty.
    pub command: Vec<String>,
    /// The address of a service.
    pub webhook: Option<Webhook>,
    /// The address of instructions, with `{rule}` in place of the name of the rule.
    pub runbook_url: Option<String>,
}

/// An address that notifications are posted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// The whole address.
    pub url: String,
    host: String,
    port: u16,
    path: String,
}

impl Webhook {
    /// Reads `http://HOST[:PORT][/PATH]`; `None` for anything else.
    pub fn from_url(url: &str) -> Option<Webhook> {
        let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
        let rest = url.strip_prefix("http://").filter(|_| is_plain)?;
        let (authority, path) = match rest.find(['/', '?', '#']) {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        if !path.starts_with('/') || path.contains('#') || authority.contains('@') {
            return None;
        }
        // Brackets enclose an IPv6 address, since it has colons itself.
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, port) = bracketed.split_once(']')?;
                host.parse::<std::net::Ipv6Addr>().ok()?;
                (host, port)
            }
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().ok().filter(|port| *port > 0)?,
            None if port.is_empty() => 80,
            None => return None,
        };
        let is_host = !host.is_empty() && !host.contains(['[', ']']);
        is_host.then(|| Webhook {
            url: url.to_owned(),
            host: host.to_owned(),
            port,
            path: path.to_owned(),
        })
    }

    /// Posts a text.
    fn post(&self, text: &str, limit: Duration) -> Result<(), Undelivered> {
        let end = Instant::now() + limit;
        let left =
            || Some(end.saturating_duration_since(Instant::now())).filter(|time| !time.is_zero());
        let timed_out = || io::Error::from(io::ErrorKind::TimedOut);
        let exchange = || -> io::Result<Vec<u8>> {
            let mut stream = Err(io::Error::from(io::ErrorKind::AddrNotAvailable));
            for address in (self.host.as_str(), self.port).to_socket_addrs()? {
                stream = TcpStream::connect_timeout(&address, left().ok_or_else(timed_out)?);
                if stream.is_ok() {
                    break;
                }
            }
            let mut stream = stream?;
            let host = match self.host.contains(':') {
                true => format!("[{}]", self.host),
                false => self.host.clone(),
            };
            stream.set_write_timeout(Some(left().ok_or_else(timed_out)?))?;
            let request = format!(
                "POST {} HTTP/1.1\r\nHost: {host}:{}\r\nUser-Agent: plumb/{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                self.path,
                self.port,
                env!("CARGO_PKG_VERSION"),
                text.len()
            );
            stream.write_all(request.as_bytes())?;
            let mut line = Vec::new();
            let mut byte = [0];
            while line.len() < STATUS_LINE_MAX && !line.ends_with(b"\n") {
                stream.set_read_timeout(Some(left().ok_or_else(timed_out)?))?;
                if stream.read(&mut byte)? == 0 {
                    break;
                }
                line.push(byte[0]);
            }
            Ok(line)
        };
        let line = exchange().map_err(|error| Undelivered::again(error.to_string()))?;
        let line = String::from_utf8_lossy(&line);
        let status = line
            .strip_prefix("HTTP/1.")
            .and_then(|rest| rest.get(2..5)?.parse::<u16>().ok());
        match status {
            Some(200..=299) => Ok(()),
            Some(status) => Err(Undelivered {
                why: format!("found status {status}, expected 200 to 299"),
                // With another status the service may take it later.
                is_final: (300..=499).contains(&status) && !matches!(status, 408 | 429),
            }),
            None => Err(Undelivered::again(format!(
                "found the answer {:?}, expected HTTP",
                visible(line.trim_end())
            ))),
        }
    }
}

/// The reason for which a notification was not delivered.
struct Undelivered {
    why: String,
    /// Another try has the same result.
    is_final: bool,
}

impl Undelivered {
    fn again(why: String) -> Undelivered {
        Undelivered {
            why,
            is_final: false,
        }
    }
}

/// A change of a finding for receivers.
struct Notification {
    /// The document.
    text: String,
    /// Variables for a command.
    variables: [(&'static str, String); 6],
    made: Instant,
}

/// A receiver.
#[derive(Clone, PartialEq, Eq)]
enum Receiver {
    Command(Vec<String>),
    Webhook(Webhook),
}

impl Receiver {
    /// The receiver for messages of the log.
    fn name(&self) -> String {
        match self {
            Receiver::Command(words) => format!(
                "command {}",
                visible(words.first().map_or("", String::as_str))
            ),
            Receiver::Webhook(webhook) => format!("webhook {}", webhook.url),
        }
    }

    fn deliver(&self, notification: &Notification, limit: Duration) -> Result<(), Undelivered> {
        match self {
            Receiver::Command(words) => run(words, notification, limit),
            Receiver::Webhook(webhook) => webhook.post(&notification.text, limit),
        }
    }
}

/// Runs a command with a notification on its standard input.
fn run(words: &[String], notification: &Notification, limit: Duration) -> Result<(), Undelivered> {
    let input = || -> io::Result<File> {
        // A pipe would block this thread if the command does not read.
        let mut input = File::from(memfd_create("notification", MemfdFlags::CLOEXEC)?);
        input.write_all(notification.text.as_bytes())?;
        input.rewind()?;
        Ok(input)
    };
    let input = input().map_err(|error| Undelivered::again(error.to_string()))?;
    let run = CommandRun {
        input: Some(input),
        variables: &notification.variables,
        limit,
        ..CommandRun::default()
    };
    run.run(words).map_err(Undelivered::again)
}

/// The notifications that wait for a receiver.
#[derive(Default)]
struct Outbox {
    state: Mutex<OutboxState>,
    changed: Condvar,
}

#[derive(Default)]
struct OutboxState {
    notifications: VecDeque<Arc<Notification>>,
    /// Notifications that were dropped since the last report of it.
    dropped: usize,
    is_over: bool,
    has_ended: bool,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, notification: Arc<Notification>) {
        let mut waiting = self.lock();
        if waiting.notifications.len() >= WAITING_MAX {
            // The first may be on its way.
            waiting.notifications.remove(1);
            waiting.dropped += 1;
        }
        waiting.notifications.push_back(notification);
        self.changed.notify_all();
    }

    /// The oldest notification, once there is one; `None` at the end.
    fn oldest(&self) -> Option<Arc<Notification>> {
        let mut waiting = self.lock();
        loop {
            if let Some(oldest) = waiting.notifications.front() {
                return Some(Arc::clone(oldest));
            }
            if waiting.is_over {
                return None;
            }
            waiting = self
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Removes a notification; a full queue may have dropped it meanwhile.
    fn remove(&self, notification: &Arc<Notification>, is_dropped: bool) {
        let mut waiting = self.lock();
        let front = waiting.notifications.front();
        if front.is_some_and(|front| Arc::ptr_eq(front, notification)) {
            waiting.notifications.pop_front();
            waiting.dropped += usize::from(is_dropped);
        }
    }

    /// Waits before the next try; `false` if the agent ends.
    fn pause(&self, wait: Duration) -> bool {
        let waiting = self.lock();
        let goes_on = |waiting: &mut OutboxState| !waiting.is_over;
        let waited = self.changed.wait_timeout_while(waiting, wait, goes_on);
        let (waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !waiting.is_over
    }
}

/// Delivers until the end. `say` gets the lines for the log.
fn deliver_all(queue: &Outbox, receiver: &Receiver, first_wait: Duration, say: impl Fn(&str)) {
    let name = receiver.name();
    let mut wait = None;
    while let Some(notification) = queue.oldest() {
        let limit = if queue.lock().is_over {
            END_MAX
        } else {
            DELIVERY_MAX
        };
        let refusal = receiver.deliver(&notification, limit).err();
        let is_too_old = notification.made.elapsed() >= AGE_MAX;
        match refusal {
            None => {
                queue.remove(&notification, false);
                if wait.take().is_some() {
                    say(&format!("the {name} takes notifications again"));
                }
                let dropped = std::mem::take(&mut queue.lock().dropped);
                if dropped > 0 {
                    let words = plural(dropped as u64, "notification");
                    say(&format!(
                        "the {name} did not get {words}: too many or too old"
                    ));
                }
            }
            Some(Undelivered { why, is_final }) if is_final || is_too_old => {
                queue.remove(&notification, !is_final);
                if is_final {
                    say(&format!("the {name} refused a notification: {why}"));
                }
            }
            Some(Undelivered { why, .. }) => {
                if wait.is_none() {
                    say(&format!(
                        "the {name} took no notification: {why}; the next tries follow after 1 s to 5 min"
                    ));
                }
                let this_wait = wait.unwrap_or(first_wait);
                wait = Some((this_wait * 2).min(WAIT_MAX));
                if !queue.pause(this_wait) {
                    break;
                }
            }
        }
    }
    let mut waiting = queue.lock();
    let left = waiting.notifications.len() + waiting.dropped;
    if left > 0 {
        say_lost(&name, left, say);
    }
    waiting.has_ended = true;
    drop(waiting);
    queue.changed.notify_all();
}

fn say_lost(name: &str, lost: usize, say: impl Fn(&str)) {
    let words = plural(lost as u64, "notification");
    say(&format!("the {name} did not get {words}"));
}

/// A receiver at work.
struct Delivery {
    receiver: Receiver,
    outbox: Arc<Outbox>,
}

impl Delivery {
    /// Starts a thread that delivers; `None` if the kernel refuses it.
    fn start(receiver: Receiver) -> Option<Delivery> {
        let outbox = Arc::<Outbox>::default();
        let (of_thread, to) = (Arc::clone(&outbox), receiver.clone());
        let work = move || deliver_all(&of_thread, &to, FIRST_WAIT, output::say);
        let started = thread::Builder::new().name("notify".to_owned()).spawn(work);
        if let Err(error) = started {
            output::say(&format!(
                "the {} gets no notification: {error}",
                receiver.name()
            ));
            return None;
        }
        Some(Delivery { receiver, outbox })
    }

    /// Tells the thread to deliver what waits, and to end.
    fn begin_end(&self) {
        self.outbox.lock().is_over = true;
        self.outbox.changed.notify_all();
    }

    /// Waits for the end of the thread, and names the number of notifications that are lost if it does not come.
    fn await_end(&self, end: Instant) {
        let left = end.saturating_duration_since(Instant::now());
        let runs = |waiting: &mut OutboxState| !waiting.has_ended;
        let outbox = &self.outbox;
        let waited = outbox.changed.wait_timeout_while(outbox.lock(), left, runs);
        let (waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let lost = waiting.notifications.len() + waiting.dropped;
        if !waiting.has_ended && lost > 0 {
            say_lost(&self.receiver.name(), lost, output::say);
        }
    }
}

/// Ends deliveries, for at most [`END_MAX`].
fn end_all(deliveries: &[Delivery]) {
    deliveries.iter().for_each(Delivery::begin_end);
    let end = Instant::now() + END_MAX;
    deliveries.iter().for_each(|one| one.await_end(end));
}

/// The receivers at work.
pub struct Notifier {
    receivers: Receivers,
    host: Option<&'static str>,
    deliveries: Vec<Delivery>,
}

impl Notifier {
    /// Starts a thread for each receiver.
    pub fn start(receivers: &Receivers, host: Option<&'static str>) -> Notifier {
        let mut notifier = Notifier {
            receivers: Receivers::default(),
            host,
            deliveries: Vec::new(),
        };
        notifier.change(receivers);
        notifier
    }

    /// Takes the receivers of a new configuration. One that stays keeps its notifications.
    pub fn change(&mut self, receivers: &Receivers) {
        self.receivers = receivers.clone();
        let command = Some(&receivers.command).filter(|words| !words.is_empty());
        let command = command.map(|words| Receiver::Command(words.clone()));
        let webhook = receivers.webhook.clone().map(Receiver::Webhook);
        let wanted: Vec<Receiver> = command.into_iter().chain(webhook).collect();
        let (mut stay, gone) = std::mem::take(&mut self.deliveries)
            .into_iter()
            .partition::<Vec<_>, _>(|one| wanted.contains(&one.receiver));
        let is_new = |receiver: &Receiver| !stay.iter().any(|one| one.receiver == *receiver);
        let new: Vec<Receiver> = wanted.into_iter().filter(is_new).collect();
        stay.extend(new.into_iter().filter_map(Delivery::start));
        self.deliveries = stay;
        if !gone.is_empty() {
            // The last deliveries may take seconds, in which the counts have to be read.
            thread::spawn(move || end_all(&gone));
        }
    }

    /// Sends a change of a finding to all receivers, with the file of a recording of its device.
    pub fn note(&self, change: &Change, time: &str, recording: Option<&Path>) {
        if self.deliveries.is_empty() {
            return;
        }
        let finding = &change.finding;
        let rule = finding.rule().name();
        let runbook = self.receivers.runbook_url.as_ref();
        let runbook_url = runbook.map(|url| url.replace("{rule}", rule));
        let recording = recording.map(|path| path.display().to_string());
        let text = finding_message(&FindingMessage {
            version: env!("CARGO_PKG_VERSION"),
            host: self.host,
            time,
            change: change.kind,
            identity: change.identity(),
            runbook_url: runbook_url.as_deref(),
            recording: recording.as_deref(),
            finding,
        });
        let notification = Arc::new(Notification {
            text,
            variables: [
                ("PLUMB_CHANGE", change.kind.word().to_owned()),
                ("PLUMB_RULE", rule.to_owned()),
                ("PLUMB_SEVERITY", finding.severity.word().to_owned()),
                // A kernel has no such name, but a NUL would keep the command from its start.
                ("PLUMB_DEVICE", finding.target.device.replace('\0', "")),
                ("PLUMB_RUNBOOK_URL", runbook_url.unwrap_or_default()),
                ("PLUMB_RECORDING", recording.unwrap_or_default()),
            ],
            made: Instant::now(),
        });
        for delivery in &self.deliveries {
            delivery.outbox.push(Arc::clone(&notification));
        }
    }

    /// Delivers the notifications that wait, for a short time.
    pub fn end(self) {
        end_all(&self.deliveries);
    }
}

/// Whether a text can be a runbook: an address, with or without `{rule}`.
pub fn runbook_url(text: &str) -> Option<String> {
    let is_address = text.starts_with("https://") || text.starts_with("http://");
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    (is_address && is_plain).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use plumb_testkit::wait;

    use super::*;

    fn notification(text: &str) -> Arc<Notification> {
        Arc::new(Notification {
            text: text.to_owned(),
            variables: ["A", "B", "C", "D", "E", "F"].map(|name| (name, name.to_owned())),
            made: Instant::now(),
        })
    }

    #[test]
    fn addresses_of_webhooks_are_read() {
        let parts = |url: &str| {
            Webhook::from_url(url).map(|webhook| (webhook.host, webhook.port, webhook.path))
        };
        let some = |host: &str, port, path: &str| Some((host.to_owned(), port, path.to_owned()));
        assert_eq!(parts("http://a"), some("a", 80, "/"));
        assert_eq!(parts("http://a:9/b/c?d=e"), some("a", 9, "/b/c?d=e"));
        assert_eq!(parts("http://[::1]:9/"), some("::1", 9, "/"));
        assert_eq!(parts("http://[::1]"), some("::1", 80, "/"));
        for wrong in [
            "",
            "a",
            "https://a",
            "http://",
            "http:///b",
            "http://:9/",
            "http://a:",
            "http://a:0/",
            "http://a:99999/",
            "http://user@a/",
            "http://a/b c",
            "http://a/\r\nX: y",
            "http://a?b",
            "http://a/#b",
            "http://[::1",
            "http://[a]/",
            "http://a]/",
            "http://[::1]9/",
        ] {
            assert_eq!(parts(wrong), None, "{wrong:?}");
        }
    }

    /// A service that answers each request with the next of these first lines, and its bodies.
    fn service(answers: &'static [&'static str]) -> (Webhook, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let webhook = Webhook::from_url(&format!("http://{address}/hook?a=b")).expect("an address");
        let bodies = thread::spawn(move || {
            let mut bodies = Vec::new();
            for answer in answers {
                let stream = wait::client("the next notification", wait::PATIENCE, &listener);
                let mut reader = BufReader::new(stream);
                let (mut len, mut first) = (0, None);
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).expect("a line");
                    let line = line.trim_end();
                    if let Some(value) = line.strip_prefix("Content-Length: ") {
                        len = value.parse().expect("a length");
                    }
                    first.get_or_insert_with(|| line.to_owned());
                    if line.is_empty() {
                        break;
                    }
                }
                assert_eq!(first.as_deref(), Some("POST /hook?a=b HTTP/1.1"));
                let mut body = vec![0; len];
                reader.read_exact(&mut body).expect("a body");
                bodies.push(String::from_utf8(body).expect("text"));
                let answer = format!("{answer}\r\n\r\n");
                reader
                    .get_mut()
                    .write_all(answer.as_bytes())
                    .expect("an answer");
            }
            bodies
        });
        (webhook, bodies)
    }

    /// A service that fails for a while gets each notification in order; one that it refuses is not sent again.
    #[test]
    fn deliveries_are_tried_again_in_order() {
        let (webhook, bodies) = service(&[
            "HTTP/1.1 503 Service Unavailable",
            "nonsense",
            "HTTP/1.1 200 OK",
            "HTTP/1.1 404 Not Found",
            "HTTP/1.0 204 No Content",
        ]);
        let queue = Outbox::default();
        for text in ["a", "b", "c"] {
            queue.push(notification(text));
        }
        let said = Mutex::new(Vec::new());
        thread::scope(|scope| {
            let say = |line: &str| said.lock().expect("a list").push(line.to_owned());
            let receiver = Receiver::Webhook(webhook.clone());
            let queue = &queue;
            scope.spawn(move || deliver_all(queue, &receiver, Duration::from_millis(1), say));
            let bodies = bodies.join();
            // Also after a failure of the service: the scope waits for the delivery.
            queue.lock().is_over = true;
            queue.changed.notify_all();
            assert_eq!(bodies.expect("a service"), ["a", "a", "a", "b", "c"]);
        });
        let name = format!("webhook {}", webhook.url);
        assert_eq!(
            said.into_inner().expect("a list"),
            [
                format!(
                    "the {name} took no notification: found status 503, expected 200 to 299; the next tries follow after 1 s to 5 min"
                ),
                format!("the {name} takes notifications again"),
                format!("the {name} refused a notification: found status 404, expected 200 to 299"),
            ]
        );
    }

    /// The end of the agent comes before the next try, and the log has the number of notifications that are lost.
    #[test]
    fn lost_notifications_are_counted() {
        let queue = Outbox::default();
        for number in 0..=WAITING_MAX {
            queue.push(notification(&number.to_string()));
        }
        let texts = queue
            .lock()
            .notifications
            .iter()
            .map(|one| one.text.clone())
            .collect::<Vec<_>>();
        assert_eq!(
            (texts[0].as_str(), texts[1].as_str(), texts.len()),
            ("0", "2", WAITING_MAX)
        );
        queue.lock().is_over = true;
        let said = Mutex::new(Vec::new());
        let say = |line: &str| said.lock().expect("a list").push(line.to_owned());
        let receiver = Receiver::Command(vec!["/nonexistent".to_owned()]);
        deliver_all(&queue, &receiver, Duration::from_secs(3600), say);
        assert!(queue.lock().has_ended);
        let said = said.into_inner().expect("a list");
        insta::assert_snapshot!(said.join("\n\n"));
    }

    /// A command has the text and the variables; one that hangs is ended with its children.
    #[test]
    fn commands_get_the_text() {
        let folder = plumb_testkit::temp_dir("notify");
        let file = folder.path().join("got");
        let script = format!("cat >{0}; echo $A $E >>{0}", file.display());
        let shell = |script: &str| vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()];
        let long = "x".repeat(1 << 20);
        let notification = notification(&long);
        assert!(run(&shell(&script), &notification, DELIVERY_MAX).is_ok());
        let got = std::fs::read_to_string(&file).expect("a file");
        assert_eq!(got, format!("{long}A E\n"));
        // It does not read, and fails.
        let failed = run(&shell("exit 3"), &notification, DELIVERY_MAX).err();
        let failed = failed.expect("a failure").why;
        let hanging = format!("sleep 1000 & echo $! >{}; wait", file.display());
        let ended = run(&shell(&hanging), &notification, Duration::from_millis(500)).err();
        let ended = ended.expect("a failure").why;
        insta::assert_snapshot!([failed, ended].join("\n\n"));
        let child = std::fs::read_to_string(&file).expect("a file");
        let process = format!("/proc/{}/stat", child.trim());
        wait::until("the end of sleep", Duration::from_secs(30), || {
            // A process whose parent has not looked at it yet is a zombie.
            std::fs::read_to_string(&process).map_or(true, |stat| stat.contains(") Z "))
        });
    }
}
