//! Bytes into a file of a sandbox, in pieces that are worth a turn of another thread.
//!
//! A write to a file is done by a thread that may wait for it. The way there and back costs more than to write a few
//! kibibytes, so what is large goes in large pieces; what is small takes no more memory than it has bytes.

use cofferdam_backend::Reader;
use std::fs::File;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Most files are smaller.
const FIRST_BYTES: usize = 16 << 10;

/// From here on, larger pieces are not quicker. Twice as much is in memory: one piece is read while one is written.
const MOST_BYTES: usize = 512 << 10;

/// Writes all that comes to a file that was just opened, and says how much it was.
pub(crate) async fn pour(mut content: Reader, file: File) -> io::Result<(u64, File)> {
    let mut file = tokio::fs::File::from_std(file);
    let (mut piece, mut most, mut written) = (Vec::new(), FIRST_BYTES, 0);
    loop {
        piece.clear();
        piece.reserve_exact(most);
        let read = (&mut content).take(most as u64).read_to_end(&mut piece).await?;
        file.write_all(&piece).await?;
        written += read as u64;
        if read < most {
            break;
        }
        most = (most * 4).min(MOST_BYTES);
    }
    file.flush().await?;
    Ok((written, file.into_std().await))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read, Seek};
    use tokio::io::AsyncRead;

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
            let (written, mut file) = pour(Box::new(content), scratch()).await.unwrap();
            let mut found = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut found).unwrap();
            assert_eq!((written as usize, found), (2 * size, [bytes.clone(), bytes].concat()), "{size}");
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
        let error = pour(Box::new(content), scratch()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
