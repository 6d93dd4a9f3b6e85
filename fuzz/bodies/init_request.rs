//! What init reads from its control socket, and from the file that a large start request comes in.

use cofferdam_linux::protocol::{self, Names, Request, StartRequest};
use std::ffi::CStr;

/// More than any message of the corpus takes.
const ROOM: usize = 64 << 10;

pub(crate) fn run(data: &[u8]) {
    let Ok(request) = Request::decode(data) else { return };
    let seen = format!("{request:?}");
    let mut buffer = vec![0; ROOM.max(2 * data.len())];
    let again = match request {
        Request::Start(start) => return start_comes_back(start, &mut buffer),
        Request::Group { kind, watches_oom } => protocol::encode_group(&mut buffer, kind, watches_oom),
        Request::StartFrom => protocol::encode_start_from(&mut buffer),
        Request::Probe { process } => protocol::encode_probe(&mut buffer, process),
        Request::Signal { process, signal } => protocol::encode_signal(&mut buffer, process, signal),
        Request::Socket { request, family } => protocol::encode_socket(&mut buffer, request, family),
        Request::Open { request, flags, mode, make_parents, path } => {
            let Ok(path) = path.to_str() else { return };
            protocol::encode_open(&mut buffer, request, flags, mode, make_parents, path)
        }
        Request::OpenEach { request, flags, folder, names } => {
            return names_come_back(request, flags, folder, names, &mut buffer);
        }
        Request::List { request, limit, is_close, path } => {
            let Ok(path) = path.to_str() else { return };
            protocol::encode_list(&mut buffer, request, limit, is_close, path)
        }
        Request::MakeFolder { request, path } => {
            let Ok(path) = path.to_str() else { return };
            protocol::encode_make_folder(&mut buffer, request, path)
        }
        Request::Remove { request, is_folder, path } => {
            let Ok(path) = path.to_str() else { return };
            protocol::encode_remove(&mut buffer, request, is_folder, path)
        }
        Request::Rename { request, from, to } => {
            let (Ok(from), Ok(to)) = (from.to_str(), to.to_str()) else { return };
            protocol::encode_rename(&mut buffer, request, from, to)
        }
        Request::SetMode { request, mode, path } => {
            let Ok(path) = path.to_str() else { return };
            protocol::encode_set_mode(&mut buffer, request, mode, path)
        }
        Request::Link { request, path, target } => {
            let Ok(path) = path.to_str() else { return };
            protocol::encode_link(&mut buffer, request, path, target.to_bytes())
        }
        Request::Watch { request } => protocol::encode_watch(&mut buffer, request),
        // The host says it by closing the socket; there is nothing to encode.
        Request::Stop => return,
    };
    let again = again.expect("what was decoded can be encoded");
    assert_eq!(format!("{:?}", Request::decode(again).expect("what was encoded can be decoded")), seen);
}

/// Reads the names as init does, one by one to the end, and sends them once more.
fn names_come_back(request: u32, flags: i32, folder: &CStr, mut names: Names<'_>, buffer: &mut [u8]) {
    let mut read = Vec::new();
    loop {
        match names.next_name() {
            Ok(Some((mode, name))) => read.push((mode, name.to_str())),
            Ok(None) => break,
            Err(_) => return,
        }
    }
    let sent: Option<Vec<_>> = read.into_iter().map(|(mode, name)| Some((mode, name.ok()?))).collect();
    // The host only sends text.
    let (Some(sent), Ok(path)) = (sent, folder.to_str()) else { return };
    let message = protocol::encode_open_each(buffer, request, flags, path, sent.iter().copied());
    let again = Request::decode(message.expect("it fits")).expect("what was encoded can be decoded");
    let Request::OpenEach { names: mut again, .. } = again else { panic!("not to open any more") };
    for (mode, name) in sent {
        let (found_mode, found) = again.next_name().expect("it is whole").expect("it was there");
        assert_eq!((found_mode, found.to_bytes()), (mode, name.as_bytes()));
    }
    assert_eq!(again.next_name(), Ok(None), "nothing was added");
}

/// Reads the strings as init does, one by one to the end, and sends them once more.
fn start_comes_back(mut start: StartRequest<'_>, buffer: &mut [u8]) {
    let count = start.argc as usize + start.envc as usize;
    assert!(start.argc > 0 && count <= protocol::MAX_STRINGS);
    let mut strings = Vec::new();
    for _ in 0..count {
        match start.strings.next_text() {
            Ok(text) => strings.push(text.to_str().map(str::to_owned)),
            Err(_) => return,
        }
    }
    if start.strings.end().is_err() {
        return;
    }
    // The host only sends text, and variables with a name.
    let (Ok(strings), Ok(cwd)) = (strings.into_iter().collect::<Result<Vec<_>, _>>(), start.cwd.to_str())
    else {
        return;
    };
    let (argv, env) = strings.split_at(start.argc as usize);
    let pair = |text: &String| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let Some(env) = env.iter().map(pair).collect::<Option<Vec<_>>>() else { return };
    let StartRequest { process, stdio, make_cwd, .. } = start;
    let message = protocol::encode_start(buffer, process, stdio, make_cwd, cwd, argv, &env).expect("it fits");
    let Ok(Request::Start(mut again)) = Request::decode(message) else { panic!("not a start any more") };
    assert_eq!((again.process, again.stdio, again.make_cwd), (process, stdio, make_cwd));
    assert_eq!((again.cwd, again.argc, again.envc), (start.cwd, start.argc, start.envc));
    for text in &strings {
        assert_eq!(again.strings.next_text().expect("it was there").to_bytes(), text.as_bytes());
    }
    again.strings.end().expect("nothing was added");
}
