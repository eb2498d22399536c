//! `forward!`: the methods of an enum whose variants each contain an implementation.
//!
//! A branch of the enum costs less than a pointer to a table of methods, and the implementation is
//! inlined into it. The crate enum_dispatch writes such methods too, but not for a variant with a
//! `Box`, and without a choice of what is inlined.

/// Methods that call the method of the same name on the enum's content. `$each` is the enum's macro
/// that matches: `each!(self, inner => body)`. A method that is `pub` in the list is `pub`.
#[macro_export]
macro_rules! forward {
    ($each:ident:) => {};
    (
        $each:ident: $(#[$attribute:meta])*
        $see:vis fn $name:ident(&mut $self:ident $(, $argument:ident: $Type:ty)*) $(-> $Answer:ty)?;
        $($more:tt)*
    ) => {
        $(#[$attribute])*
        $see fn $name(&mut $self $(, $argument: $Type)*) $(-> $Answer)? {
            $each!($self, inner => inner.$name($($argument),*))
        }

        $crate::forward! { $each: $($more)* }
    };
    (
        $each:ident: $(#[$attribute:meta])*
        $see:vis fn $name:ident(&$self:ident $(, $argument:ident: $Type:ty)*) $(-> $Answer:ty)?;
        $($more:tt)*
    ) => {
        $(#[$attribute])*
        $see fn $name(&$self $(, $argument: $Type)*) $(-> $Answer)? {
            $each!($self, inner => inner.$name($($argument),*))
        }

        $crate::forward! { $each: $($more)* }
    };
}
