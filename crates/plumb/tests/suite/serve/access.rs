//! `plumb serve` for other hosts: TLS and tokens, against `curl` with certificates of `openssl`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use plumb_testkit::certificate::{CURVE, Certificate, curl};
use plumb_testkit::require;

use super::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A file that its owner alone can read.
fn secret(folder: &Folder, name: &str, text: &str) -> String {
    let path = folder.file(name, text);
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("an owner");
    path.display().to_string()
}

#[test]
fn other_hosts_need_a_certificate_and_a_token() {
    require!(Tool("curl"), Tool("openssl"));
    let folder = Folder::new("serve-tls");
    let at = folder.path("store");
    drop(make(&at));
    let names = "DNS:db1.example,IP:127.0.0.1";
    let made = Certificate::make(&folder.path(""), "tls", names, CURVE);
    let tokens = format!("{}\n{TOKEN}\n", "f".repeat(64));
    let serving = Serving::begin(&[
        &at.display().to_string(),
        "--listen=0.0.0.0:0",
        &format!("--tls-certificate={}", made.certificate.display()),
        &format!("--tls-key={}", made.key.display()),
        &format!("--token-file={}", secret(&folder, "token", &tokens)),
    ]);
    let port = serving.address.port();
    let resolve = format!("db1.example:{port}:127.0.0.1");
    let ask = |url: &str, headers: &[&str]| {
        let url = url.replace("PORT", &port.to_string());
        let mut args = vec!["--resolve", &resolve, &url];
        args.extend(headers.iter().flat_map(|header| ["-H", header]));
        let done = curl(&made.certificate, &args);
        let out = String::from_utf8(done.stdout).expect("text");
        let (body, status) = out.rsplit_once('\n').expect("a status");
        (status.to_owned(), body.to_owned())
    };
    let header = format!("Authorization: Bearer {TOKEN}");
    for host in ["db1.example", "127.0.0.1"] {
        let mut answer = (String::new(), String::new());
        wait::until("an answer in time", wait::PATIENCE, || {
            // A busy host takes longer than the budget of an answer.
            answer = ask(&format!("https://{host}:PORT/api/v1/devices"), &[&header]);
            answer.0 != "503"
        });
        assert_eq!(answer.0, "200", "{}", answer.1);
        let document: Value = serde_json::from_str(&answer.1).expect("JSON");
        assert_eq!(document["result"], history(&at, &["list"]));
    }
    let wrong = format!("{header}0");
    for path in ["api/v1/devices", "healthz", "other"] {
        for headers in [&[][..], &[wrong.as_str()]] {
            let url = format!("https://db1.example:PORT/{path}");
            assert_eq!(ask(&url, headers).0, "401", "{path} {headers:?}");
        }
    }
    let url = "https://db1.example:PORT/healthz";
    assert_eq!(ask(url, &[&header]).0, "200");
    assert_eq!(ask(url, &[&header, "Host: evil.example"]).0, "421");
    assert_eq!(ask("http://127.0.0.1:PORT/healthz", &[&header]).0, "000");
}

/// On loopback a token alone is enough, against other users of the host.
#[test]
fn a_token_protects_loopback() {
    let folder = Folder::new("serve-token");
    let at = folder.path("store");
    drop(make(&at));
    let tokens = secret(&folder, "token", TOKEN);
    let serving = Serving::begin(&[
        &at.display().to_string(),
        "--listen=127.0.0.1:0",
        "--token-file",
        &tokens,
    ]);
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for (headers, status) in [("", "401"), (token.as_str(), "200")] {
        let (head, _) = serving.answer(&request("/healthz", headers));
        assert_eq!(head.get(9..12), Some(status), "{head}");
    }
}

#[test]
fn files_that_do_not_fit_are_named() {
    require!(Tool("openssl"));
    let folder = Folder::new("serve-tls-files");
    let at = folder.path("store");
    drop(make(&at));
    let path = |name: &str| folder.path(name).display().to_string();
    let make = |name| Certificate::make(&folder.path(""), name, "DNS:db1.example", CURVE);
    let (one, _other) = (make("one"), make("other"));
    let store = path("store");
    fs::set_permissions(&one.certificate, Permissions::from_mode(0o644)).expect("an owner");
    secret(&folder, "token", TOKEN);
    secret(&folder, "short", &format!("{TOKEN}\n{}\n", &TOKEN[1..]));
    secret(&folder, "empty", "");
    let open = folder.file("open", TOKEN);
    fs::set_permissions(&open, Permissions::from_mode(0o644)).expect("an owner");
    let open_key = folder.path("open.key");
    fs::copy(&one.key, &open_key).expect("a copy");
    fs::set_permissions(&open_key, Permissions::from_mode(0o604)).expect("an owner");
    let of_group = folder.path("group.key");
    fs::copy(&one.key, &of_group).expect("a copy");
    fs::set_permissions(&of_group, Permissions::from_mode(0o640)).expect("an owner");
    let pem = "expected a certificate in PEM (-----BEGIN CERTIFICATE-----)";
    let key = "expected the private key of the certificate in PEM";
    let token = "expected tokens of at least 32 characters, one a line";
    let hidden = "expected a file that other users cannot read, such as mode 0600";
    let files = ["one.crt", "one.key", "token"];
    for (files, place, found, expected) in [
        (
            ["absent", "one.key", "token"],
            "absent",
            "a file that cannot be read (No such file",
            pem,
        ),
        (
            ["store", "one.key", "token"],
            "store",
            "no regular file",
            pem,
        ),
        (
            ["token", "one.key", "token"],
            "token",
            "no certificate",
            pem,
        ),
        (
            ["one.crt", "absent", "token"],
            "absent",
            "a file that cannot be read (No such file",
            key,
        ),
        (
            ["one.crt", "one.crt", "token"],
            "one.crt",
            "mode 0644",
            hidden,
        ),
        (
            ["one.crt", "token", "token"],
            "token",
            "no private key",
            key,
        ),
        (
            ["one.crt", "other.key", "token"],
            "other.key",
            "the key of another certificate",
            key,
        ),
        (
            ["one.crt", "open.key", "token"],
            "open.key",
            "mode 0604",
            hidden,
        ),
        // The group may read it, so that the agent can.
        (
            ["one.crt", "group.key", "absent"],
            "absent",
            "a file that cannot be read",
            token,
        ),
        (["one.crt", "one.key", "open"], "open", "mode 0644", hidden),
        (["one.crt", "one.key", "empty"], "empty", "no token", token),
        (
            ["one.crt", "one.key", "short"],
            "short:2",
            "a token of 31 characters",
            token,
        ),
    ] {
        let [certificate, key, tokens] = files.map(path);
        let args = ["serve", &store, "--tls-certificate", &certificate];
        let args = [&args[..], &["--tls-key", &key, "--token-file", &tokens]].concat();
        plumb(args)
            .ends(2)
            .complains(&format!("{}: found {found}", path(place)))
            .complains(expected);
    }
    let [certificate, key, tokens] = files.map(path);
    for args in [
        &["--tls-certificate", &certificate, "--token-file", &tokens][..],
        &["--tls-key", &key],
        &["--listen", "0.0.0.0:0", "--token-file", &tokens],
        &[
            "--listen",
            "0.0.0.0:0",
            "--tls-key",
            &key,
            "--tls-certificate",
            &certificate,
        ],
    ] {
        plumb([&["serve", &store][..], args].concat()).ends(2);
    }
}
