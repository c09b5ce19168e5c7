//! Snapshots that are written, and taken away, beside sampling.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use crate::storage::{Storage, StorageError};

/// A way to a [`Storage`] that need not wait for it.
#[derive(Debug)]
pub struct SnapshotWriter {
    storage: Arc<dyn Storage>,
    writing: Writing,
    /// Objects that are being written.
    underway: usize,
    ended: Vec<Written>,
    /// Why others could not be taken away.
    left_over: Vec<StorageError>,
}

/// An object, and whether it is there now.
pub(super) type Written = (String, Result<(), StorageError>);

#[derive(Debug)]
enum Writing {
    /// At once, while who asks waits.
    Now,
    /// By a thread, which is begun with the first.
    Beside(Option<Thread>),
}

#[derive(Debug)]
struct Thread {
    orders: Sender<Order>,
    written: Receiver<Written>,
    left_over: Receiver<StorageError>,
    handle: JoinHandle<()>,
}

#[derive(Debug)]
enum Order {
    Write(String, Vec<u8>),
    Remove(String),
}

impl SnapshotWriter {
    /// Writes by a thread of its own; who drops it waits for what is underway.
    pub fn beside(storage: Arc<dyn Storage>) -> Self {
        Self::new(storage, Writing::Beside(None))
    }

    /// Writes while its node waits: for simulations.
    pub fn now(storage: Arc<dyn Storage>) -> Self {
        Self::new(storage, Writing::Now)
    }

    fn new(storage: Arc<dyn Storage>, writing: Writing) -> Self {
        Self { storage, writing, underway: 0, ended: Vec::new(), left_over: Vec::new() }
    }

    /// The storage.
    pub(super) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Begins to write.
    pub(super) fn write(&mut self, name: String, content: Vec<u8>) {
        self.underway += 1;
        if matches!(self.writing, Writing::Now) {
            let written = self.storage.write(&name, &content);
            self.ended.push((name, written));
        } else {
            self.order(Order::Write(name, content));
        }
    }

    /// Begins to take an object away.
    pub(super) fn remove(&mut self, name: String) {
        if matches!(self.writing, Writing::Now) {
            self.left_over.extend(self.storage.remove(&name).err());
        } else {
            self.order(Order::Remove(name));
        }
    }

    fn order(&mut self, order: Order) {
        let Writing::Beside(thread) = &mut self.writing else { return };
        let thread = thread.get_or_insert_with(|| Thread::start(Arc::clone(&self.storage)));
        // It takes orders as long as there is one who gives them.
        let _ = thread.orders.send(order);
    }

    /// Why objects could not be taken away since.
    pub(super) fn left_over(&mut self) -> Vec<StorageError> {
        let mut errors = std::mem::take(&mut self.left_over);
        if let Writing::Beside(Some(thread)) = &self.writing {
            errors.extend(thread.left_over.try_iter());
        }
        errors
    }

    /// What has been written since.
    pub(super) fn written(&mut self) -> Vec<Written> {
        let mut ended = std::mem::take(&mut self.ended);
        if let Writing::Beside(Some(thread)) = &self.writing {
            ended.extend(thread.written.try_iter());
        }
        self.underway -= ended.len();
        ended
    }

    /// Waits until all is written, and says what has become of it.
    pub(super) fn wait(&mut self) -> Vec<Written> {
        let mut ended = self.written();
        if let Writing::Beside(Some(thread)) = &self.writing {
            // A thread that has ended writes nothing more.
            let more: Vec<Written> =
                std::iter::from_fn(|| thread.written.recv().ok()).take(self.underway).collect();
            ended.extend(more);
        }
        self.underway = 0;
        ended
    }

    /// Whether something is being written.
    pub(super) fn is_busy(&self) -> bool {
        self.underway > 0
    }
}

impl Thread {
    fn start(storage: Arc<dyn Storage>) -> Self {
        let (orders, taken) = mpsc::channel();
        let (done, written) = mpsc::channel();
        let (failed, left_over) = mpsc::channel();
        let handle = thread::spawn(move || {
            // Who has gone does not want to know.
            for order in taken {
                match order {
                    Order::Write(name, content) => {
                        let ended = storage.write(&name, &content);
                        let _ = done.send((name, ended));
                    }
                    Order::Remove(name) => {
                        if let Err(error) = storage.remove(&name) {
                            let _ = failed.send(error);
                        }
                    }
                }
            }
        });
        Self { orders, written, left_over, handle }
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if let Writing::Beside(Some(Thread { orders, handle, .. })) =
            std::mem::replace(&mut self.writing, Writing::Now)
        {
            drop(orders);
            // A storage that has panicked has said so.
            let _ = handle.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;

    #[test]
    fn objects_are_written_and_taken_away_in_their_order() {
        for snapshot_writer in [SnapshotWriter::beside, SnapshotWriter::now] {
            let memory = Arc::new(Memory::default());
            let mut snapshot_writer = snapshot_writer(Arc::clone(&memory) as Arc<dyn Storage>);
            snapshot_writer.write("a".to_owned(), vec![1]);
            snapshot_writer.remove("a".to_owned());
            // No name of an object.
            snapshot_writer.remove("../a".to_owned());
            snapshot_writer.write("b".to_owned(), vec![2]);
            assert!(snapshot_writer.is_busy());
            let written: Vec<String> =
                snapshot_writer.wait().into_iter().map(|(name, _)| name).collect();
            assert_eq!(written, ["a", "b"]);
            assert!(!snapshot_writer.is_busy() && snapshot_writer.wait().is_empty());
            let left_over = snapshot_writer.left_over();
            assert!(matches!(&left_over[..], [StorageError::Name { .. }]), "{left_over:?}");
            assert!(snapshot_writer.left_over().is_empty());
            assert!(!memory.has("a").unwrap() && memory.has("b").unwrap());
            snapshot_writer.remove("b".to_owned());
            drop(snapshot_writer);
            assert!(!memory.has("b").unwrap());
        }
    }
}
