//! Parameters of disciplines that have variants: which one comes first, then its own.

use serde::Deserialize;
use serde::de::value::MapDeserializer;
use serde::de::{Error, IntoDeserializer};

/// Names and values.
pub type Named<V> = Vec<(&'static str, V)>;

/// Names and values, `variant` among them: its word, and the others.
pub(crate) fn taken<'de, V, E>(mut fields: Named<V>) -> Result<(String, Named<V>), E>
where
    V: IntoDeserializer<'de, E>,
    E: Error,
{
    let at = fields.iter().position(|(name, _)| *name == "variant");
    let at = at.ok_or_else(|| E::missing_field("variant"))?;
    let word = String::deserialize(fields.swap_remove(at).1.into_deserializer())?;
    Ok((word, fields))
}

/// Parameters of these names and values.
pub(crate) fn read<'de, P, V, E>(fields: Named<V>) -> Result<P, E>
where
    P: Deserialize<'de>,
    V: IntoDeserializer<'de, E>,
    E: Error,
{
    P::deserialize(MapDeserializer::new(fields.into_iter()))
}

/// Declares the parameters of a discipline with variants: of each its word and its parameters.
///
/// `of` reads them by name. Serde's own reading of such a type, which has to find `variant` among the
/// others first, is several times the code.
macro_rules! variants {
    ($(#[doc = $about:literal])+ $Params:ident {
        $( $(#[doc = $meaning:literal])+ $word:literal $Variant:ident($Of:ty), )+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[serde(tag = "variant")]
        pub enum $Params {
            $( $(#[doc = $meaning])+ #[serde(rename = $word)] $Variant($Of), )+
        }

        impl $Params {
            pub(crate) fn of<'de, V, E>(fields: $crate::variants::Named<V>) -> Result<$Params, E>
            where
                V: serde::de::IntoDeserializer<'de, E>,
                E: serde::de::Error,
            {
                let (word, others) = $crate::variants::taken(fields)?;
                match &*word {
                    $( $word => $crate::variants::read(others).map($Params::$Variant), )+
                    _ => Err(E::unknown_variant(&word, &[$($word),+])),
                }
            }
        }
    };
}

pub(crate) use variants;
