//! Bytes into a file of a sandbox, in pieces that are worth a turn of another thread.
//!
//! A write to a file is done by a thread that may wait for it. The way there and back costs more than to write a few
//! kibibytes, so what is large goes in large pieces; what is small takes no more memory than it has bytes. No byte is
//! copied to get there: the piece itself goes, and comes back empty when the next one is full.

use cofferdam_backend::Reader;
use std::fs::File;
use std::io::{self, Write};
use std::mem;
use tokio::io::AsyncReadExt;
use tokio::task::{JoinHandle, spawn_blocking};

/// Most files are smaller.
const FIRST_BYTES: usize = 16 << 10;

/// From here on, larger pieces are not quicker. Twice as much is in memory: one piece is read while one is written.
const MOST_BYTES: usize = 512 << 10;

/// Writes all that comes to a file that was just opened, and says how much it was. What is given along is held until
/// the last write has ended, also where nobody waits for that any more.
pub(crate) async fn pour<H: Send + 'static>(
    mut content: Reader,
    file: File,
    held: H,
) -> io::Result<(u64, File)> {
    let (mut piece, mut most, mut written) = (Vec::new(), FIRST_BYTES, 0);
    let mut writing = Writing::None(file, Vec::new(), held);
    loop {
        piece.clear();
        piece.reserve_exact(most);
        let read = (&mut content).take(most as u64).read_to_end(&mut piece).await;
        // However that went, nothing is left behind that still writes.
        let (file, free, held) = writing.end().await?;
        let read = read?;
        written += read as u64;
        writing = Writing::begin(file, mem::replace(&mut piece, free), held);
        if read < most {
            let (file, ..) = writing.end().await?;
            return Ok((written, file));
        }
        most = (most * 4).min(MOST_BYTES);
    }
}

/// The piece before the one that is being read.
enum Writing<H> {
    None(File, Vec<u8>, H),
    Begun(JoinHandle<io::Result<(File, Vec<u8>, H)>>),
}

impl<H: Send + 'static> Writing<H> {
    fn begin(mut file: File, piece: Vec<u8>, held: H) -> Self {
        if piece.is_empty() {
            return Self::None(file, piece, held);
        }
        Self::Begun(spawn_blocking(move || file.write_all(&piece).map(|()| (file, piece, held))))
    }

    /// The file, and the piece to be filled anew.
    async fn end(self) -> io::Result<(File, Vec<u8>, H)> {
        match self {
            Self::None(file, piece, held) => Ok((file, piece, held)),
            Self::Begun(writing) => writing.await.map_err(io::Error::other)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read, Seek};
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use tokio::io::AsyncRead;
    use tokio::sync::Notify;

    fn scratch() -> File {
        let name = rustix::fs::memfd_create("pour", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        File::from(name)
    }

    #[tokio::test]
    async fn every_byte_arrives_whatever_there_is_of_them() {
        for size in [0, 1, FIRST_BYTES - 1, FIRST_BYTES, FIRST_BYTES + 1, 3 * MOST_BYTES + 7] {
            let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            // It comes in pieces of another size.
            let content = AsyncReadExt::chain(Cursor::new(bytes.clone()), Cursor::new(bytes.clone()));
            let (written, mut file) = pour(Box::new(content), scratch(), ()).await.unwrap();
            let mut found = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut found).unwrap();
            assert_eq!((written as usize, found), (2 * size, [bytes.clone(), bytes].concat()), "{size}");
        }
    }

    /// Says when it is asked, and never answers.
    struct Silent(Arc<Notify>);

    impl AsyncRead for Silent {
        fn poll_read(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            _: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            self.0.notify_one();
            std::task::Poll::Pending
        }
    }

    #[tokio::test]
    async fn what_is_given_along_is_held_for_as_long_as_something_is_written() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (held, asked) = (Arc::new(()), Arc::new(Notify::new()));
        // More than a pipe takes, so that the second piece waits for a reader.
        let content = AsyncReadExt::chain(Cursor::new(vec![7; 5 * FIRST_BYTES]), Silent(Arc::clone(&asked)));
        let file = File::from(OwnedFd::from(writer));
        tokio::select! {
            _ = pour(Box::new(content), file, Arc::clone(&held)) => panic!("there is more to come"),
            () = asked.notified() => {}
        }
        assert_eq!(Arc::strong_count(&held), 2, "it is being written");
        let read = spawn_blocking(move || reader.read_to_end(&mut Vec::new()));
        assert_eq!(read.await.unwrap().unwrap(), 5 * FIRST_BYTES);
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    }

    struct Broken;

    impl AsyncRead for Broken {
        fn poll_read(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            _: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            std::task::Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()))
        }
    }

    #[tokio::test]
    async fn what_is_cut_off_is_an_error() {
        let content = AsyncReadExt::chain(Cursor::new(vec![7; 2 * FIRST_BYTES]), Broken);
        let file = scratch();
        let seen = file.try_clone().unwrap();
        let error = pour(Box::new(content), file, ()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(seen.metadata().unwrap().len(), FIRST_BYTES as u64, "the piece before is whole");
    }

    #[tokio::test]
    async fn what_does_not_fit_is_an_error() {
        for size in [1, 3 * MOST_BYTES] {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let error = pour(Box::new(Cursor::new(vec![7; size])), full, ()).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{size}");
        }
    }
}
