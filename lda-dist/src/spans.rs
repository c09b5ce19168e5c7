//! Spans of `tracing`: of a worker's rounds, and of the pulls and pushes of its partitions.
//!
//! They are not nested, because rows of the next round may be pulled while this one is sampled:
//! fields name the round instead. Without the feature `tracing`, a span is nothing.

/// A span that ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Span(
    #[cfg(feature = "tracing")]
    #[allow(dead_code, reason = "read only by its drop, which closes the span")]
    pub ::tracing::Span,
);

/// Opens a span: `span!(INFO, "round", epoch = 3)`.
#[cfg(feature = "tracing")]
macro_rules! span {
    ($level:ident, $name:literal, $($fields:tt)*) => {
        $crate::spans::Span(::tracing::span!(
            target: "lda_dist", parent: None, ::tracing::Level::$level, $name, $($fields)*
        ))
    };
}

/// Opens no span.
#[cfg(not(feature = "tracing"))]
macro_rules! span {
    ($level:ident, $name:literal, $($fields:tt)*) => {
        $crate::spans::Span()
    };
}

pub(crate) use span;
