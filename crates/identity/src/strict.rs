//! JSON objects in which no name comes twice: two readers of one token must not see two things.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Object(pub(crate) BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut object = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if object.insert(name, value).is_some() {
                        return Err(A::Error::custom("a name comes twice"));
                    }
                }
                Ok(Object(object))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

impl Object {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }
}
