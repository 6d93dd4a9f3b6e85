//! What stands behind the question mark.

use crate::answer::Problem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use cofferdam_core::InvalidValue;

/// The parameters of a request; each may be asked for by the handler, and no other may be there.
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let text = parts.uri.query().unwrap_or_default();
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Ok(Self(pairs.collect()))
    }
}

/// That there are no parameters.
pub(crate) struct NoQuery;

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Query::from_request_parts(parts, state).await?.only(&[])?;
        Ok(Self)
    }
}

impl Query {
    /// Refuses what is not among these, what is there twice, and what no text may have in it.
    pub(crate) fn only(&self, names: &[&str]) -> Result<(), InvalidValue> {
        for (i, (name, value)) in self.0.iter().enumerate() {
            if self.0[..i].iter().any(|(before, _)| before == name) {
                return Err(InvalidValue::new(name, value, "it may be given once"));
            }
            if value.contains('\0') {
                return Err(InvalidValue::new(name, value, "it must not contain NUL"));
            }
        }
        match self.0.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, value)) => {
                let fix = match names {
                    [] => "this request has no parameters".to_owned(),
                    _ => format!("the parameters of this request are {}", names.join(", ")),
                };
                Err(InvalidValue::new(name, value, fix))
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A number from 0 to `most`.
    pub(crate) fn number(&self, name: &str, most: u64) -> Result<Option<u64>, InvalidValue> {
        self.number_in(name, 0, most)
    }

    /// How many are wanted: a number from 1 to `most`.
    pub(crate) fn count(&self, name: &str, most: u64) -> Result<Option<u64>, InvalidValue> {
        self.number_in(name, 1, most)
    }

    fn number_in(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, InvalidValue> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u64>() {
            Ok(number) if is_plain && (least..=most).contains(&number) => Ok(Some(number)),
            _ => {
                let fix = format!("it must be a whole number from {least} to {most}");
                Err(InvalidValue::new(name, text, fix))
            }
        }
    }
}

/// Percent-encoding; what is not UTF-8 afterwards is replaced, and will match nothing.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let hex = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
        match (byte, tail) {
            (b'%', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                bytes.push(hex(*high).unwrap_or(0) << 4 | hex(*low).unwrap_or(0));
                rest = after;
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(byte),
        }
        rest = tail;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_undone() {
        for (text, expected) in
            [("a%20b+c", "a b c"), ("%", "%"), ("%zz", "%zz"), ("%C3%BC", "ü"), ("%2", "%2")]
        {
            assert_eq!(decode(text), expected);
        }
    }

    #[test]
    fn unknown_parameters_and_numbers_out_of_range_are_named() {
        let query = Query(vec![("limit".into(), "5".into()), ("x".into(), "1".into())]);
        assert_eq!(query.only(&["limit"]).unwrap_err().field, "x");
        assert_eq!(query.number("limit", 5).unwrap(), Some(5));
        assert!(query.number("limit", 4).is_err());
        for text in ["+5", "", "0", "-1", "5.0"] {
            let query = Query(vec![("limit".into(), text.into())]);
            assert!(query.count("limit", 5).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_there_twice_or_cannot_be_kept_is_refused() {
        let pair = |value: &str| ("state".to_owned(), value.to_owned());
        assert!(Query(vec![pair("a"), pair("a")]).only(&["state"]).is_err());
        assert!(Query(vec![pair("a\0b")]).only(&["state"]).is_err());
        assert!(Query(vec![pair("a")]).only(&["state"]).is_ok());
    }
}
