//! Operations that a transport does by its own means, as a node uses them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use lda_transport::local::{self, Local};
use lda_transport::node::{Node, Silent};
use lda_transport::rpc::{
    BeginError, Collective, CollectiveError, Config, Element, Group, Identity, OperationId,
};
use lda_transport::{
    Arrival, Capabilities, Frame, NodeId, ReceiveError, Together, Transport, Unsent, Wait,
};

const PATIENCE: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_millis(50);

/// What a transport was asked for.
#[derive(Debug, Default)]
struct Asked {
    begun: Vec<OperationId>,
    abandoned: Vec<OperationId>,
}

/// The only node of its kind. Its barriers never end, its broadcasts give what nobody has sent, and it adds no floats.
#[derive(Debug)]
struct Own {
    inner: Local,
    members: Vec<NodeId>,
    ends: VecDeque<Arrival>,
    asked: Arc<Mutex<Asked>>,
}

impl Together for Own {
    fn members(&self) -> &[NodeId] {
        &self.members
    }

    fn begin(
        &mut self,
        operation: OperationId,
        collective: Collective,
        _longest: u64,
    ) -> Result<(), Collective> {
        match collective {
            Collective::ReduceScatter { element: Element::F32, .. } => return Err(collective),
            Collective::Barrier => {}
            _ => {
                let result = Ok(vec![Frame::from(b"by its own means".to_vec())]);
                self.ends.push_back(Arrival::Together { operation, result });
            }
        }
        self.asked.lock().unwrap().begun.push(operation);
        Ok(())
    }

    fn abandon(&mut self, operation: OperationId) {
        self.asked.lock().unwrap().abandoned.push(operation);
    }
}

impl Transport for Own {
    fn id(&self) -> NodeId {
        self.inner.id()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        self.inner.send(to, frame)
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        match self.ends.pop_front() {
            Some(end) => Ok(Some(end)),
            None => self.inner.receive(wait),
        }
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }

    fn together(&mut self) -> Option<&mut dyn Together> {
        Some(self)
    }

    fn close(&mut self, patience: Duration) {
        self.inner.close(patience);
    }
}

fn start(max_content_len: u64) -> (Node, Arc<Mutex<Asked>>) {
    let inner = local::mesh(1, &local::Options::default()).remove(0);
    let (members, asked) = (vec![NodeId(0)], Arc::default());
    let own = Own { inner, members, ends: VecDeque::new(), asked: Arc::clone(&asked) };
    let identity = Identity { incarnation: 1, role: 0, run: 1, configuration: 0 };
    let config = Config { max_content_len, ..Config::new(identity) };
    (Node::start(Box::new(own), config, Silent).unwrap(), asked)
}

fn group(id: u64) -> Group {
    Group::new(id, vec![NodeId(0)], NodeId(0)).unwrap()
}

#[test]
fn a_group_of_all_nodes_has_the_transport_do_it() {
    let (node, asked) = start(100);
    let broadcast = |id| {
        let content = Some(Frame::from(b"sent".to_vec()));
        node.broadcast(&group(id), NodeId(0), content, PATIENCE).unwrap()
    };
    for id in [7, 7, 8] {
        assert_eq!(&broadcast(id)[..], b"by its own means");
    }
    let begun = &asked.lock().unwrap().begun;
    let id = |group, number| OperationId { group, number };
    assert_eq!(begun[..], [id(7, 0), id(7, 1), id(8, 0)]);
}

#[test]
fn what_the_transport_does_not_do_goes_over_frames() {
    let (node, asked) = start(100);
    let sums = node.reduce_scatter(&group(1), &[0.5f32, 2.0], PATIENCE).unwrap();
    assert_eq!(sums, [0.5, 2.0]);
    assert_eq!(asked.lock().unwrap().begun, []);
}

#[test]
fn what_cannot_begin_is_not_begun() {
    let (node, asked) = start(3);
    let error = node.all_gather(&group(1), vec![0; 4].into(), PATIENCE).unwrap_err();
    let expected = BeginError::TooLong { bytes: 4, longest: 3 };
    assert_eq!(error, CollectiveError::Begin(expected));
    node.all_gather(&group(1), vec![0; 3].into(), PATIENCE).unwrap();
    // It has not been counted.
    assert_eq!(asked.lock().unwrap().begun, [OperationId { group: 1, number: 0 }]);
}

#[test]
fn a_deadline_gives_it_up() {
    let (node, asked) = start(100);
    let error = node.barrier(&group(1), MOMENT).unwrap_err();
    assert_eq!(error, CollectiveError::Deadline { missing: Vec::new() });
    assert_eq!(error.to_string(), "it has not ended by its deadline");
    assert_eq!(asked.lock().unwrap().abandoned, [OperationId { group: 1, number: 0 }]);
    // Open ones end with their node, which waits for them as long as it is given.
    let open = node.begin(&group(1), Collective::Barrier, PATIENCE);
    node.close(MOMENT).unwrap();
    assert_eq!(open.wait(), Err(CollectiveError::Cancelled));
}
