//! Rows come to the master, slice by slice, after the last round of a run that keeps a model.

use lda_transport::rpc::{RequestId, RequestKind};

use super::super::control::Control;
use super::super::gathered::Gathered;
use super::super::{Failed, MASTER, Port};
use super::{For, Master, Phase};
use crate::wire::RowCode;

impl Master {
    /// Asks for the rows of a slice, or ends if there is none left: then they add up to C_k.
    pub(super) fn go_on_gathering(
        &mut self,
        slice: u16,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let Some(placement) = &self.placement else { return Ok(()) };
        if usize::from(slice) == placement.num_slices() {
            let adds_up = |gathered: &Gathered| gathered.add_up_to(&self.totals);
            if !self.gathered.as_ref().is_some_and(adds_up) {
                let what = "rows that do not add up to the totals".to_owned();
                return Err(Failed::Message { peer: MASTER, what });
            }
            self.finish(port);
            return Ok(());
        }
        self.phase = Phase::Gathering(slice);
        let server = self.setup.server(placement.server(slice.into()));
        let (topics, words) = (self.setup.job.topics(), self.setup.job.words());
        let control = Control::Rows { attempt: self.attempt, slice }.encode(topics, words);
        self.outbox.send(port, server, RequestKind::Pull, &control, For::Rows);
        Ok(())
    }

    /// Takes the rows of a slice.
    pub(super) fn gather(
        &mut self,
        slice: u16,
        mut rows: &[u8],
        request: RequestId,
    ) -> Result<(), Failed> {
        let nonsense =
            |what: String| Failed::Message { peer: request.peer, what: format!("rows: {what}") };
        let (Some(placement), Some(gathered)) = (&self.placement, &mut self.gathered) else {
            return Ok(());
        };
        let (partition, topics) = placement.slice(slice.into(), self.setup.job.topics());
        let code = RowCode::new(topics.end - topics.start);
        let mut row: Vec<(u32, u32)> = Vec::new();
        for word in placement.words(partition) {
            code.decode(&mut rows, &mut row).map_err(|error| nonsense(error.to_string()))?;
            gathered.add(word, topics.start, &row);
        }
        if rows.is_empty() { Ok(()) } else { Err(nonsense(format!("{} bytes more", rows.len()))) }
    }
}
