//! Objects that are objects. Serde takes a list for the fields of a struct in their order, which no client means and
//! no document says; this reads the same values and refuses that, at every depth.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};
use std::fmt;

/// A deserializer whose structs are read from objects alone.
#[derive(Debug)]
pub struct Objects<D>(pub D);

macro_rules! forward {
    ($($method:ident($($argument:ident: $kind:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $kind,)* visitor: V) -> Result<V::Value, Self::Error> {
            self.0.$method($($argument,)* Inner { visitor, is_struct: false })
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.deserialize_struct(name, fields, Inner { visitor, is_struct: true })
    }

    forward! {
        deserialize_any() deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
        deserialize_i128() deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
        deserialize_f32() deserialize_f64() deserialize_char() deserialize_str() deserialize_string()
        deserialize_bytes() deserialize_byte_buf() deserialize_option() deserialize_unit() deserialize_seq()
        deserialize_map() deserialize_identifier() deserialize_ignored_any()
        deserialize_unit_struct(name: &'static str) deserialize_newtype_struct(name: &'static str)
        deserialize_tuple(length: usize) deserialize_tuple_struct(name: &'static str, length: usize)
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// What is read inside, by the same rule.
struct Inner<V> {
    visitor: V,
    is_struct: bool,
}

macro_rules! values {
    ($($method:ident($kind:ty))*) => {
        $(fn $method<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.visitor.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Inner<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    values! {
        visit_bool(bool) visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64) visit_i128(i128) visit_u8(u8)
        visit_u16(u16) visit_u32(u32) visit_u64(u64) visit_u128(u128) visit_f32(f32) visit_f64(f64) visit_char(char)
        visit_str(&str) visit_borrowed_str(&'de str) visit_string(String) visit_bytes(&[u8])
        visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Objects(inner))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(Objects(inner))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        if self.is_struct {
            return Err(Error::invalid_type(Unexpected::Other("a list"), &"an object"));
        }
        self.visitor.visit_seq(Objects(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Objects(entries))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(Objects(data))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Objects<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(inner))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Objects(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Objects<A> {
    type Error = A::Error;
    type Variant = Objects<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (name, content) = self.0.variant_seed(Objects(seed))?;
        Ok((name, Objects(content)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Objects(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(length, Inner { visitor, is_struct: false })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Inner { visitor, is_struct: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::{Value, from_str, json};
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Small {
        a: Option<u64>,
        b: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Either {
        Plain,
        Holding(Small),
        Named { small: Small },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Large {
        one: Option<Small>,
        many: Vec<Small>,
        named: BTreeMap<String, Small>,
        either: Either,
        pair: (u8, Small),
        any: Value,
    }

    fn large() -> Value {
        let small = json!({"a": 1, "b": "x"});
        json!({"one": small, "many": [small], "named": {"x": small}, "either": {"holding": small},
            "pair": [7, small], "any": [[], {}, 1.5, null, true, -3, "t"]})
    }

    fn read(value: &Value) -> Result<Large, String> {
        let text = value.to_string();
        let mut reader = serde_json::Deserializer::from_str(&text);
        Large::deserialize(Objects(&mut reader)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_an_object_is_read_as_ever() {
        for either in [json!("plain"), json!({"holding": {}}), json!({"named": {"small": {"a": null}}})] {
            let mut value = large();
            value["either"] = either;
            let plain: Large = from_str(&value.to_string()).unwrap();
            assert_eq!(read(&value).unwrap(), plain);
        }
    }

    #[test]
    fn a_list_is_taken_for_no_object_wherever_it_stands() {
        for place in ["/one", "/many/0", "/named/x", "/either/holding", "/pair/1"] {
            for list in [json!([]), json!([1, "x"])] {
                let mut value = large();
                *value.pointer_mut(place).unwrap() = list;
                let error = read(&value).unwrap_err();
                assert!(error.contains("a list, expected an object"), "{place}: {error}");
            }
        }
        let named = json!({"named": [{"a": 1}]});
        let mut value = large();
        value["either"] = named;
        assert!(read(&value).unwrap_err().contains("expected an object"));
    }
}
