//! Streams between the host and descriptors inside.

use super::Out;
use super::files::NewFile;
use crate::protocol::{Answer, CHUNK, Failure, Kind, Step, WINDOW, credit, credited, frame};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

/// From a descriptor to the host.
#[derive(Debug)]
struct Source {
    fd: Rc<OwnedFd>,
    credit: u32,
    /// Read only where there is room for so much.
    least: u32,
}

/// An instance of inotify hands out whole events or nothing: the longest, with the longest of names, fits many times.
const LEAST_OF_EVENTS: u32 = 4096;

/// From the host to a descriptor.
#[derive(Debug)]
struct Sink {
    fd: Rc<OwnedFd>,
    pending: Vec<u8>,
    ends: bool,
    is_socket: bool,
}

/// A file that the host is writing, and the request that is answered at its end.
#[derive(Debug)]
struct Writing {
    number: u32,
    file: NewFile,
}

#[derive(Debug, Default)]
pub(super) struct Channels {
    sources: BTreeMap<u32, Source>,
    sinks: BTreeMap<u32, Sink>,
    files: BTreeMap<u32, Writing>,
}

impl Channels {
    pub(super) fn add_source(&mut self, channel: u32, fd: Rc<OwnedFd>) {
        self.sources.insert(channel, Source { fd, credit: WINDOW, least: 1 });
    }

    pub(super) fn add_events(&mut self, channel: u32, fd: OwnedFd) {
        self.sources.insert(channel, Source { fd: fd.into(), credit: WINDOW, least: LEAST_OF_EVENTS });
    }

    /// The instance whose events come on a channel.
    pub(super) fn events(&self, channel: u32) -> Result<BorrowedFd<'_>, Errno> {
        let source = self.sources.get(&channel).filter(|source| source.least == LEAST_OF_EVENTS);
        source.map(|source| source.fd.as_fd()).ok_or(Errno::BADF)
    }

    pub(super) fn add_sink(&mut self, channel: u32, fd: Rc<OwnedFd>, is_socket: bool) {
        self.sinks.insert(channel, Sink { fd, pending: Vec::new(), ends: false, is_socket });
    }

    pub(super) fn add_file(&mut self, channel: u32, number: u32, file: NewFile) {
        self.files.insert(channel, Writing { number, file });
    }

    /// Those that the host has room for.
    pub(super) fn sources(&self) -> impl Iterator<Item = (u32, BorrowedFd<'_>)> {
        let ready = self.sources.iter().filter(|(_, source)| source.credit >= source.least);
        ready.map(|(channel, source)| (*channel, source.fd.as_fd()))
    }

    /// All of them: one that nobody reads any more tells by an error.
    pub(super) fn sinks(&self) -> impl Iterator<Item = (u32, BorrowedFd<'_>, PollFlags)> {
        self.sinks.iter().filter_map(|(channel, sink)| {
            let wanted = match sink.pending.is_empty() {
                // A socket or a terminal that hung up is its reader's affair, and would tell so again and again.
                true if sink.is_socket => return None,
                true => PollFlags::empty(),
                false => PollFlags::OUT,
            };
            Some((*channel, sink.fd.as_fd(), wanted))
        })
    }

    pub(super) fn read(&mut self, channel: u32, out: &mut Out) {
        let Some(source) = self.sources.get_mut(&channel) else { return };
        let mut buffer = [0; CHUNK];
        let room = buffer.len().min(source.credit as usize);
        match rustix::io::read(&*source.fd, &mut buffer[..room]) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The last holder of a terminal's other side is gone: EIO, which is its end.
            Ok(0) | Err(_) => {
                self.sources.remove(&channel);
                out.signal(Kind::Eof, channel);
            }
            Ok(read) => {
                source.credit -= read as u32;
                out.push(frame(Kind::Data, channel, &buffer[..read]));
            }
        }
    }

    pub(super) fn write(&mut self, channel: u32, broken: bool, out: &mut Out) {
        let Some(sink) = self.sinks.get_mut(&channel) else { return };
        if !broken && sink.pending.is_empty() {
            return;
        }
        let written = match broken {
            true => Err(Errno::PIPE),
            false => rustix::io::write(&*sink.fd, &sink.pending),
        };
        match written {
            Ok(written) => {
                sink.pending.drain(..written);
                out.push(credit(channel, written as u32));
                self.end_sink(channel);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => {
                self.sinks.remove(&channel);
                out.signal(Kind::Close, channel);
            }
        }
    }

    /// Closes a sink of which everything is written and nothing more will come.
    fn end_sink(&mut self, channel: u32) {
        if self.sinks.get(&channel).is_some_and(|sink| sink.ends && sink.pending.is_empty())
            && let Some(sink) = self.sinks.remove(&channel)
            && sink.is_socket
        {
            let _ = shutdown(&*sink.fd, Shutdown::Write);
        }
    }

    pub(super) fn take(&mut self, kind: Kind, channel: u32, content: Vec<u8>, out: &mut Out) {
        match kind {
            Kind::Data => {
                if let Some(sink) = self.sinks.get_mut(&channel) {
                    sink.pending.extend_from_slice(&content);
                    self.write(channel, false, out);
                }
            }
            Kind::Eof => {
                if let Some(sink) = self.sinks.get_mut(&channel) {
                    sink.ends = true;
                    self.end_sink(channel);
                }
            }
            Kind::Close => drop(self.sources.remove(&channel)),
            Kind::Credit => {
                if let Some(source) = self.sources.get_mut(&channel) {
                    source.credit = source.credit.saturating_add(credited(&content));
                }
            }
            Kind::Message => {}
        }
    }

    /// Takes what is for a file that the host writes; `false` if it is not.
    pub(super) fn take_file(&mut self, kind: Kind, channel: u32, content: &[u8], out: &mut Out) -> bool {
        let Some(writing) = self.files.get_mut(&channel) else { return false };
        let done = match kind {
            Kind::Data => match writing.file.write(content) {
                Ok(()) => {
                    out.push(credit(channel, content.len() as u32));
                    return true;
                }
                Err(errno) => Err(errno),
            },
            Kind::Eof => writing.file.finish(),
            // The host could not read on: what was written so far is dropped with it.
            _ => Err(Errno::CANCELED),
        };
        let number = writing.number;
        self.files.remove(&channel);
        let failed = |errno: Errno| Failure { step: Step::File, errno: errno.raw_os_error() };
        out.reply(number, done.map(|bytes| Answer::Written { bytes }).map_err(failed));
        true
    }
}
