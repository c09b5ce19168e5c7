//! The log: events on standard error, JSON or text, one a line.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt;

use crate::commands::serve::args::LogForm;

/// Logs from now on.
pub fn start(form: LogForm, level: LevelFilter) {
    // Where standard error is gone, there is nobody to tell.
    let log = fmt().with_writer(std::io::stderr).with_max_level(level).log_internal_errors(false);
    let log = log.with_target(false);
    match form {
        LogForm::Json => log.json().flatten_event(true).with_current_span(false).init(),
        LogForm::Text => log.with_ansi(false).init(),
    }
}
