//! Rows come to the master, partition by partition, after the last round of a run that keeps a model.

use lda_transport::endpoint::{Kind, RequestId};

use super::super::control::Control;
use super::super::gathered::Gathered;
use super::super::{Failed, MASTER, Port};
use super::{For, Master, Phase};
use crate::wire::RowCode;

impl Master {
    /// Asks for the rows of a partition, or ends if there is none left: then they add up to C_k.
    pub(super) fn go_on_gathering(
        &mut self,
        partition: u16,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let Some(placement) = &self.placement else { return Ok(()) };
        if usize::from(partition) == placement.num_partitions() {
            let adds_up = |gathered: &Gathered| gathered.add_up_to(&self.totals);
            if !self.gathered.as_ref().is_some_and(adds_up) {
                let what = "rows that do not add up to the totals".to_owned();
                return Err(Failed::Message { peer: MASTER, what });
            }
            self.finish(port);
            return Ok(());
        }
        self.phase = Phase::Gathering(partition);
        let server = self.setup.server(placement.server(partition.into()));
        let (topics, words) = (self.setup.job.topics(), self.setup.job.words());
        let control = Control::Rows { attempt: self.attempt, partition }.encode(topics, words);
        self.outbox.send(port, server, Kind::Pull, &control, For::Rows);
        Ok(())
    }

    /// Takes the rows of a partition.
    pub(super) fn gather(
        &mut self,
        partition: u16,
        mut rows: &[u8],
        request: RequestId,
    ) -> Result<(), Failed> {
        let nonsense =
            |what: String| Failed::Message { peer: request.peer, what: format!("rows: {what}") };
        let code = RowCode::new(self.setup.job.topics());
        let (Some(placement), Some(gathered)) = (&self.placement, &mut self.gathered) else {
            return Ok(());
        };
        for word in placement.words(partition.into()) {
            let mut row: Vec<(u32, u32)> = Vec::new();
            code.decode(&mut rows, &mut row).map_err(|error| nonsense(error.to_string()))?;
            gathered.set(word, row);
        }
        if rows.is_empty() { Ok(()) } else { Err(nonsense(format!("{} bytes more", rows.len()))) }
    }
}
