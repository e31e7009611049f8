//! The thread that accepts connections and serves them.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::ACCEPT;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::access::Access;
use crate::answer::{Request, not_admitted, refusal};
use crate::workers::{Reply, Workers};

/// Makes the answer to a request. It runs on the thread of the server, so it leaves an answer that takes long to a job.
pub type Handler = Arc<dyn Fn(&Request<'_>) -> Reply + Send + Sync>;

/// Bounds on clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for a client to send the header of its request, the handshake of TLS included.
    pub header: Duration,
    /// Time for a whole connection.
    pub connection: Duration,
    /// Connections that are open at a time. A further one takes the place of the oldest that has not sent its header with a token yet;
    /// if all have sent it, that of the oldest, whose client does not read.
    pub connections_max: usize,
    /// Length of a header.
    pub header_bytes_max: usize,
    /// Lines of a header.
    pub headers_max: usize,
    /// Time for an answer that a job makes.
    pub budget: Duration,
    /// Time before a request without a token gets its answer, so that guesses are slow. Others do not wait.
    pub refusal: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            header: Duration::from_secs(5),
            connection: Duration::from_secs(30),
            connections_max: 128,
            header_bytes_max: 16 << 10,
            headers_max: 64,
            budget: Duration::from_secs(2),
            refusal: Duration::from_secs(1),
        }
    }
}

/// Connections that the kernel keeps until the thread accepts them; the kernel's own limit is 4,096 by default (somaxconn). It drops the
/// first packet of a further one, and the client repeats it after a second.
const WAITING_CONNECTIONS_MAX: i32 = 4096;

/// Time without a new connection after one could not be accepted: the process has no file descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A server at work. It ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to serve a listening socket.
    ///
    /// # Errors
    /// If the socket is not on a loopback address and `access` is not for other hosts, or the kernel refuses a thread or its means to
    /// wait.
    pub fn start(
        listener: TcpListener,
        limits: Limits,
        access: Access,
        handler: Handler,
    ) -> io::Result<Server> {
        let address = listener.local_addr()?;
        check(address, &access)?;
        listener.set_nonblocking(true)?;
        // A socket that listens already takes the new number. The library's own sockets have 128.
        SockRef::from(&listener).listen(WAITING_CONNECTIONS_MAX)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let shared = Arc::new(Shared {
            own_name: own_name(address),
            limits,
            access: Mutex::new(Arc::new(access)),
            handler,
            workers: Workers::start(limits.budget)?,
        });
        let listener = {
            let _guard = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let thread = std::thread::Builder::new().name("http".to_owned());
        let of_thread = Arc::clone(&shared);
        let thread = thread.spawn(move || {
            runtime.spawn(async move { accept(&listener, &of_thread).await });
            // Connections end with the runtime.
            runtime.block_on(stopped.notified());
        })?;
        Ok(Server {
            address,
            shared,
            stop,
            thread: Some(thread),
        })
    }

    /// The address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the server with its scheme, such as `https://127.0.0.1:9974`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", self.shared.access().scheme(), self.address)
    }

    /// Takes other conditions for all later connections.
    ///
    /// # Errors
    /// If other hosts can reach the server and `access` is not for them; the conditions stay as they were.
    pub fn set_access(&self, access: Access) -> io::Result<()> {
        check(self.address, &access)?;
        *self.shared.lock() = Arc::new(access);
        Ok(())
    }
}

/// Checks that a server at an address is protected from other hosts that can reach it.
fn check(address: SocketAddr, access: &Access) -> io::Result<()> {
    if address.ip().is_loopback() || access.is_for_other_hosts() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "found address {address}, expected a loopback address (any other address needs TLS and a token)"
        ),
    ))
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing to end.
            let _ = thread.join();
        }
    }
}

struct Shared {
    own_name: String,
    limits: Limits,
    access: Mutex<Arc<Access>>,
    handler: Handler,
    workers: Workers,
}

impl Shared {
    /// No half-written conditions exist: they are replaced as a whole.
    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<Access>> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present conditions.
    fn access(&self) -> Arc<Access> {
        Arc::clone(&self.lock())
    }
}

/// An address as a `Host` header names it.
fn own_name(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

/// A connection that may still be open.
struct Connection {
    /// Whether its request may have an answer: it has a whole header, and a token if one is needed.
    is_admitted: Arc<AtomicBool>,
    task: AbortHandle,
}

async fn accept(listener: &tokio::net::TcpListener, shared: &Arc<Shared>) {
    let mut open: Vec<Connection> = Vec::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        make_room(&mut open, shared.limits.connections_max);
        let is_admitted = Arc::new(AtomicBool::new(false));
        let serving = serve(stream, Arc::clone(shared), Arc::clone(&is_admitted));
        // A client that is too slow is closed without an answer.
        let serving = tokio::time::timeout(shared.limits.connection, serving);
        let task = tokio::spawn(serving).abort_handle();
        open.push(Connection { is_admitted, task });
    }
}

/// Makes room for one more connection, if need be by ending one.
fn make_room(open: &mut Vec<Connection>, connections_max: usize) {
    if open.len() < connections_max {
        return;
    }
    open.retain(|connection| !connection.task.is_finished());
    if open.len() >= connections_max {
        let waits = |connection: &Connection| !connection.is_admitted.load(Ordering::Relaxed);
        let oldest = open.iter().position(waits).unwrap_or(0);
        open.remove(oldest).task.abort();
    }
}

/// A plain or an encrypted connection. One type for both halves the code that hyper makes.
trait Channel: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Channel for T {}

async fn serve(stream: TcpStream, shared: Arc<Shared>, is_admitted: Arc<AtomicBool>) {
    let limits = shared.limits;
    let access = shared.access();
    let begun = Instant::now();
    let channel: Box<dyn Channel> = match access.tls() {
        None => Box::new(stream),
        Some(config) => {
            let handshake = TlsAcceptor::from(config).accept(stream);
            match tokio::time::timeout(limits.header, handshake).await {
                Ok(Ok(stream)) => Box::new(stream),
                // A client that is too slow, or speaks no TLS.
                _ => return,
            }
        }
    };
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (shared, access) = (Arc::clone(&shared), Arc::clone(&access));
        let is_admitted = Arc::clone(&is_admitted);
        async move {
            if !access.admits(request.headers()) {
                tokio::time::sleep(limits.refusal).await;
                return Ok(not_admitted().response(request.headers()));
            }
            is_admitted.store(true, Ordering::Relaxed);
            Ok::<_, Infallible>(respond(&request, &shared, &access).await)
        }
    });
    // A client that is too slow, or sends no HTTP, is closed and gets no more than hyper's answer.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header.saturating_sub(begun.elapsed()))
        .keep_alive(false)
        .max_buf_size(limits.header_bytes_max)
        .max_headers(limits.headers_max)
        .serve_connection(TokioIo::new(channel), service)
        .await;
}

async fn respond(
    request: &hyper::Request<Incoming>,
    shared: &Shared,
    access: &Access,
) -> Response<Full<Bytes>> {
    let headers = request.headers();
    let path = request.uri().path();
    let reply = match refusal(request.method(), headers, &shared.own_name, access) {
        Some(refused) => Reply::Now(refused),
        None => {
            let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
            (shared.handler)(&Request {
                path,
                query: request.uri().query(),
                accept: accept.unwrap_or(""),
            })
        }
    };
    let answer = match reply {
        Reply::Now(answer) => answer,
        Reply::Later(job) => shared.workers.answer(path, job).await,
    };
    answer.response(headers)
}
