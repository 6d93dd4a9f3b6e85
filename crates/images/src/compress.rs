//! What bytes are compressed with is seen from the bytes, never believed from a name.

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Read};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Frames of zstd that hold no data begin with one of sixteen numbers.
const ZSTD_SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// Large enough that decoders and hashes are busy, small enough for a cache.
const BUFFER: usize = 128 << 10;

/// Bytes as they were before they were compressed, if they were.
#[allow(missing_debug_implementations, reason = "its decoders have none")]
pub enum Decoded<R: Read> {
    Plain(BufReader<R>),
    Gzip(Box<MultiGzDecoder<BufReader<R>>>),
    Zstd(Box<Zstd<BufReader<R>>>),
}

impl<R: Read> Decoded<R> {
    pub fn new(source: R) -> io::Result<Self> {
        let mut source = BufReader::with_capacity(BUFFER, source);
        let begin = source.fill_buf()?;
        Ok(if begin.starts_with(&GZIP) {
            Self::Gzip(Box::new(MultiGzDecoder::new(source)))
        } else if is_zstd(begin) {
            Self::Zstd(Box::new(Zstd { source, decoder: FrameDecoder::new(), is_open: false }))
        } else {
            Self::Plain(source)
        })
    }

    /// Whether bytes that are not compressed begin so.
    pub fn begins_with(&mut self, begin: &[u8]) -> io::Result<bool> {
        match self {
            Self::Plain(source) => Ok(source.fill_buf()?.starts_with(begin)),
            Self::Gzip(_) | Self::Zstd(_) => Ok(false),
        }
    }

    pub(crate) fn is_compressed(&self) -> bool {
        !matches!(self, Self::Plain(_))
    }

    /// The source, with whatever the decoder did not want.
    pub(crate) fn into_inner(self) -> BufReader<R> {
        match self {
            Self::Plain(source) => source,
            Self::Gzip(decoder) => decoder.into_inner(),
            Self::Zstd(decoder) => decoder.source,
        }
    }
}

fn is_zstd(begin: &[u8]) -> bool {
    let is_skippable = |first: u8, rest: &[u8]| first & 0xf0 == 0x50 && rest.starts_with(&ZSTD_SKIPPABLE);
    begin.starts_with(&ZSTD) || begin.split_first().is_some_and(|(&first, rest)| is_skippable(first, rest))
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(source) => source.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
        }
    }
}

/// Frame after frame: a layer may have many, and some that hold no data.
#[allow(missing_debug_implementations, reason = "its decoder has none")]
pub struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    is_open: bool,
}

impl<R: BufRead> Zstd<R> {
    /// Opens the next frame that has data; false at the end of the source.
    fn open(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(invalid(error)),
            }
        }
    }

    fn close(&mut self) -> io::Result<()> {
        self.is_open = false;
        match self.decoder.get_checksum_from_data() {
            Some(promised) if self.decoder.get_calculated_checksum() != Some(promised) => {
                Err(invalid("the checksum of a zstd frame is wrong"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.is_open {
                self.is_open = self.open()?;
                if !self.is_open {
                    return Ok(0);
                }
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let wanted = BlockDecodingStrategy::UptoBytes(buffer.len());
                self.decoder.decode_blocks(&mut self.source, wanted).map_err(invalid)?;
            }
            let n = self.decoder.read(buffer)?;
            if n > 0 {
                return Ok(n);
            }
            self.close()?;
        }
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn decoded(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Decoded::new(bytes)?.read_to_end(&mut out).map(|_| out)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn each_form_is_seen_and_read_to_its_end() {
        let text = b"cofferdam ".repeat(100_000);
        let skippable = [&[0x53][..], &ZSTD_SKIPPABLE, &[3, 0, 0, 0], b"abc"].concat();
        let (gzip, zstd) = (gzip(&text), zstd(&text));
        let twice = [&text[..], &text].concat();
        assert_eq!(decoded(&text).unwrap(), text);
        assert_eq!(decoded(&[&gzip[..], &gzip].concat()).unwrap(), twice);
        assert_eq!(decoded(&[&zstd[..], &skippable, &zstd].concat()).unwrap(), twice);
        assert_eq!(decoded(&[&skippable[..], &zstd].concat()).unwrap(), text);
        assert_eq!(decoded(b"").unwrap(), b"");
    }

    #[test]
    fn what_was_cut_or_damaged_is_an_error() {
        for whole in [gzip(&[7; 5000]), zstd(&[7; 5000])] {
            assert!(decoded(&whole[..whole.len() - 5]).is_err());
            let mut damaged = whole.clone();
            let last = damaged.len() - 3;
            damaged[last] ^= 0xff;
            assert!(decoded(&damaged).is_err());
        }
    }
}
