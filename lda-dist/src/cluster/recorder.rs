//! A port for tests of a single role.

use lda_transport::NodeId;
use lda_transport::rpc::{MessageBuf, Overloaded, ReplyHandle, RequestId, RequestKind};

use super::Port;

/// Records the requests of a node, and replies to none.
#[derive(Default)]
pub(super) struct Recorder {
    pub asked: Vec<RequestId>,
    pub refused: Vec<NodeId>,
}

impl Port for Recorder {
    fn ask(
        &mut self,
        peer: NodeId,
        _: RequestKind,
        _: MessageBuf,
    ) -> Result<RequestId, Overloaded> {
        let request = RequestId { peer, number: 1 + self.asked.len() as u64 };
        self.asked.push(request);
        Ok(request)
    }

    fn reply(&mut self, _: ReplyHandle, _: MessageBuf) {}

    fn reject(&mut self, _: ReplyHandle, _: MessageBuf) {}

    fn refuse(&mut self, peer: NodeId, _: String) {
        self.refused.push(peer);
    }
}
