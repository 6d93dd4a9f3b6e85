//! Bytes into a file of a sandbox, in pieces that are worth a turn of another thread.
//!
//! A write to a file is done by a thread that may wait for it. The way there and back costs more than to write a few
//! kibibytes, so what is large goes in large pieces; what is small takes no more memory than it has bytes. No byte is
//! copied to get there: the piece itself goes, and comes back empty when the next one is full.
//!
//! On a disk, room for a large file is taken before it is written. The kernel would otherwise look for it when it writes
//! the file out, and where much is to be written out, it has whoever writes wait for that.

use cofferdam_backend::Reader;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::task::{JoinHandle, spawn_blocking};

/// Most files are smaller.
const FIRST_BYTES: usize = 16 << 10;

/// From here on, larger pieces are not quicker. Twice as much is in memory: one piece is read while one is written.
const MOST_BYTES: usize = 512 << 10;

/// Taken ahead at most: what else is written to the disk cannot have it for as long as a file is on its way.
const MOST_ROOM: u64 = 16 << 20;

/// What a file is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Room there is memory, which taking it would fill with zeroes first.
    Memory,
    Disk,
}

/// Writes all that comes to a file that was just opened, and says how much it was. What is given along is held until
/// the last write has ended, also where nobody waits for that any more.
pub(crate) async fn pour<H: Send + 'static>(
    mut content: Reader,
    file: File,
    place: Place,
    held: H,
) -> io::Result<(u64, Arc<File>)> {
    let (mut piece, mut most) = (Vec::new(), FIRST_BYTES);
    let target = Target { file: Arc::new(file), place, written: 0, room: 0, _held: held };
    let mut writing = Writing::None(target, Vec::new());
    loop {
        piece.clear();
        piece.reserve_exact(most);
        let read = (&mut content).take(most as u64).read_to_end(&mut piece).await;
        // However that went, nothing is left behind that still writes.
        let (target, free) = writing.end().await?;
        let is_last = read? < most;
        writing = Writing::begin(target, mem::replace(&mut piece, free), is_last);
        if is_last {
            let (target, _) = writing.end().await?;
            return Ok((target.written, Arc::clone(&target.file)));
        }
        most = (most * 4).min(MOST_BYTES);
    }
}

/// A file that is being written, from its beginning. Room that it does not need is given back at the latest when it goes.
struct Target<H> {
    file: Arc<File>,
    place: Place,
    written: u64,
    /// Where what was taken ahead ends.
    room: u64,
    /// Let go of behind everything else.
    _held: H,
}

impl<H> Target<H> {
    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.take_room(piece.len());
        (&*self.file).write_all(piece)?;
        self.written += piece.len() as u64;
        Ok(())
    }

    /// As much again as there is of the file by then, so that none has more than twice its bytes.
    fn take_room(&mut self, piece: usize) {
        let end = self.written + piece as u64;
        if self.place == Place::Memory || piece < MOST_BYTES || end <= self.room {
            return;
        }
        self.room = end + end.min(MOST_ROOM);
        // Where there is not so much left, the write says whether it is enough.
        let _ = fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.written, self.room - self.written);
    }

    fn give_room_back(&mut self) -> io::Result<()> {
        if mem::take(&mut self.room) > self.written { self.file.set_len(self.written) } else { Ok(()) }
    }
}

impl<H> Drop for Target<H> {
    fn drop(&mut self) {
        // It was cut off. What it has is not believed anyway.
        let _ = self.give_room_back();
    }
}

/// The piece before the one that is being read.
enum Writing<H> {
    None(Target<H>, Vec<u8>),
    Begun(JoinHandle<io::Result<(Target<H>, Vec<u8>)>>),
}

impl<H: Send + 'static> Writing<H> {
    fn begin(mut target: Target<H>, piece: Vec<u8>, is_last: bool) -> Self {
        if piece.is_empty() && target.room == 0 {
            return Self::None(target, piece);
        }
        Self::Begun(spawn_blocking(move || {
            target.write(&piece)?;
            if is_last {
                target.give_room_back()?;
            }
            Ok((target, piece))
        }))
    }

    /// The file, and the piece to be filled anew.
    async fn end(self) -> io::Result<(Target<H>, Vec<u8>)> {
        match self {
            Self::None(target, piece) => Ok((target, piece)),
            Self::Begun(writing) => writing.await.map_err(io::Error::other)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read, Seek};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt;
    use std::sync::Arc;
    use tokio::io::AsyncRead;
    use tokio::sync::Notify;

    fn scratch() -> File {
        let name = rustix::fs::memfd_create("pour", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        File::from(name)
    }

    fn taken(file: &File) -> u64 {
        file.metadata().unwrap().blocks() * 512
    }

    /// The pieces that grow, and three that do not.
    const EVEN_BYTES: usize = (16 + 64 + 256 + 3 * 512) << 10;

    #[tokio::test]
    async fn every_byte_arrives_whatever_there_is_of_them() {
        let sizes = [0, 1, FIRST_BYTES - 1, FIRST_BYTES, FIRST_BYTES + 1, 3 * MOST_BYTES + 7];
        // The last ends with a piece that is full.
        for size in sizes.into_iter().chain([EVEN_BYTES / 2]) {
            let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            // It comes in pieces of another size.
            let content = AsyncReadExt::chain(Cursor::new(bytes.clone()), Cursor::new(bytes.clone()));
            let (written, file) = pour(Box::new(content), scratch(), Place::Disk, ()).await.unwrap();
            let mut found = Vec::new();
            (&*file).rewind().unwrap();
            (&*file).read_to_end(&mut found).unwrap();
            assert_eq!((written as usize, found), (2 * size, [bytes.clone(), bytes].concat()), "{size}");
            assert_eq!(taken(&file), (2 * size as u64).next_multiple_of(4096), "{size}");
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
            _ = pour(Box::new(content), file, Place::Memory, Arc::clone(&held)) => panic!("there is more to come"),
            () = asked.notified() => {}
        }
        assert_eq!(Arc::strong_count(&held), 2, "it is being written");
        let read = spawn_blocking(move || reader.read_to_end(&mut Vec::new()));
        assert_eq!(read.await.unwrap().unwrap(), 5 * FIRST_BYTES);
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn room_is_taken_on_a_disk_alone_and_given_back() {
        let even = EVEN_BYTES as u64;
        // The third of the full pieces did not fit into what was taken with the first.
        for (place, expected) in [(Place::Memory, even), (Place::Disk, 2 * even)] {
            let (held, asked) = (Arc::new(()), Arc::new(Notify::new()));
            let content = AsyncReadExt::chain(Cursor::new(vec![7; EVEN_BYTES]), Silent(Arc::clone(&asked)));
            let file = scratch();
            let seen = file.try_clone().unwrap();
            {
                let mut pouring = std::pin::pin!(pour(Box::new(content), file, place, Arc::clone(&held)));
                tokio::select! {
                    _ = &mut pouring => panic!("there is more to come"),
                    () = asked.notified() => {}
                }
                while seen.metadata().unwrap().len() < even {
                    tokio::task::yield_now().await;
                }
                assert_eq!(taken(&seen), expected, "{place:?}");
            }
            while Arc::strong_count(&held) > 1 {
                tokio::task::yield_now().await;
            }
            assert_eq!((seen.metadata().unwrap().len(), taken(&seen)), (even, even), "{place:?}");
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
        let error = pour(Box::new(content), file, Place::Disk, ()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(seen.metadata().unwrap().len(), FIRST_BYTES as u64, "the piece before is whole");
    }

    #[tokio::test]
    async fn what_does_not_fit_is_an_error() {
        for size in [1, 3 * MOST_BYTES] {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let error = pour(Box::new(Cursor::new(vec![7; size])), full, Place::Disk, ()).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{size}");
        }
    }
}
