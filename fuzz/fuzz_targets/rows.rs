//! Operation sequences on count rows, C_d and C_w, against a plain table.
#![no_main]

use lda_core::counts::{Density, RowMut, Rows, TopicIndex};
use libfuzzer_sys::fuzz_target;

/// Limits of rows, and of tokens per row: the rows' capacity, which callers must keep to.
const ROWS: usize = 4;

fuzz_target!(|data: &[u8]| {
    against_table::<u16>(data);
    against_table::<u32>(data);
});

fn against_table<T: TopicIndex>(data: &[u8]) {
    let Some((&[topics, tokens, density], mut rest)) = data.split_first_chunk::<3>() else {
        return;
    };
    let topics = 1 + usize::from(topics) * 3;
    let tokens = 1 + u32::from(tokens) * 2;
    let density = if density % 4 == 0 { Density::Dense } else { Density::Auto };
    let capacity = (0..ROWS).map(|row| u64::from(tokens) >> row);
    let mut rows = Rows::<T>::new(topics, capacity, density).expect("a few kilobytes");
    let mut table = vec![vec![0u32; topics]; ROWS];
    while let Some((&[op, high, low], after)) = rest.split_first_chunk::<3>() {
        rest = after;
        let row = usize::from(op) % ROWS;
        let topic = (usize::from(high) << 8 | usize::from(low)) % topics;
        let room = table[row].iter().sum::<u32>() < tokens >> row;
        match op / 32 {
            0..=3 if room => {
                rows.increment(row, topic as u32);
                table[row][topic] += 1;
            }
            4 | 5 if table[row][topic] > 0 => {
                decrement(&mut rows, row, topic);
                table[row][topic] -= 1;
            }
            6 => rows.adapt(),
            7 if high % 16 == 0 => {
                rows.clear(row);
                table[row].fill(0);
            }
            _ => {}
        }
        assert_eq!(rows.get(row, topic as u32), table[row][topic]);
    }
    for (row, counts) in table.iter().enumerate() {
        let mut seen = vec![0; topics];
        rows.for_each(row, |topic, count| {
            assert!(count > 0 && seen[topic as usize] == 0, "a zero, or a topic listed twice");
            seen[topic as usize] = count;
        });
        assert_eq!(&seen, counts);
    }
}

fn decrement<T: TopicIndex>(rows: &mut Rows<T>, row: usize, topic: usize) {
    match rows.row_mut(row) {
        RowMut::Sparse(mut list) => {
            let at = (1..=list.len()).find(|&i| list.entry(i).0 as usize == topic);
            list.decrement_at(at.expect("a counted topic is listed"));
        }
        RowMut::Dense16(lines) => {
            lda_core::counts::dense16_add(lines, topic, 1u32.wrapping_neg());
        }
        RowMut::Dense32(lines) => lines[topic / 16].0[topic % 16] -= 1,
    }
}
