//! What the host reads from an interpreter, whose process is the user's.

use cofferdam_kernels::frame::{FRAME_MAX_BYTES, Frame, FrameError, Frames};

/// The first byte is the size of the pieces that the rest comes in.
pub(crate) fn run(data: &[u8]) {
    let Some((piece, bytes)) = data.split_first() else { return };
    let (found, error) = all(bytes, usize::from(*piece).max(1));
    // How it is cut into pieces says nothing.
    assert_eq!((&found, &error), (&all(bytes, 1).0, &all(bytes, 1).1));
    let shown = found.iter().filter_map(|frame| match frame {
        Frame::Shown(result) => Some(result.data.values().map(String::len).sum::<usize>()),
        _ => None,
    });
    // Nothing grows on the way: an escape is longer than what it stands for.
    assert!(shown.sum::<usize>() <= bytes.len());
}

fn all(bytes: &[u8], piece: usize) -> (Vec<Frame>, Option<FrameError>) {
    let (mut frames, mut found) = (Frames::default(), Vec::new());
    for part in bytes.chunks(piece) {
        frames.push(part);
        loop {
            match frames.next_frame() {
                Ok(Some(frame)) => found.push(frame),
                Ok(None) => break,
                Err(error) => return (found, Some(error)),
            }
        }
        assert!(frames.held_bytes() <= FRAME_MAX_BYTES + piece);
    }
    (found, None)
}
