//! Rows come to the master, slice by slice, after the last round of a run that keeps a model.

use lda_transport::rpc::{RequestId, RequestKind};

use super::super::collected_counts::CollectedCounts;
use super::super::control::Control;
use super::super::{Failed, MASTER, Port};
use super::{Master, RequestPurpose, Step};
use crate::wire::RowCode;

impl Master {
    /// Asks for the rows of a slice, or ends if there is none left: then they add up to C_k.
    pub(super) fn request_slice(&mut self, slice: u16, port: &mut dyn Port) -> Result<(), Failed> {
        let Some(placement) = &self.placement else { return Ok(()) };
        if usize::from(slice) == placement.num_slices() {
            let adds_up = |collected: &CollectedCounts| collected.add_up_to(&self.totals);
            if !self.collected.as_ref().is_some_and(adds_up) {
                let what = "rows that do not add up to the totals".to_owned();
                return Err(Failed::Message { peer: MASTER, what });
            }
            self.finish(port);
            return Ok(());
        }
        self.step = Step::Collecting(slice);
        let server = self.setup.server(placement.server(slice.into()));
        let (topics, words) = (self.setup.spec.topics(), self.setup.spec.words());
        let control = Control::Rows { attempt: self.attempt, slice }.encode(topics, words);
        self.requests.send(port, server, RequestKind::Pull, &control, RequestPurpose::Rows);
        Ok(())
    }

    /// Takes the rows of a slice.
    pub(super) fn collect_model(
        &mut self,
        slice: u16,
        mut rows: &[u8],
        request: RequestId,
    ) -> Result<(), Failed> {
        let nonsense =
            |what: String| Failed::Message { peer: request.peer, what: format!("rows: {what}") };
        let (Some(placement), Some(collected)) = (&self.placement, &mut self.collected) else {
            return Ok(());
        };
        let (partition, topics) = placement.slice(slice.into(), self.setup.spec.topics());
        let code = RowCode::new(topics.end - topics.start);
        let mut row: Vec<(u32, u32)> = Vec::new();
        for word in placement.words(partition) {
            code.decode(&mut rows, &mut row).map_err(|error| nonsense(error.to_string()))?;
            collected.add(word, topics.start, &row);
        }
        if rows.is_empty() { Ok(()) } else { Err(nonsense(format!("{} bytes more", rows.len()))) }
    }
}
