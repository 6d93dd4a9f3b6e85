//! Ports on the sandbox's loopback.

use super::Connection;
use super::channel::{Channel, ChannelReader, ChannelWriter, Duplex};
use super::connection::Sender;
use crate::protocol::{Ask, Failure, Request, message};
use cofferdam_backend::{BackendError, Listener, Result, Stream, async_trait};
use std::io;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc};

/// Connections from inside that wait to be accepted; further ones are dropped.
const BACKLOG: usize = 128;

fn duplex(channel: &Arc<Channel>, sender: &Sender) -> Duplex {
    Duplex { reader: ChannelReader::new(channel, sender), writer: ChannelWriter::new(channel, sender) }
}

fn port_error(port: u16, failure: Failure) -> BackendError {
    BackendError::failed(format!("port {port} in the sandbox"), io::Error::from_raw_os_error(failure.errno))
}

impl Connection {
    pub async fn connect(&self, port: u16) -> Result<Box<dyn Stream>> {
        let (number, channel) = self.channel();
        let stream = duplex(&channel, &self.sender);
        let answer = self.ask(Ask::Connect { channel: number, port }).await?;
        answer.map_err(|failure| port_error(port, failure))?;
        Ok(Box::new(stream))
    }

    pub async fn listen(&self, port: u16) -> Result<Box<dyn Listener>> {
        let listener = self.number();
        let (queue, accepted) = mpsc::channel(BACKLOG);
        self.expect_connections(listener, queue);
        let answer = self.ask(Ask::Listen { listener, port }).await?;
        answer.map_err(|failure| port_error(port, failure))?;
        let sender = self.sender.clone();
        Ok(Box::new(GuestListener { number: listener, sender, accepted: Mutex::new(accepted) }))
    }
}

struct GuestListener {
    number: u32,
    sender: Sender,
    accepted: Mutex<mpsc::Receiver<Arc<Channel>>>,
}

#[async_trait]
impl Listener for GuestListener {
    async fn accept(&self) -> Result<Box<dyn Stream>> {
        match self.accepted.lock().await.recv().await {
            Some(channel) => Ok(Box::new(duplex(&channel, &self.sender))),
            None => Err(BackendError::Gone { cause: "its helper ended".to_owned() }),
        }
    }
}

impl Drop for GuestListener {
    fn drop(&mut self) {
        // Nobody waits for the answer.
        self.sender.send(message(&Request { number: 0, ask: Ask::Unlisten { listener: self.number } }));
    }
}
