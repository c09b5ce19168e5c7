//! Logs of transports: any bytes are read to an end, and replayed to an end.
#![no_main]

use lda_transport::wrap::{Log, Replaying};
use lda_transport::{NodeId, Transport, Wait};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(mut log) = Log::read(bytes) else { return };
    let mut entries = 0;
    while let Some(entry) = log.next() {
        entries += 1;
        if entry.is_err() {
            assert!(log.next().is_none(), "an error is the end");
        }
    }
    assert!(entries <= bytes.len());
    let mut replaying = Replaying::new(bytes).expect("it is a log");
    let mut steps = 0;
    while replaying.receive(Wait::Forever).is_ok() {
        let _ = replaying.send(NodeId(0), vec![0; 3].into());
        steps += 1;
        assert!(steps <= entries);
    }
});
