//! Decompression of input streams.
//!
//! Compression is detected by the first bytes: gzip starts with `1f 8b`, a zstd frame with `28 b5
//! 2f fd`, a skippable zstd frame with `5x 2a 4d 18`. File names are ignored. Both decoders are
//! pure Rust; a gzip file may have several members and a zstd file several frames, checksums are
//! verified, and a truncated file is an error.

#[cfg(any(feature = "gzip", feature = "zstd"))]
use std::io::BufReader;
use std::io::{self, Cursor, Read};

use super::Compression;
use crate::corpus::assembly::Extent;

/// Compressed bytes per read.
#[cfg(any(feature = "gzip", feature = "zstd"))]
const PACKED_BLOCK: usize = 1 << 16;

/// Reader that counts the bytes read, before decompression.
struct Counted<R> {
    inner: R,
    extent: Extent,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.extent.advance(n);
        Ok(n)
    }
}

/// Reader of decompressed bytes.
pub(crate) struct Source<'a> {
    pub(crate) reader: Box<dyn Read + 'a>,
    pub(super) compression: Compression,
    /// Progress in compressed bytes.
    pub(super) extent: Extent,
}

impl<'a> Source<'a> {
    /// Detects the compression of `reader`, whose length in bytes is `size` if known.
    ///
    /// # Errors
    /// Those of `reader`; `Unsupported` if the decoder is not compiled in.
    pub(crate) fn new<R: Read + 'a>(reader: R, size: Option<u64>) -> io::Result<Self> {
        let extent = Extent::of(size);
        let mut counted = Counted { inner: reader, extent: extent.clone() };
        let mut head = Vec::with_capacity(4);
        counted.by_ref().take(4).read_to_end(&mut head)?;
        let compression = recognise(&head);
        let whole = Cursor::new(head).chain(counted);
        let reader = match compression {
            Compression::None => Ok(Box::new(whole) as Box<dyn Read + 'a>),
            Compression::Gzip => gzip(whole),
            Compression::Zstd => zstd(whole),
        }?;
        Ok(Self { reader, compression, extent })
    }
}

fn recognise(head: &[u8]) -> Compression {
    match head {
        [0x1f, 0x8b, ..] => Compression::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Compression::Zstd,
        _ => Compression::None,
    }
}

#[cfg(feature = "gzip")]
fn gzip<'a, R: Read + 'a>(packed: R) -> io::Result<Box<dyn Read + 'a>> {
    let buffered = BufReader::with_capacity(PACKED_BLOCK, packed);
    Ok(Box::new(flate2::bufread::MultiGzDecoder::new(buffered)))
}

#[cfg(not(feature = "gzip"))]
fn gzip<'a, R: Read + 'a>(_: R) -> io::Result<Box<dyn Read + 'a>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(feature = "zstd")]
fn zstd<'a, R: Read + 'a>(packed: R) -> io::Result<Box<dyn Read + 'a>> {
    let buffered = BufReader::with_capacity(PACKED_BLOCK, packed);
    Ok(Box::new(frames::Frames::new(buffered)))
}

#[cfg(not(feature = "zstd"))]
fn zstd<'a, R: Read + 'a>(_: R) -> io::Result<Box<dyn Read + 'a>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(feature = "zstd")]
mod frames {
    use std::error::Error;
    use std::io::{self, BufRead, Read};

    use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
    use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

    use crate::checksum::Xxh64;

    /// Decoder of a sequence of frames; skippable frames are skipped.
    pub(super) struct Frames<R> {
        packed: R,
        decoder: FrameDecoder,
        checksum: Xxh64,
        inside: bool,
    }

    impl<R: BufRead> Frames<R> {
        pub(super) fn new(packed: R) -> Self {
            Self { packed, decoder: FrameDecoder::new(), checksum: Xxh64::new(), inside: false }
        }

        /// Starts the next frame; returns whether there is one.
        fn enter(&mut self) -> io::Result<bool> {
            if self.packed.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.init(&mut self.packed) {
                Ok(()) => {
                    self.inside = true;
                    self.checksum = Xxh64::new();
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => self.skip(u64::from(length))?,
                Err(error) => return Err(explain(error)),
            }
            Ok(true)
        }

        fn skip(&mut self, length: u64) -> io::Result<()> {
            let skipped = io::copy(&mut self.packed.by_ref().take(length), &mut io::sink())?;
            if skipped < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
        }

        fn leave(&mut self) -> io::Result<()> {
            self.inside = false;
            // A frame stores the lower half of the checksum, if it has one.
            let differs = |stored| stored != self.checksum.digest() as u32;
            if self.decoder.get_checksum_from_data().is_some_and(differs) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "checksum differs"));
            }
            Ok(())
        }
    }

    impl<R: BufRead> Read for Frames<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if buffer.is_empty() {
                return Ok(0);
            }
            loop {
                if !self.inside {
                    if !self.enter()? {
                        return Ok(0);
                    }
                } else if self.decoder.can_collect() > 0 {
                    let n = self.decoder.read(buffer)?;
                    self.checksum.update(&buffer[..n]);
                    return Ok(n);
                } else if self.decoder.is_finished() {
                    self.leave()?;
                } else {
                    let one = BlockDecodingStrategy::UptoBlocks(1);
                    self.decoder.decode_blocks(&mut self.packed, one).map_err(explain)?;
                }
            }
        }
    }

    /// Converts an error, so that truncated data (`UnexpectedEof`) differ from invalid data.
    fn explain(error: FrameDecoderError) -> io::Error {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(inner) = cause {
            match inner.downcast_ref::<io::Error>() {
                Some(io) => return io::Error::new(io.kind(), error.to_string()),
                None => cause = inner.source(),
            }
        }
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}
