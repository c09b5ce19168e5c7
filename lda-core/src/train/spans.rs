//! Spans of `tracing` around epochs and passes. Without the feature `tracing` they are no code at all.

/// Opens a span that ends with the enclosing block: `span!(INFO, "epoch", epoch = 3)`.
#[cfg(feature = "tracing")]
macro_rules! span {
    ($level:ident, $name:literal, $($fields:tt)*) => {
        let _span = ::tracing::span!(
            target: "lda_core", ::tracing::Level::$level, $name, $($fields)*
        )
        .entered();
    };
}

/// Does nothing.
#[cfg(not(feature = "tracing"))]
macro_rules! span {
    ($level:ident, $name:literal, $($fields:tt)*) => {};
}

pub(super) use span;
