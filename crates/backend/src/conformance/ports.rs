//! Ports on a sandbox's own loopback, and that there is no other network.

use super::support::*;
use crate::{Backend, ProcessSpec, Sandbox, SandboxSpec, Stream};
use cofferdam_core::NetworkPolicy;
use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A listener inside: takes a line from each connection and sends it back behind a greeting.
const SERVE_PERL: &str = r#"
    use Socket qw(:DEFAULT pack_sockaddr_in6 inet_pton AF_INET6);
    my ($address, $port, $greeting) = @ARGV; $| = 1;
    my $six = $address =~ /:/;
    my $name = $six
        ? pack_sockaddr_in6($port, inet_pton(AF_INET6, $address))
        : sockaddr_in($port, inet_aton($address));
    socket(my $server, $six ? AF_INET6 : AF_INET, SOCK_STREAM, 0) or die "socket: $!";
    bind($server, $name) or die "bind: $!";
    listen($server, 16) or die "listen: $!";
    print "ready\n";
    while (accept(my $client, $server)) { my $line = <$client>; print $client "$greeting $line"; close $client }
"#;

const SERVE_PYTHON: &str = r#"
import socket, sys
address, port, greeting = sys.argv[1:]
server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
server.bind((address, int(port)))
server.listen(16)
print("ready", flush=True)
while True:
    client, _ = server.accept()
    line = client.makefile("rb").readline()
    client.sendall(greeting.encode() + b" " + line)
    client.close()
"#;

/// Connects, sends a line and prints the answer; where it cannot connect, prints `errno` and the number.
const CALL_PERL: &str = r#"
    use Socket; use IO::Handle;
    my ($address, $port) = @ARGV;
    socket(my $socket, AF_INET, SOCK_STREAM, 0) or die "socket: $!";
    connect($socket, sockaddr_in($port, inet_aton($address))) or do { print "errno ", $! + 0, "\n"; exit 0 };
    $socket->autoflush(1); print $socket "hello\n"; print <$socket>;
"#;

const CALL_PYTHON: &str = r#"
import socket, sys
connection = socket.socket()
try:
    connection.connect((sys.argv[1], int(sys.argv[2])))
except OSError as error:
    print("errno", error.errno)
else:
    connection.sendall(b"hello\n")
    print(connection.makefile().read(), end="")
"#;

const ECONNREFUSED: &str = "errno 111\n";
const ENETUNREACH: &str = "errno 101\n";

/// Perl is in every Debian and starts fast; python3 is what other images have.
fn perl_or_python(perl: &str, python: &str, arguments: &[&str]) -> ProcessSpec {
    let script = r#"perl=$1 python=$2; shift 2
        if command -v perl > /dev/null; then exec perl -e "$perl" -- "$@"; fi
        exec python3 -c "$python" "$@""#;
    process(["/bin/sh", "-c", script, "sh", perl, python].iter().chain(arguments).copied())
}

/// Starts a listener inside that runs until the sandbox goes.
async fn serve(sandbox: &dyn Sandbox, address: &str, port: u16, greeting: &str) {
    let spec = perl_or_python(SERVE_PERL, SERVE_PYTHON, &[address, &port.to_string(), greeting]);
    start_ready(sandbox, spec).await;
}

async fn call_from_inside(sandbox: &dyn Sandbox, address: &str, port: u16) -> String {
    let spec = perl_or_python(CALL_PERL, CALL_PYTHON, &[address, &port.to_string()]);
    let output = promptly("a call from inside", run(sandbox, spec)).await;
    assert_eq!(output.stderr(), "");
    output.stdout()
}

/// Connects from the host, sends a line and answers what comes back until the end.
async fn call(sandbox: &dyn Sandbox, port: u16) -> String {
    let stream = promptly("a connection", sandbox.connect(port)).await;
    let mut stream = stream.expect("a connection");
    stream.write_all(b"hello\n").await.expect("a line sent");
    String::from_utf8_lossy(&read_to_end(&mut stream).await).into_owned()
}

/// Whether there is anything to test; without the ability, its refusal is.
async fn can_connect(backend: &dyn Backend, sandbox: &dyn Sandbox) -> bool {
    if !backend.capabilities().connect {
        assert_unsupported("connect", sandbox.connect(8080).await);
    }
    backend.capabilities().connect
}

async fn can_listen(backend: &dyn Backend, sandbox: &dyn Sandbox) -> bool {
    if !backend.capabilities().listen {
        assert_unsupported("listen", sandbox.listen(3128).await);
    }
    backend.capabilities().listen
}

pub async fn connect_reaches_a_listener_inside(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    if !can_connect(backend, &*sandbox).await {
        return;
    }
    for (address, port) in [("127.0.0.1", 8080), ("0.0.0.0", 8081)] {
        serve(&*sandbox, address, port, address).await;
        for _ in 0..3 {
            assert_eq!(call(&*sandbox, port).await, format!("{address} hello\n"));
        }
    }
}

/// Many a server listens on `localhost`, and that may be this one alone.
pub async fn connect_reaches_an_ipv6_listener_inside(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    if !can_connect(backend, &*sandbox).await {
        return;
    }
    let has_ipv6 = sh_ok(&*sandbox, "grep -sq . /proc/net/if_inet6 && echo yes; true").await;
    if has_ipv6.is_empty() {
        // A kernel without IPv6 has nothing to listen on: what is left is that a connection is refused.
        assert_refused("a closed port", sandbox.connect(8080).await);
        return;
    }
    serve(&*sandbox, "::1", 8080, "six").await;
    assert_eq!(call(&*sandbox, 8080).await, "six hello\n");
}

pub async fn connect_to_a_closed_port_fails_promptly(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    if !can_connect(backend, &*sandbox).await {
        return;
    }
    for port in [1, 8080, 65535] {
        assert_refused("a closed port", promptly("an error", sandbox.connect(port)).await);
    }
    assert_still_runs(&*sandbox).await;
}

pub async fn listen_accepts_from_inside(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    if !can_listen(backend, &*sandbox).await {
        return;
    }
    let listener = sandbox.listen(3128).await.expect("a listener");
    for round in ["first", "second"] {
        let accept = async {
            let mut stream: Box<dyn Stream> = listener.accept().await.expect("a connection from inside");
            let mut line = [0; 6];
            stream.read_exact(&mut line).await.expect("a line from inside");
            stream.write_all(round.as_bytes()).await.expect("an answer sent");
            line
        };
        let (line, answer) = tokio::join!(accept, call_from_inside(&*sandbox, "127.0.0.1", 3128));
        assert_eq!((&line, answer.as_str()), (b"hello\n", round));
    }
}

pub async fn a_port_is_listened_on_once(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    if !can_listen(backend, &*sandbox).await {
        return;
    }
    let _listener = sandbox.listen(3128).await.expect("a listener");
    assert_refused("a port that is taken", sandbox.listen(3128).await.map(drop));
    sandbox.listen(3129).await.map(drop).expect("a listener on another port");
}

pub async fn sandboxes_have_ports_of_their_own(backend: &dyn Backend) {
    let (first, second) = (sandbox(backend).await, sandbox(backend).await);
    if !can_connect(backend, &*first).await {
        return;
    }
    serve(&*first, "127.0.0.1", 8080, "first").await;
    assert_refused("the first one's port", second.connect(8080).await);
    serve(&*second, "127.0.0.1", 8080, "second").await;
    assert_eq!(call(&*first, 8080).await, "first hello\n");
    assert_eq!(call(&*second, 8080).await, "second hello\n");
    assert_eq!(call_from_inside(&*first, "127.0.0.1", 8080).await, "first hello\n");
}

/// Both policies leave a sandbox with its loopback alone; what `restricted` adds is handed in by `listen`.
pub async fn the_network_is_loopback_only(backend: &dyn Backend) {
    for network in [NetworkPolicy::None, NetworkPolicy::Restricted] {
        let sandbox = create(backend, SandboxSpec { network, ..sandbox_spec() }).await;
        for (address, port) in [("192.0.2.1", 80), ("1.1.1.1", 53), ("169.254.169.254", 80), ("10.0.0.1", 22)]
        {
            assert_eq!(
                call_from_inside(&*sandbox, address, port).await,
                ENETUNREACH,
                "{network:?}: {address}"
            );
        }
        let devices = sh_ok(&*sandbox, "cat /proc/net/dev").await;
        let devices: Vec<&str> =
            devices.lines().filter_map(|line| line.split_once(':')).map(|d| d.0.trim()).collect();
        assert_eq!(devices, ["lo"], "{network:?}");
    }
}

pub async fn the_hosts_loopback_is_out_of_reach(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let on_host = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a listener on the host");
    let port = on_host.local_addr().expect("its address").port();
    assert_eq!(call_from_inside(&*sandbox, "127.0.0.1", port).await, ECONNREFUSED);
}
