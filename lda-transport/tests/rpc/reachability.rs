//! Which messages can meet which fates.

use lda_transport::rpc::MessageKind;
use lda_transport::sim::{Coverage, Fate, State};

/// Why no frame can be there; none where it can.
fn unreachable(message: MessageKind, fate: Fate, state: State) -> Option<&'static str> {
    let _ = message;
    match (fate, state) {
        (fate, State::Gone | State::Away) if fate.arrives() => {
            Some("a link that is up has two nodes that have been told so")
        }
        (Fate::Cut | Fate::SenderCrashed, State::Gone) => {
            Some("its receiver crashed, which is what counts")
        }
        _ => None,
    }
}

pub fn nothing_came_where_nothing_can(coverage: &Coverage) {
    for (message, fate, state, count) in coverage.cells() {
        if let Some(reason) = unreachable(message, fate, state) {
            assert_eq!(count, 0, "{message:?} {fate:?} {state:?}: {reason}");
        }
    }
}

pub fn everything_else_came(coverage: &Coverage, least: u64) {
    let few: Vec<String> = coverage
        .cells()
        .filter(|&(message, fate, state, count)| {
            count < least && unreachable(message, fate, state).is_none()
        })
        .map(|(message, fate, state, count)| format!("{message:?} {fate:?} {state:?}: {count}"))
        .collect();
    assert!(few.is_empty(), "cells with fewer than {least} frames:\n{}", few.join("\n"));
}
