//! `forward!`: the methods of an enum whose variants each hold an implementation.
//!
//! A branch of the enum costs less than a pointer to a table of methods, and the implementation is
//! inlined into it. The crate enum_dispatch writes such methods too, but for no variant that holds
//! a `Box`, and without a choice of what is inlined.

/// Methods that call the method of their name on what the enum holds. `$each` is the enum's macro
/// that matches: `each!(self, held => body)`. A method that is `pub` in the list is `pub`.
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
            $each!($self, held => held.$name($($argument),*))
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
            $each!($self, held => held.$name($($argument),*))
        }

        $crate::forward! { $each: $($more)* }
    };
}
