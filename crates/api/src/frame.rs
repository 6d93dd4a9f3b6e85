//! Frames: the bytes of `POST /sessions/{id}/calls`, in both directions. Each has a kind and a length, and a stream
//! without the last one was cut off, whatever came before.
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | kind: 1 a word (JSON), 2 content, 3 the end |
//! | 4 | length of what follows, big-endian |

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// JSON: a call, or an answer.
    Word(Vec<u8>),
    Content(Vec<u8>),
    /// Nothing comes after this.
    End,
}

/// Larger than any word that a well-behaved side says: a list of files, or what a process wrote.
pub const MAX_WORD_BYTES: usize = 16 << 20;

/// As much content as a frame may have.
pub const MAX_CONTENT_BYTES: usize = 1 << 20;

const WORD: u8 = 1;
const CONTENT: u8 = 2;
const END: u8 = 3;
const HEAD_BYTES: usize = 5;

/// A word as a frame; none where it is too long.
pub fn word(bytes: &[u8]) -> Option<Vec<u8>> {
    (bytes.len() <= MAX_WORD_BYTES).then(|| frame(WORD, bytes))
}

/// Content as frames.
pub fn content(bytes: &[u8]) -> Vec<u8> {
    bytes.chunks(MAX_CONTENT_BYTES).flat_map(|piece| frame(CONTENT, piece)).collect()
}

pub fn end() -> Vec<u8> {
    frame(END, &[])
}

fn frame(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(HEAD_BYTES + bytes.len());
    frame.push(kind);
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(bytes);
    frame
}

/// Reads frames out of bytes as they come. It keeps no more than one frame and what came with its last piece.
#[derive(Debug, Default)]
pub struct Frames {
    rest: Vec<u8>,
    is_over: bool,
}

impl Frames {
    pub fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// The next frame, if all of it is there. What is no frame is an error, and stays one.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, String> {
        if self.is_over {
            return match self.rest.is_empty() {
                true => Ok(None),
                false => Err("there are bytes after the end".to_owned()),
            };
        }
        let Some((kind, length)) = self.rest.first_chunk::<HEAD_BYTES>().map(|head| {
            let [kind, length @ ..] = *head;
            (kind, u32::from_be_bytes(length) as usize)
        }) else {
            return Ok(None);
        };
        let most = match kind {
            WORD => MAX_WORD_BYTES,
            CONTENT => MAX_CONTENT_BYTES,
            END => 0,
            _ => return Err(format!("there is no frame of kind {kind}")),
        };
        if length > most {
            return Err(format!("a frame of kind {kind} has {length} bytes, and may have {most}"));
        }
        if self.rest.len() < HEAD_BYTES + length {
            return Ok(None);
        }
        let after = self.rest.split_off(HEAD_BYTES + length);
        let mut bytes = std::mem::replace(&mut self.rest, after);
        bytes.drain(..HEAD_BYTES);
        Ok(Some(match kind {
            WORD => Frame::Word(bytes),
            CONTENT => Frame::Content(bytes),
            _ => {
                self.is_over = true;
                Frame::End
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], step: usize) -> Result<Vec<Frame>, String> {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for piece in bytes.chunks(step) {
            frames.push(piece);
            while let Some(frame) = frames.next_frame()? {
                found.push(frame);
            }
        }
        Ok(found)
    }

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let bytes = [word(b"{}").unwrap(), content(b"abc"), content(b""), end()].concat();
        let expected = vec![Frame::Word(b"{}".to_vec()), Frame::Content(b"abc".to_vec()), Frame::End];
        for step in 1..bytes.len() {
            assert_eq!(all(&bytes, step), Ok(expected.clone()), "{step}");
        }
        let large = vec![7; MAX_CONTENT_BYTES + 1];
        let pieces = all(&content(&large), 4096).unwrap();
        assert_eq!(pieces, [Frame::Content(large[1..].to_vec()), Frame::Content(vec![7])]);
        assert!(word(&vec![b' '; MAX_WORD_BYTES + 1]).is_none());
    }

    #[test]
    fn what_is_no_frame_is_refused_before_it_is_kept() {
        let head = |kind: u8, length: u32| [&[kind][..], &length.to_be_bytes()].concat();
        for bytes in [
            head(0, 0),
            head(9, 1),
            head(WORD, MAX_WORD_BYTES as u32 + 1),
            head(CONTENT, MAX_CONTENT_BYTES as u32 + 1),
            head(CONTENT, u32::MAX),
            head(END, 1),
            [end(), vec![0]].concat(),
        ] {
            assert!(all(&bytes, 64).is_err(), "{bytes:?}");
        }
        assert_eq!(all(&head(WORD, 3), 64), Ok(Vec::new()), "it is not there yet");
    }
}
