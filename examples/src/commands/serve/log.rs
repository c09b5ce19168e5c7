//! The log: events on standard error as JSON or text, one per line.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt;

use crate::commands::serve::args::LogForm;

/// Installs the log.
pub fn start(form: LogForm, level: LevelFilter) {
    // If standard error is closed, there is nowhere to report that.
    let log = fmt().with_writer(std::io::stderr).with_max_level(level).log_internal_errors(false);
    let log = log.with_target(false);
    match form {
        LogForm::Json => log.json().flatten_event(true).with_current_span(false).init(),
        LogForm::Text => log.with_ansi(false).init(),
    }
}
