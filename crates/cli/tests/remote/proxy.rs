//! A way to the server that is not to be relied on.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What becomes of a connection.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    /// The answer is cut off after so many bytes.
    Cut(usize),
    /// This is answered in the server's place.
    Say(String),
    /// It is let through.
    Pass,
}

/// Passes connections on, each with the fate that `decide` has for its number. It lives as long as the test.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Proxy {
    pub(crate) fn before(server: SocketAddr, decide: impl Fn(usize) -> Fate + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let (counted, decide) = (Arc::clone(&connections), Arc::new(decide));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let number = counted.fetch_add(1, Ordering::SeqCst);
                let decide = Arc::clone(&decide);
                thread::spawn(move || serve(client, server, decide(number)));
            }
        });
        Self { address, connections }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn serve(mut client: TcpStream, server: SocketAddr, fate: Fate) {
    let left = match fate {
        Fate::Say(text) => {
            // The request is read first, or its sender might see a reset in the place of the answer.
            let _ = client.read(&mut [0; 65536]);
            let _ = client.write_all(text.as_bytes());
            return;
        }
        Fate::Cut(bytes) => bytes,
        Fate::Pass => usize::MAX,
    };
    let Ok(upstream) = TcpStream::connect(server) else { return };
    let (Ok(from), Ok(to)) = (client.try_clone(), upstream.try_clone()) else { return };
    let requests = thread::spawn(move || copy(from, to, usize::MAX));
    copy(upstream, client, left);
    let _ = requests.join();
}

fn copy(mut from: TcpStream, mut to: TcpStream, mut left: usize) {
    let mut buffer = [0; 4096];
    while left > 0 {
        let most = left.min(buffer.len());
        match from.read(&mut buffer[..most]) {
            Ok(read) if read > 0 && to.write_all(&buffer[..read]).is_ok() => left -= read,
            _ => break,
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
