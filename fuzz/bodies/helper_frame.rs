//! What the host reads from the helper in a container, which hostile code may have taken over.

use cofferdam_guest::inotify::take;
use cofferdam_guest::protocol::{Event, Frame, Frames, Kind, MAX_FRAME, credited, frame};

/// The first byte is the size of the pieces that the rest comes in.
pub(crate) fn run(data: &[u8]) {
    let Some((piece, bytes)) = data.split_first() else { return };
    let (found, is_broken) = all(bytes, usize::from(*piece).max(1));
    // How it is cut into pieces says nothing.
    assert_eq!((&found, is_broken), (&all(bytes, 1).0, all(bytes, 1).1));
    let mut written = Vec::new();
    for Frame { kind, channel, content } in &found {
        assert!(content.len() <= MAX_FRAME);
        written.extend(frame(*kind, *channel, content));
        match kind {
            Kind::Message => drop(serde_json::from_slice::<Event>(content)),
            Kind::Credit => drop(credited(content)),
            Kind::Data => events(content, usize::from(*piece).max(1)),
            _ => {}
        }
    }
    // There is one spelling of a frame, so that nothing can hide in another.
    assert_eq!(written, bytes[..written.len()]);
}

/// Where a channel is that of a watch, its bytes are events: how they are cut says nothing either, and no name leads out.
fn events(bytes: &[u8], piece: usize) {
    let all = |piece: usize| {
        let (mut buffer, mut found) = (Vec::new(), Vec::new());
        for part in bytes.chunks(piece) {
            buffer.extend_from_slice(part);
            match take(&mut buffer) {
                Ok(told) => found.extend(told),
                Err(_) => return None,
            }
        }
        Some((found, buffer))
    };
    let found = all(piece);
    assert_eq!(found, all(bytes.len().max(1)));
    for told in found.into_iter().flat_map(|(found, _)| found) {
        assert!(!told.name.contains(&b'/') && !told.name.contains(&0) && told.name != b"..");
    }
}

fn all(bytes: &[u8], piece: usize) -> (Vec<Frame>, bool) {
    let (mut frames, mut found) = (Frames::default(), Vec::new());
    for part in bytes.chunks(piece) {
        frames.push(part);
        loop {
            match frames.take() {
                Ok(Some(frame)) => found.push(frame),
                Ok(None) => break,
                Err(_) => return (found, true),
            }
        }
    }
    (found, false)
}
