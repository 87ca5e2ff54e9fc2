//! Servers that are spoken to by TLS, and whose certificate is, or is not, signed by somebody whom this machine trusts.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use redis_rl_client::{Limiter, Source};
use tempfile::TempDir;

use crate::load::counter;
use crate::processes::{in_processes, report, task};
use crate::support::{Options, Server, ask, free_port, skip, wait_until};

/// An authority, and a certificate for 127.0.0.1 that it signed.
fn make_certificates(folder: &Path) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for arguments in [
        format!("req -x509 {key} -keyout ca.key -out ca.crt -days 2 -subj /CN=authority"),
        format!("req {key} -keyout server.key -out server.csr -subj /CN=server -addext subjectAltName=IP:127.0.0.1"),
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -copy_extensions copy -out server.crt"
            .to_owned(),
    ] {
        let output = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output();
        let output = output.unwrap_or_else(|error| panic!("openssl does not start: {error}"));
        assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A server that speaks TLS on a second port.
fn start(options: Options, certificates: &Path) -> (Server, u16) {
    let port = free_port();
    let path = |file: &str| certificates.join(file).to_str().unwrap().to_owned();
    let options = options.set("tls-port", &port.to_string()).set("tls-auth-clients", "no");
    let options = options.set("tls-cert-file", &path("server.crt")).set("tls-key-file", &path("server.key"));
    (options.set("tls-ca-cert-file", &path("ca.crt")).start(), port)
}

/// In a process of its own, since whom to trust is found in the environment.
async fn check(urls: &str) -> String {
    let mut answers = Vec::new();
    for url in urls.split(' ') {
        let (kind, url) = url.split_once('=').unwrap();
        let builder = if kind == "cluster" { Limiter::cluster([url]) } else { Limiter::builder(url) };
        let limiter = builder.deadline(Duration::from_secs(5)).nodes(1).without_fleet().connect_lazy().unwrap();
        answers.push(match limiter.try_check(&counter(), "alice").await {
            Ok(decision) => format!("{kind}: {}", decision.source == Source::Redis),
            Err(error) => format!("{kind}: {:?} {error}", error.kind()),
        });
    }
    answers.join(", ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_asked_by_tls_if_its_certificate_can_be_trusted() {
    if let Some(urls) = task() {
        return report(&check(&urls).await);
    }
    // One that can do it asks for a certificate.
    if !Options::new().set("tls-port", "1").start_refused().contains("tls-cert-file configured") {
        return skip("was built without TLS");
    }
    let certificates = TempDir::with_prefix("redis-rl-test-").unwrap();
    make_certificates(certificates.path());
    let (_server, port) = start(Options::new(), certificates.path());
    let of_cluster = Options::new().set("cluster-enabled", "yes").set("tls-cluster", "yes");
    let (node, port_of_node) = start(of_cluster, certificates.path());
    let redis = &mut node.connect();
    ask::<()>(redis, "CLUSTER ADDSLOTSRANGE 0 16383");
    wait_until("the cluster is up", || crate::support::send::<()>(redis, "SET x y").is_ok());
    let urls = format!("single=rediss://127.0.0.1:{port} cluster=rediss://127.0.0.1:{port_of_node}");
    let trusting = |folder: &TempDir| {
        let authority = folder.path().join("ca.crt");
        in_processes(1, &urls, |command| {
            command.env("SSL_CERT_FILE", &authority);
        })
    };
    assert_eq!(trusting(&certificates), ["single: true, cluster: true"]);
    let another = TempDir::with_prefix("redis-rl-test-").unwrap();
    make_certificates(another.path());
    let distrustful = trusting(&another);
    assert!(!distrustful[0].contains("true"), "{distrustful:?}");
    assert_eq!(distrustful[0].matches("invalid peer certificate").count(), 2, "{distrustful:?}");
}
