//! A run's artifacts, at the worker. The run asks for what it was given, and offers what it leaves; both are events that
//! its owner follows, who then brings the one and fetches the other. Bytes pass through in pieces: nothing is kept here.
//!
//! Each artifact is brought and fetched once. An owner that is cut off in the middle, or taken over, has lost that one
//! artifact, and the result says so.

use super::spool::Spool;
use async_trait::async_trait;
use cofferdam_control::{ArtifactDesk, Piece, PieceReader, Reader};
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::sync::{mpsc, oneshot};

/// Read at once.
const PIECE_BYTES: usize = 64 << 10;

/// What its owner says of an artifact that the run has left: how many bytes were kept, or why none were.
pub(super) type Verdict = Result<u64, String>;

#[derive(Debug)]
pub(super) struct RunDesk {
    spool: Arc<Spool>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    inputs: HashMap<u64, mpsc::Sender<Piece>>,
    outputs: HashMap<u64, Output>,
}

#[derive(Debug)]
struct Output {
    /// None once somebody fetches it.
    pieces: Option<mpsc::Receiver<Piece>>,
    verdict: oneshot::Sender<Verdict>,
}

impl RunDesk {
    pub(super) fn new(spool: Arc<Spool>) -> Arc<Self> {
        Arc::new(Self { spool, waiting: Mutex::default() })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for an artifact.
    fn ask(&self, artifact: &str) -> mpsc::Receiver<Piece> {
        let (sender, pieces) = mpsc::channel(1);
        let number = {
            let mut waiting = self.waiting();
            waiting.last += 1;
            let number = waiting.last;
            waiting.inputs.insert(number, sender);
            number
        };
        self.spool.ask(number, artifact);
        pieces
    }

    /// The way into the run for an artifact that it has asked for; none if somebody brings it already.
    pub(super) fn take_input(&self, number: u64) -> Option<mpsc::Sender<Piece>> {
        self.waiting().inputs.remove(&number)
    }

    /// An artifact that the run leaves; none if somebody fetches it already.
    pub(super) fn take_output(&self, number: u64) -> Option<mpsc::Receiver<Piece>> {
        self.waiting().outputs.get_mut(&number)?.pieces.take()
    }

    /// Tells the run what became of an artifact that it leaves. False where nobody waits for that.
    pub(super) fn settle_output(&self, number: u64, verdict: Verdict) -> bool {
        let Some(output) = self.waiting().outputs.remove(&number) else { return false };
        output.verdict.send(verdict).is_ok()
    }
}

/// The desk as a run knows it.
pub(super) struct DeskOfRun(pub(super) Arc<RunDesk>);

#[async_trait]
impl ArtifactDesk for DeskOfRun {
    async fn open(&self, artifact: &str) -> io::Result<Reader> {
        Ok(Box::new(Input::Unasked { desk: Arc::clone(&self.0), artifact: artifact.to_owned() }))
    }

    async fn keep(&self, path: &str, content: &mut (dyn AsyncRead + Send + Sync + Unpin)) -> io::Result<u64> {
        let (sender, pieces) = mpsc::channel(1);
        let (tell, mut verdict) = oneshot::channel();
        let number = {
            let mut waiting = self.0.waiting();
            waiting.last += 1;
            let number = waiting.last;
            waiting.outputs.insert(number, Output { pieces: Some(pieces), verdict: tell });
            number
        };
        self.0.spool.offer(number, path);
        let unheard = |_| io::Error::other("nobody has said whether it was kept");
        let said = tokio::select! {
            biased;
            said = &mut verdict => said.map_err(unheard)?,
            read = pass_on(content, &sender) => {
                let said = verdict.await.map_err(unheard)?;
                read?;
                said
            }
        };
        said.map_err(io::Error::other)
    }
}

/// Passes a file on in pieces. Whoever fetches it may stop before its end, and says why elsewhere.
async fn pass_on(
    content: &mut (dyn AsyncRead + Send + Sync + Unpin),
    sender: &mpsc::Sender<Piece>,
) -> io::Result<()> {
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let read = loop {
            match content.take((PIECE_BYTES - piece.len()) as u64).read_buf(&mut piece).await {
                Ok(0) => break Ok(()),
                Ok(_) if piece.len() < PIECE_BYTES => {}
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = read {
            let _ = sender.send(Piece::Failed(error.to_string())).await;
            return Err(error);
        }
        let is_over = piece.len() < PIECE_BYTES;
        if !piece.is_empty() && sender.send(Piece::Bytes(piece)).await.is_err() {
            return Ok(());
        }
        if is_over {
            let _ = sender.send(Piece::End).await;
            return Ok(());
        }
    }
}

/// An artifact that the run reads. It is asked for when its first byte is wanted, so that one comes at a time.
enum Input {
    Unasked { desk: Arc<RunDesk>, artifact: String },
    Coming(PieceReader),
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Self::Unasked { desk, artifact } = &mut *self {
            let pieces = desk.ask(artifact);
            *self = Self::Coming(PieceReader::new(pieces));
        }
        match &mut *self {
            Self::Coming(pieces) => Pin::new(pieces).poll_read(context, buffer),
            Self::Unasked { .. } => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desk() -> (Arc<RunDesk>, DeskOfRun) {
        let desk = RunDesk::new(Spool::new());
        (Arc::clone(&desk), DeskOfRun(desk))
    }

    #[tokio::test]
    async fn an_input_that_was_cut_off_is_no_whole_one() {
        let (desk, run) = desk();
        let mut whole = run.open("art-a").await.unwrap();
        assert!(desk.take_input(1).is_none(), "it is asked for when it is read");
        let bring = async {
            let sender = loop {
                if let Some(sender) = desk.take_input(1) {
                    break sender;
                }
                tokio::task::yield_now().await;
            };
            for piece in [Piece::Bytes(b"ab".to_vec()), Piece::Bytes(b"c".to_vec()), Piece::End] {
                sender.send(piece).await.unwrap();
            }
        };
        let mut text = String::new();
        let (read, ()) = tokio::join!(whole.read_to_string(&mut text), bring);
        assert_eq!((read.unwrap(), text.as_str()), (3, "abc"));
        assert!(desk.take_input(1).is_none(), "it is brought once");

        let mut cut = run.open("art-b").await.unwrap();
        let bring = async {
            let sender = loop {
                if let Some(sender) = desk.take_input(2) {
                    break sender;
                }
                tokio::task::yield_now().await;
            };
            sender.send(Piece::Bytes(b"ab".to_vec())).await.unwrap();
        };
        let (read, ()) = tokio::join!(cut.read_to_string(&mut text), bring);
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn an_output_is_what_its_owner_says_of_it() {
        let (desk, run) = desk();
        let content = vec![7; PIECE_BYTES + 5];
        let fetch = async {
            let mut pieces = loop {
                if let Some(pieces) = desk.take_output(1) {
                    break pieces;
                }
                tokio::task::yield_now().await;
            };
            assert!(desk.take_output(1).is_none(), "it is fetched once");
            let mut sizes = Vec::new();
            while let Some(Piece::Bytes(bytes)) = pieces.recv().await {
                sizes.push(bytes.len());
            }
            assert_eq!(sizes, [PIECE_BYTES, 5]);
            assert!(desk.settle_output(1, Ok(9)) && !desk.settle_output(1, Ok(9)));
        };
        let mut content = content.as_slice();
        let (kept, ()) = tokio::join!(run.keep("a", &mut content), fetch);
        assert_eq!(kept.unwrap(), 9);
        // Refused before it was fetched.
        let refuse = async {
            while !desk.settle_output(2, Err("the quota is used up".to_owned())) {
                tokio::task::yield_now().await;
            }
        };
        let mut content = [7; 3 * PIECE_BYTES].as_slice();
        let (kept, ()) = tokio::join!(run.keep("b", &mut content), refuse);
        assert_eq!(kept.unwrap_err().to_string(), "the quota is used up");
    }
}
