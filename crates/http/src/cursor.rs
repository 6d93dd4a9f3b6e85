//! Places in lists, as they are handed to a client and come back.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cofferdam_core::InvalidValue;
use cofferdam_store::Page;

/// Cuts a list that has one more than was asked for, and says where it goes on.
pub(crate) fn page<T>(
    mut items: Vec<T>,
    limit: usize,
    place: impl Fn(&T) -> (i64, &String),
) -> (Vec<T>, Option<String>) {
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(|item| {
        let (created_at_ms, id) = place(item);
        URL_SAFE_NO_PAD.encode(format!("{created_at_ms} {id}"))
    });
    (items, next)
}

pub(crate) fn read_cursor(text: &str) -> Result<Page, InvalidValue> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
    let inner = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let page = inner.and_then(|inner| {
        let (created, id) = inner.split_once(' ')?;
        Some(Page { created_at_ms: created.parse().ok()?, id: id.to_owned() })
    });
    // A NUL is no text of the database's.
    let page = page.filter(|page| !page.id.contains('\0'));
    page.ok_or_else(|| InvalidValue::new("cursor", text, "use the next_cursor of the page before"))
}
