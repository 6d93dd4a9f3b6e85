//! What the host and the launcher read from each other.

use cofferdam_linux::launcher::{LauncherEvent, LauncherRequest};

pub(crate) fn run(data: &[u8]) {
    let mut buffer = vec![0; 4096 + data.len()];
    if let Ok(event) = LauncherEvent::decode(data) {
        assert_eq!(event.encode(&mut buffer).expect("it fits"), data);
    }
    if let Ok(request) = LauncherRequest::decode(data) {
        let again = request.encode(&mut buffer).expect("what was decoded can be encoded");
        assert_eq!(LauncherRequest::decode(again), Ok(request));
    }
}
