//! What the host reads from a sandbox's init, which hostile code may have taken over.

use cofferdam_linux::protocol::{EVENT_BYTES, Event};

pub(crate) fn run(data: &[u8]) {
    let Ok(event) = Event::decode(data) else { return };
    // There is one spelling of an event, so that nothing can hide in another.
    assert_eq!(event.encode(&mut [0; EVENT_BYTES]).expect("it fits"), data);
}
