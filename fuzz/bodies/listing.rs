//! A folder's entries, as init wrote them: it may have been taken over, and the names are the guest's anyway.

use cofferdam_linux::protocol::{LISTED_ENTRY_BYTES, ListedEntry};

pub(crate) fn run(data: &[u8]) {
    let Ok(entries) = ListedEntry::decode_all(data) else { return };
    let mut rest = data;
    for entry in entries {
        // Longer than any name of a filesystem: init could not have written it.
        if entry.name.count_bytes() > 255 {
            return;
        }
        let mut buffer = [0; LISTED_ENTRY_BYTES];
        let again = entry.encode(&mut buffer).expect("it fits");
        rest = rest.strip_prefix(again).expect("an entry has one spelling");
    }
    assert!(rest.is_empty());
}
