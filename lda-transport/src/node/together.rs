//! Operations of a group, for a program that waits for them.

use std::time::{Duration, Instant};

use super::number::frame_of;
use super::{Command, Gathered, Handle, Number, Pending, promise};
use crate::frame::Frame;
use crate::rpc::{Collective, CollectiveError, Group};
use crate::time::Time;
use crate::transport::NodeId;

impl Handle {
    /// Begins an operation. What the group begins is counted in the order of these calls, so that one thread should
    /// make them.
    ///
    /// A transport that has [operations of its own](crate::Transport::together) does those of a group that is all its
    /// nodes in order; all others go over frames.
    pub fn begin(
        &self,
        group: &Group,
        collective: Collective,
        within: Duration,
    ) -> Pending<Gathered> {
        let until = Instant::now().checked_add(within);
        let deadline = until.map_or(Time::NEVER, |until| self.shared.at(until));
        let (promise, pending) = promise(None, self.driver());
        // Where the node has ended, the promise ends with the command.
        let group = group.clone();
        let _ = self.shared.command(Command::Begin { group, collective, deadline, promise });
        pending
    }

    /// Waits until all members have come here.
    ///
    /// # Errors
    /// [`CollectiveError`].
    pub fn barrier(&self, group: &Group, within: Duration) -> Result<(), CollectiveError> {
        self.begin(group, Collective::Barrier, within).wait().map(drop)
    }

    /// Gives everybody what the root has; `content` is the root's alone to give.
    ///
    /// # Errors
    /// [`CollectiveError`].
    pub fn broadcast(
        &self,
        group: &Group,
        root: NodeId,
        content: Option<Frame>,
        within: Duration,
    ) -> Result<Frame, CollectiveError> {
        let got = self.begin(group, Collective::Broadcast { root, content }, within).wait()?;
        Ok(got.into_iter().next().unwrap_or_default())
    }

    /// Gives everybody what everybody has, by rank.
    ///
    /// # Errors
    /// [`CollectiveError`].
    pub fn all_gather(
        &self,
        group: &Group,
        content: Frame,
        within: Duration,
    ) -> Result<Vec<Frame>, CollectiveError> {
        self.begin(group, Collective::AllGather { content }, within).wait()
    }

    /// Adds vectors that are as long everywhere, and gives this member its part: of rank r of n the sums from
    /// ⌊r·len/n⌋ to ⌊(r+1)·len/n⌋. Integers wrap around.
    ///
    /// # Errors
    /// [`CollectiveError`].
    pub fn reduce_scatter<N: Number>(
        &self,
        group: &Group,
        values: &[N],
        within: Duration,
    ) -> Result<Vec<N>, CollectiveError> {
        let sum = Collective::ReduceScatter { element: N::ELEMENT, values: frame_of(values) };
        let got = self.begin(group, sum, within).wait()?;
        Ok(got.first().map_or_else(Vec::new, |sums| N::all(sums)))
    }

    /// Adds vectors, and gives everybody all sums: first the parts, then all of them.
    ///
    /// # Errors
    /// [`CollectiveError`].
    pub fn all_reduce<N: Number>(
        &self,
        group: &Group,
        values: &[N],
        within: Duration,
    ) -> Result<Vec<N>, CollectiveError> {
        let until = Instant::now() + within;
        let part = self.reduce_scatter(group, values, within)?;
        let left = until.saturating_duration_since(Instant::now());
        let parts = self.all_gather(group, frame_of(&part), left)?;
        Ok(parts.iter().flat_map(|part| N::all(part)).collect())
    }
}
