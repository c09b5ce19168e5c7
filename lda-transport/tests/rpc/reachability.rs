//! Reachable combinations of message, fate and state.

use lda_transport::rpc::MessageKind;
use lda_transport::sim::{Coverage, Fate, State};

/// Returns the reason why a cell cannot have frames; `None` if it can.
fn unreachable(message: MessageKind, fate: Fate, state: State) -> Option<&'static str> {
    let _ = message;
    match (fate, state) {
        (fate, State::Gone | State::Away) if fate.arrives() => {
            Some("both nodes of a link that is up have received `Up`")
        }
        (Fate::Cut | Fate::SenderCrashed, State::Gone) => {
            Some("the receiver crashed, which takes precedence")
        }
        _ => None,
    }
}

pub fn no_unreachable_cell_has_frames(coverage: &Coverage) {
    for (message, fate, state, count) in coverage.cells() {
        if let Some(reason) = unreachable(message, fate, state) {
            assert_eq!(count, 0, "{message:?} {fate:?} {state:?}: {reason}");
        }
    }
}

pub fn all_other_cells_have_frames(coverage: &Coverage, least: u64) {
    let few: Vec<String> = coverage
        .cells()
        .filter(|&(message, fate, state, count)| {
            count < least && unreachable(message, fate, state).is_none()
        })
        .map(|(message, fate, state, count)| format!("{message:?} {fate:?} {state:?}: {count}"))
        .collect();
    assert!(few.is_empty(), "cells with fewer than {least} frames:\n{}", few.join("\n"));
}
