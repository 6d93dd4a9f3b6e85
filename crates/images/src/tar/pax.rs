//! Extended headers, as far as they say something that an image needs.

/// What one extended header says of the entry after it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u64>,
    pub(super) seconds: Option<u64>,
    /// The entry's bytes are not the file's.
    pub(super) is_sparse: bool,
}

impl Pax {
    /// Lays the records over what is known; `None` if they are malformed.
    pub(super) fn read(&mut self, mut records: &[u8]) -> Option<()> {
        while !records.is_empty() {
            let (key, value, rest) = record(records)?;
            match key {
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                b"size" => self.size = Some(decimal(value)?),
                b"uid" => self.uid = Some(decimal(value)?),
                // Fractions and times before 1970 are of no use here.
                b"mtime" => {
                    let whole = value.split(|&c| c == b'.').next()?;
                    self.seconds = if value.starts_with(b"-") { Some(0) } else { Some(decimal(whole)?) };
                }
                _ if key.starts_with(b"GNU.sparse.") => self.is_sparse = true,
                // Owners' names, comments, other times; and attributes, which no sandbox gets from an image.
                _ => {}
            }
            records = rest;
        }
        Some(())
    }

    /// Whether it says nothing of where or how large an entry is.
    pub(super) fn is_harmless(&self) -> bool {
        self.path.is_none() && self.link.is_none() && self.size.is_none() && !self.is_sparse
    }
}

/// `LENGTH KEY=VALUE\n`, where the length is of all of that.
fn record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = records.iter().position(|&byte| byte == b' ')?;
    let length = usize::try_from(decimal(&records[..space])?).ok()?;
    if length > records.len() || length < space + 2 {
        return None;
    }
    let (own, rest) = records.split_at(length);
    let body = own[space + 1..].strip_suffix(b"\n")?;
    let equals = body.iter().position(|&byte| byte == b'=')?;
    Some((&body[..equals], &body[equals + 1..], rest))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, digit| match digit {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(records: &[u8]) -> Option<Pax> {
        let mut pax = Pax::default();
        pax.read(records).map(|()| pax)
    }

    #[test]
    fn records_are_read() {
        let pax = read(b"12 path=a\nb\n9 size=7\n").unwrap();
        assert_eq!((pax.path.as_deref(), pax.size), (Some(&b"a\nb"[..]), Some(7)));
        assert_eq!(read(b"14 mtime=12.5\n").unwrap().seconds, Some(12));
        assert!(read(b"22 GNU.sparse.major=1\n").unwrap().is_sparse);
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for wrong in [
            &b"x"[..],
            b"99 a=b\n",
            b"0 a=b\n",
            b"1 ",
            b"6 a=b",
            b" a=b\n",
            b"7 abcd\n",
            b"10 size=-1\n",
            b"99999999999999999999999 a=b\n",
            b"9 size=x\n",
        ] {
            assert_eq!(read(wrong), None, "{:?}", String::from_utf8_lossy(wrong));
        }
    }
}
