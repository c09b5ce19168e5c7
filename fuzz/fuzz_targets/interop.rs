//! A model of another program is refused, or it is a model that can be kept.
#![no_main]

use std::io::Cursor;

use lda_core::interop::npy::write_header;
use lda_core::interop::{InteropError, mallet, npy, warplda};
use lda_core::model::TopicModel;

/// A prefix that is likely to be read beyond its first line.
fn heads() -> [Vec<u8>; 3] {
    let mut array = Vec::new();
    write_header(&mut array, "<f4", &[2, 3]).expect("memory takes it");
    let state =
        "#doc source pos typeindex type topic\n#alpha : 0.5 0.5\n#beta : 0.1\n0 NA 0 0 a 1\n";
    [state.into(), b"2 2 0.5 0.1\n2\t0:3 1:1 \n".to_vec(), array]
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let kind = usize::from(choice % 3);
    let mut file = if choice & 0x80 == 0 { Vec::new() } else { heads()[kind].clone() };
    file.extend(rest);
    let model: Result<TopicModel, InteropError> = match kind {
        0 => {
            let model = mallet::read_state(&file[..]);
            // The same state with its documents: both are refused, or have the same tokens.
            let run = mallet::read_run(&file[..]);
            assert_eq!(model.is_ok(), run.is_ok(), "{:?}", run.err());
            if let (Ok(model), Ok(run)) = (&model, &run) {
                let counts = model.counts().expect("a state has counts");
                assert_eq!(counts.totals().iter().sum::<u64>(), run.corpus.num_tokens());
            }
            model
        }
        1 => warplda::read_model(&file[..]),
        _ => npy::read_topics(&file[..]).map(|w| TopicModel::from_weights(w, 0.1.into())),
    };
    let model = match model {
        Ok(model) => model,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    // Whatever is read can be written, and read with all its checks.
    if model.num_topics() <= 1 << 16 {
        let mut written = Cursor::new(Vec::new());
        model.write_to(&mut written).expect("memory takes it");
        written.set_position(0);
        assert_eq!(TopicModel::read_from(written).expect("just written"), model);
    }
});
