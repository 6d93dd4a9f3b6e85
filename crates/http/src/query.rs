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

impl Query {
    pub(crate) fn only(&self, names: &[&str]) -> Result<(), InvalidValue> {
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

    pub(crate) fn number(&self, name: &str, most: u64) -> Result<Option<u64>, InvalidValue> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse::<u64>() {
            Ok(number) if number <= most => Ok(Some(number)),
            _ => Err(InvalidValue::new(name, text, format!("it must be a whole number from 0 to {most}"))),
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
    }
}
