//! Taking an image in.

use super::Store;
use super::lock::Lock;
use super::record::{Index, LayerRecord, Record, sync_folder, write_synced};
use super::staging::Staging;
use crate::archive::{self, Blobs, FolderBlobs, FoundImage, LayerBlob, TarIndex, is_archive_name};
use crate::compress::Decoded;
use crate::config::ImageConfig;
use crate::digest::Hashing;
use crate::folder::FolderTar;
use crate::limits::{Budget, Limited};
use crate::tar::{Streamed, TarReader};
use crate::unpack::{Unpacked, Unpacker};
use crate::{Digest, ImageError, ImageName, ImportLimits, Result};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Enough to have the first entry's name, with the headers that may be before it.
const FIRST_BYTES: usize = 16 << 10;

/// What is to be taken in.
pub struct Import<'i> {
    pub source: &'i Path,
    pub name: &'i ImageName,
    pub limits: ImportLimits,
    /// Called with the bytes that were read since the last call.
    pub progress: &'i dyn Fn(u64),
}

impl std::fmt::Debug for Import<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import")
            .field("source", &self.source)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    pub image: Record,
    /// Layers that were in the store before.
    pub layers_shared: usize,
}

/// Layers of an image that is being taken in.
struct Making<'m> {
    store: &'m Store,
    staging: Staging,
    budget: Budget,
    progress: &'m dyn Fn(u64),
    /// New ones, each in a folder of the staging named by its digest.
    made: HashMap<Digest, LayerRecord>,
    /// Those that were there, held so that nobody removes them.
    held: Vec<Lock>,
}

impl Store {
    /// Takes an image in, and gives it a name. On an error nothing has changed.
    pub fn import(&self, import: &Import<'_>) -> Result<Imported> {
        let Import { source, name, limits, progress } = *import;
        self.take_in(name, limits, progress, |making| {
            let metadata = fs::metadata(source).map_err(|error| ImageError::source(source, error))?;
            if metadata.is_dir() { making.folder(source, name) } else { making.file(source, name) }
        })
    }

    /// The same for an archive that comes as a stream. One that ends with an error was cut, and is not taken in.
    pub fn import_stream(
        &self,
        stream: &mut dyn Read,
        name: &ImageName,
        limits: ImportLimits,
        progress: &dyn Fn(u64),
    ) -> Result<Imported> {
        let cut = |error: io::Error| ImageError::refused("the archive", error.to_string());
        self.take_in(name, limits, progress, |making| making.archive(stream, None, &cut, name))
    }

    fn take_in(
        &self,
        name: &ImageName,
        limits: ImportLimits,
        progress: &dyn Fn(u64),
        read: impl FnOnce(&mut Making<'_>) -> Result<Record>,
    ) -> Result<Imported> {
        self.prepare()?;
        self.sweep_staging()?;
        let mut making = Making {
            store: self,
            staging: self.stage()?,
            budget: Budget::new(limits),
            progress,
            made: HashMap::new(),
            held: Vec::new(),
        };
        let image = read(&mut making)?;
        let layers_shared = making.held.len();
        making.publish(&image, name)?;
        // The name may have had another image before.
        self.collect_now()?;
        Ok(Imported { image, layers_shared })
    }
}

impl Making<'_> {
    fn folder(&mut self, source: &Path, name: &ImageName) -> Result<Record> {
        let blobs = FolderBlobs::open(source)?;
        if blobs.is_image() {
            return self.image(archive::find(&blobs, name)?, &blobs, "oci layout");
        }
        let own = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if own(&self.store.folder).starts_with(own(source)) {
            let why = "the image store lies in it; set COFFERDAM_IMAGES to another place";
            return Err(ImageError::refused(source.display().to_string(), why));
        }
        let mut tar = FolderTar::open(source)?;
        let (mut layer, found) =
            self.unpack_root(&mut Watched { inner: &mut tar, progress: self.progress })?;
        layer.left_out += tar.left_out();
        self.root(found, layer, "folder")
    }

    fn file(&mut self, source: &Path, name: &ImageName) -> Result<Record> {
        let unreadable = |error: io::Error| ImageError::source(source, error);
        let file = File::open(source).map_err(unreadable)?;
        let is_plain_file = file.metadata().map_err(unreadable)?.is_file();
        let again = if is_plain_file { Some(file.try_clone().map_err(unreadable)?) } else { None };
        self.archive(&mut &file, again, &unreadable, name)
    }

    /// An archive from its beginning. `again` is the same one, where it can be read in any order.
    fn archive(
        &mut self,
        source: &mut dyn Read,
        again: Option<File>,
        unreadable: &dyn Fn(io::Error) -> ImageError,
        name: &ImageName,
    ) -> Result<Record> {
        let mut decoded =
            Decoded::new(Watched { inner: source, progress: self.progress }).map_err(unreadable)?;
        let mut first = vec![0; FIRST_BYTES];
        let n = read_full(&mut decoded, &mut first).map_err(|error| match decoded.is_compressed() {
            true => ImageError::refused("the archive", error.to_string()),
            false => unreadable(error),
        })?;
        first.truncate(n);
        if !begins_like_an_image(&first) {
            let mut stream = io::Cursor::new(first).chain(decoded);
            let (layer, found) = self.unpack_root(&mut stream)?;
            return self.root(found, layer, "root archive");
        }
        let archive = match again.filter(|_| !decoded.is_compressed()) {
            Some(file) => file,
            None => self.stage_archive(&mut io::Cursor::new(first).chain(decoded))?,
        };
        let blobs = TarIndex::new(archive)?;
        self.image(archive::find(&blobs, name)?, &blobs, "image archive")
    }

    /// Entries are read in any order, so an archive that came as a stream has to lie somewhere.
    fn stage_archive(&mut self, stream: &mut dyn Read) -> Result<File> {
        let path = self.staging.path().join("archive");
        let failed = |error| self.store.failed("keeping the archive for a moment", error);
        let mut file = File::options().create_new(true).read(true).write(true).open(&path).map_err(failed)?;
        let mut limited = Limited::new(stream, self.budget.bytes_left());
        let mut buffer = vec![0; 128 << 10];
        loop {
            let n = match limited.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if crate::limits::is_too_large(&error) => return Err(self.budget.too_large()),
                Err(error) => return Err(ImageError::refused("the archive", error.to_string())),
            };
            io::Write::write_all(&mut file, &buffer[..n]).map_err(failed)?;
        }
        file.rewind().map_err(failed)?;
        Ok(file)
    }

    /// An image with a configuration: its layers by their digests, those that are there not again.
    fn image(&mut self, found: FoundImage, blobs: &dyn Blobs, source: &str) -> Result<Record> {
        let mut layers = Vec::with_capacity(found.layers.len());
        for blob in &found.layers {
            layers.push(self.layer(blob, blobs)?);
        }
        Ok(self.record(Digest::of(&found.config_bytes), found.config, layers, source))
    }

    fn layer(&mut self, blob: &LayerBlob, blobs: &dyn Blobs) -> Result<LayerRecord> {
        if let Some(record) = self.made.get(&blob.diff_id) {
            return Ok(record.clone());
        }
        if let Some(lock) = self.store.hold(blob.diff_id)? {
            self.held.push(lock);
            return self.store.layer_record(blob.diff_id);
        }
        let broken = |error: io::Error| ImageError::refused(blob.name.clone(), error.to_string());
        let progress = self.progress;
        let source = Hashing::new(Watched { inner: blobs.open(&blob.name)?, progress });
        let mut decoded = Decoded::new(source).map_err(broken)?;
        let (unpacked, diff_id) = self.unpack(&mut decoded)?;
        // Also what comes after the end of what was compressed.
        let (digest, _, _) = read_to_end(decoded.into_inner()).map_err(broken)?;
        if let Some(expected) = blob.digest.filter(|&expected| expected != digest) {
            return Err(ImageError::Digest { what: blob.name.clone(), expected, found: digest });
        }
        if diff_id != blob.diff_id {
            let what = format!("the layer {}, uncompressed,", blob.name);
            return Err(ImageError::Digest { what, expected: blob.diff_id, found: diff_id });
        }
        self.keep(diff_id, unpacked)
    }

    /// A root filesystem that came without a configuration.
    fn root(&mut self, diff_id: Digest, unpacked: Unpacked, source: &str) -> Result<Record> {
        let layer = match self.store.hold(diff_id)? {
            Some(lock) => {
                self.held.push(lock);
                self.store.layer_record(diff_id)?
            }
            None => self.keep(diff_id, unpacked)?,
        };
        let config = ImageConfig::of_root(diff_id);
        let bytes = serde_json::to_vec(&config)
            .map_err(|error| self.store.failed("writing an image", error.into()))?;
        Ok(self.record(Digest::of(&bytes), config, vec![layer], source))
    }

    fn unpack_root(&mut self, stream: &mut dyn Read) -> Result<(Unpacked, Digest)> {
        let (unpacked, diff_id) = self.unpack(stream)?;
        if unpacked.entries == 0 {
            return Err(ImageError::refused("the root filesystem", "it is empty"));
        }
        Ok((unpacked, diff_id))
    }

    /// Unpacks one layer's archive into the staging folder's `root`.
    fn unpack(&mut self, stream: &mut dyn Read) -> Result<(Unpacked, Digest)> {
        let path = self.staging.path().join("root");
        let failed = |error: io::Error| self.store.failed("making a folder for a layer", error);
        fs::create_dir(&path).map_err(failed)?;
        let root = File::open(&path).map_err(failed)?;
        rustix::fs::fchmod(&root, rustix::fs::Mode::from_raw_mode(0o755))
            .map_err(|error| failed(error.into()))?;
        let hashing = Hashing::new(Limited::new(stream, self.budget.bytes_left()));
        let mut archive = TarReader::new(Streamed(hashing));
        let unpacked =
            Unpacker::new(&self.store.folder, root.into(), &mut self.budget).unpack(&mut archive)?;
        let (diff_id, bytes, _) = archive.into_inner().0.finish().map_err(|error| match error {
            error if crate::limits::is_too_large(&error) => self.budget.too_large(),
            error => ImageError::refused("the archive", error.to_string()),
        })?;
        self.budget.take_bytes(bytes);
        Ok((unpacked, diff_id))
    }

    /// Gives the layer that was just unpacked its name within the staging folder.
    fn keep(&mut self, diff_id: Digest, unpacked: Unpacked) -> Result<LayerRecord> {
        let failed = |error| self.store.failed("keeping a layer", error);
        let Unpacked { entries, bytes, left_out } = unpacked;
        let record = LayerRecord { diff_id, size_bytes: bytes, entries, left_out };
        let folder = self.staging.path().join(diff_id.hex());
        fs::create_dir(&folder).map_err(failed)?;
        fs::rename(self.staging.path().join("root"), folder.join("root")).map_err(failed)?;
        write_synced(&folder.join("layer.json"), &record).map_err(failed)?;
        self.made.insert(diff_id, record.clone());
        Ok(record)
    }

    fn record(&self, id: Digest, config: ImageConfig, layers: Vec<LayerRecord>, source: &str) -> Record {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Record { id, imported_at_ms: now.as_millis() as u64, source: source.to_owned(), config, layers }
    }

    /// Moves everything into its place. Until the index is written, nobody sees any of it.
    fn publish(self, image: &Record, name: &ImageName) -> Result<()> {
        let failed = |error: io::Error| self.store.failed("writing to the disk", error);
        let staged = File::open(self.staging.path()).map_err(failed)?;
        // One call for all files of all layers; a crash after the move must not find them empty.
        rustix::fs::syncfs(&staged).map_err(|error| failed(error.into()))?;
        let _lock = self.store.lock()?;
        for diff_id in self.made.keys() {
            let (from, to) = (self.staging.path().join(diff_id.hex()), self.store.layer_path(*diff_id));
            match fs::rename(from, &to) {
                // Another process was quicker; the digest says that it is the same.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty
                    ) => {}
                other => other.map_err(failed)?,
            }
        }
        sync_folder(&self.store.folder.join("layers")).map_err(failed)?;
        self.store.write_record(image)?;
        let mut index = Index::read(self.store)?;
        index.names.insert(name.to_string(), image.id);
        index.write(self.store)
    }
}

/// Whether the first entry of an archive is of an image rather than of a root filesystem.
fn begins_like_an_image(begin: &[u8]) -> bool {
    let mut archive = TarReader::new(Streamed(begin));
    archive.next_entry().is_ok_and(|entry| entry.is_some_and(|entry| is_archive_name(&entry.path)))
}

fn read_full(source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < buffer.len() {
        match source.read(&mut buffer[n..])? {
            0 => break,
            more => n += more,
        }
    }
    Ok(n)
}

fn read_to_end<R: Read>(mut source: io::BufReader<Hashing<R>>) -> io::Result<(Digest, u64, R)> {
    io::copy(&mut source, &mut io::sink())?;
    source.into_inner().finish()
}

/// Tells how far reading has come.
struct Watched<'w, R> {
    inner: R,
    progress: &'w dyn Fn(u64),
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        (self.progress)(n as u64);
        Ok(n)
    }
}
