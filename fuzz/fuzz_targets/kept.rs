//! Objects of a storage: snapshots, their index, and the manifest and statistics of documents. An input is refused, or
//! it is reproduced when it is encoded again.
#![no_main]

use lda_dist::documents::{Documents, StoredDocuments};
use lda_dist::snapshot::{MidEpochId, SnapshotId, decode, decode_latest, encode, encode_latest};
use lda_dist::storage::{Memory, Storage};

const OF: SnapshotId = SnapshotId { run: 77, epoch: 40, shard: 3 };

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    match kind % 5 {
        // As it is, and with the checksum that it should have.
        0 => check(bytes),
        1 => {
            let sum = lda_core::container::checksum(bytes).to_le_bytes();
            check(&[bytes, &sum].concat());
        }
        2 => {
            if let Ok(latest) = decode_latest(OF.run, bytes) {
                let again = encode_latest(OF.run, latest);
                assert_eq!(decode_latest(OF.run, again.as_bytes()), Ok(latest));
            }
        }
        3 => {
            let manifest =
                b"lda-dist documents 2\nwords 5\nempty 0\nshard 0 0 2 9 0000000000000000\n";
            let sums =
                [&manifest[..], bytes].map(|of| lda_core::container::checksum(of).to_le_bytes());
            let memory = Memory::default();
            memory.write("manifest", manifest).expect("memory takes it");
            memory.write("statistics", &[&sums.concat(), bytes].concat()).expect("memory takes it");
            let stored = StoredDocuments::open(memory).expect("the manifest is valid");
            if let Some(statistics) = stored.statistics() {
                assert_eq!(statistics.words.num_words(), 5);
            }
        }
        _ => {
            let memory = Memory::default();
            memory.write("manifest", bytes).expect("memory takes it");
            match StoredDocuments::open(memory) {
                Ok(stored) => assert!(stored.num_shards() > 0 && stored.vocabulary().is_err()),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
});

fn check(bytes: &[u8]) {
    let within = MidEpochId { of: OF, rounds: 12 };
    if let Ok((state, priors)) = within.decode::<u16>(bytes) {
        let again = within.encode(&state, priors.as_ref());
        assert_eq!(within.decode::<u16>(&again), Ok((state, priors)));
    }
    if let Ok(snapshot) = decode::<u16>(&OF, bytes) {
        let again = encode(&OF, &snapshot.state, snapshot.priors.as_ref());
        assert_eq!(decode::<u16>(&OF, &again), Ok(snapshot));
    }
    if let Ok(snapshot) = decode::<u32>(&OF, bytes) {
        let again = encode(&OF, &snapshot.state, snapshot.priors.as_ref());
        assert_eq!(decode::<u32>(&OF, &again), Ok(snapshot));
    }
}
