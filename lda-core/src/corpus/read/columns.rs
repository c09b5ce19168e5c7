//! Documents from columns: the part that tables and JSON lines share.

use super::error::{Place, ReadError};
use super::text::TextCollector;
use crate::corpus::Date;

/// Sets the date of the document that is about to end.
pub(super) fn push_date(
    collector: &mut TextCollector,
    text: &str,
    at: &Place,
) -> Result<(), ReadError> {
    let text = text.trim();
    // The time of a day may follow: `1987-02-26T12:00:00Z`, `1987-02-26 12:00`.
    let day = match text.get(10..11) {
        Some("T" | " ") => &text[..10],
        _ => text,
    };
    let date: Date = day.parse().map_err(|source| ReadError::Date { at: at.clone(), source })?;
    collector.builder.push_date(date);
    Ok(())
}
