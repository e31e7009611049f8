//! An agent for other hosts: TLS and tokens, against `curl` with certificates of `openssl`.

use std::os::unix::fs::PermissionsExt;

use plumb_testkit::certificate::{CURVE, Certificate, curl};

use super::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

const KEYS: &str = "tls_certificate = \"FOLDER/tls.crt\"\ntls_key = \"FOLDER/tls.key\"\ntoken_file = \"FOLDER/token\"\n";

/// A file that its owner alone can read.
fn secret(folder: &Folder, name: &str, text: &str) {
    let path = folder.file(name, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("an owner");
}

fn make(folder: &Folder, name: &str) -> Certificate {
    let names = "DNS:db1.example,IP:127.0.0.1";
    Certificate::make(&folder.path(""), name, names, CURVE)
}

#[test]
fn the_files_of_a_configuration_are_checked() {
    require!(Tool("openssl"));
    let folder = Folder::new("agent-tls-config");
    make(&folder, "tls");
    secret(&folder, "token", TOKEN);
    let file = configured(&folder, &format!("listen = \"0.0.0.0:9974\"\n{KEYS}"));
    let ran = check(&file);
    let shown = recorded_lines(&ran.ends(0).out, &["listen", "tls", "token"]);
    // The address is none of this host alone.
    assert!(!ran.out.contains("IPAddressAllow"), "{}", ran.out);
    let printed = folder.file("printed.toml", &ran.out);
    assert_eq!(check(&printed).ends(0).out, ran.out);
    secret(&folder, "token", &TOKEN[1..]);
    let short = check(&file).ends(2).complaint();
    fs::remove_file(folder.path("tls.crt")).expect("a file");
    let absent = check(&file).ends(2).complaint();
    insta::assert_snapshot!([shown, short, absent].join("\n\n"));
    // An agent that has no files for loopback needs none.
    let alone = configured(&folder, "listen = \"127.0.0.1:9974\"\n");
    let ran = check(&alone);
    let needs_a_group = ran.ends(0).out.contains("SupplementaryGroups");
    assert!(!needs_a_group, "{}", ran.out);
}

/// An agent at all addresses of the host, and the port that it has.
fn open_agent(folder: &Folder) -> (PathBuf, Service, u16) {
    let file = configured(folder, &format!("listen = \"0.0.0.0:0\"\n{KEYS}"));
    let service = Service::ready(folder, &file);
    let said = service.said();
    let port = said
        .lines()
        .find_map(|line| {
            line.split_once("metrics at https://0.0.0.0:")?
                .1
                .strip_suffix("/metrics")
        })
        .unwrap_or_else(|| panic!("no address in {said}"));
    let port = port.parse().expect("a port");
    (file, service, port)
}

/// A certificate, a key and a token that are renewed count after SIGHUP; files with a mistake change nothing.
#[test]
fn renewed_files_count_after_a_reload() {
    require!(Bpf, Root, Tool("curl"), Tool("openssl"));
    let folder = Folder::new("agent-tls");
    let first = make(&folder, "tls");
    let trusted = folder.path("first.crt");
    fs::copy(&first.certificate, &trusted).expect("a copy");
    secret(&folder, "token", TOKEN);
    let (file, service, port) = open_agent(&folder);
    let ask = |trusted: &Path, token: &str, path: &str| {
        let url = format!("https://db1.example:{port}{path}");
        let resolve = format!("db1.example:{port}:127.0.0.1");
        let header = format!("Authorization: Bearer {token}");
        let done = curl(trusted, &["--resolve", &resolve, &url, "-H", &header]);
        let out = String::from_utf8(done.stdout).expect("text");
        let (body, status) = out.rsplit_once('\n').expect("a status");
        (status.to_owned(), body.to_owned())
    };
    let (status, body) = ask(&trusted, TOKEN, "/metrics");
    assert_eq!(status, "200", "{body}");
    assert!(body.contains("\nplumb_build_info{"), "{body}");
    assert_eq!(ask(&trusted, TOKEN, "/api/v1/devices").0, "200");
    let other = "f".repeat(32);
    assert_eq!(ask(&trusted, &other, "/metrics").0, "401");
    assert_eq!(ask(&trusted, &other, "/healthz").0, "401");

    let second = make(&folder, "tls");
    secret(&folder, "token", &other);
    service.signal(Signal::HUP);
    service.sends("RELOADING=1");
    service.sends("READY=1");
    assert_eq!(ask(&second.certificate, &other, "/metrics").0, "200");
    assert_eq!(ask(&second.certificate, TOKEN, "/metrics").0, "401");
    assert_eq!(ask(&trusted, &other, "/metrics").0, "000");

    secret(&folder, "token", "short");
    service.signal(Signal::HUP);
    service.says(&folder.path("token").display().to_string());
    assert_eq!(ask(&second.certificate, &other, "/metrics").0, "200");
    // The port stays open for other hosts, so that it needs the files.
    let text = fs::read_to_string(&file).expect("a file");
    let (above, _) = text.split_once("listen").expect("an address");
    fs::write(&file, above).expect("room");
    service.signal(Signal::HUP);
    service.says("listen: found");
    assert_eq!(ask(&second.certificate, &other, "/metrics").0, "200");
    let said = service.end().replace(&port.to_string(), "PORT");
    insta::assert_snapshot!(recorded_lines(&said, &["configuration"]));
}

/// An agent whose files have a mistake counts all the same, and answers nobody.
#[test]
fn an_agent_without_its_files_counts() {
    require!(Bpf, Root);
    let folder = Folder::new("agent-tls-absent");
    let file = configured(&folder, &format!("listen = \"0.0.0.0:0\"\n{KEYS}"));
    let said = Service::ready(&folder, &file).end();
    let place = folder.path("tls.crt").display().to_string();
    let words = format!("no metrics: {place}: found a file that cannot be read");
    assert!(said.contains(&words), "{said}");
    assert!(!said.contains("metrics at "), "{said}");
}

/// Prometheus reads the metrics with the configuration of `contrib/`.
#[test]
fn prometheus_reads_the_metrics_by_tls() {
    require!(Bpf, Root, Tool("openssl"), Tool("prometheus"));
    let program = plumb_testkit::require::tool("prometheus").expect("asked for above");
    let folder = Folder::new("agent-tls-prometheus");
    make(&folder, "tls");
    secret(&folder, "token", TOKEN);
    let (_, service, port) = open_agent(&folder);
    let mut scrape = metrics::contrib("scrape-tls.yml");
    for (shown, real) in [
        ("/etc/prometheus/plumb-ca.crt", folder.path("tls.crt")),
        ("/etc/prometheus/plumb-token", folder.path("token")),
        ("db1.example:9974", format!("127.0.0.1:{port}").into()),
    ] {
        assert!(scrape.contains(shown), "{shown} in {scrape}");
        scrape = scrape.replace(shown, &real.display().to_string());
    }
    let prometheus = metrics::Prometheus::begin(&program, &scrape, &[]);
    wait::until("the metrics in Prometheus", LIMIT, || {
        prometheus.value("count(plumb_build_info)") == Some(1.0)
    });
    service.end();
}
