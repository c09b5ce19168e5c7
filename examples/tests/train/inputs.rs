//! Documents as people have them: encodings, line ends, directories, words that are cut already.

use super::*;

/// Trains on a file and returns (documents, words, tokens) as the log's provenance has them.
fn sizes(scratch: &Scratch, line: &str) -> [u64; 3] {
    scratch.succeed(&format!("{line} --topics 2 --epochs 2 --quiet --topic-words sizes.csv"));
    let table = scratch.read("sizes.csv");
    let options = table.lines().next().unwrap().strip_prefix("# options: ").unwrap();
    let options: Value = serde_json::from_str(options).unwrap();
    ["documents", "words", "tokens"].map(|name| options["input"][name].as_u64().unwrap())
}

#[test]
fn encodings_and_line_ends_do_not_matter() {
    let scratch = Scratch::new("encodings");
    let text = "caf\u{e9} garden river\nbank river market\n";
    scratch.write("utf8.txt", text);
    scratch.write("returns.txt", &text.replace('\n', "\r"));
    let units = |unit: fn(u16) -> [u8; 2]| {
        format!("\u{feff}{text}").encode_utf16().flat_map(unit).collect::<Vec<u8>>()
    };
    fs::write(scratch.0.join("little.txt"), units(u16::to_le_bytes)).unwrap();
    fs::write(scratch.0.join("big.txt"), units(u16::to_be_bytes)).unwrap();
    fs::write(scratch.0.join("latin.txt"), text.chars().map(|c| c as u8).collect::<Vec<u8>>())
        .unwrap();
    for file in ["utf8.txt", "returns.txt", "little.txt", "big.txt", "latin.txt --encoding latin1"]
    {
        assert_eq!(sizes(&scratch, file), [2, 5, 6], "{file}");
    }
    let error = scratch.fail("latin.txt --topics 2", 1);
    assert!(
        error.contains("latin.txt:1: invalid UTF-8") && error.contains("--encoding"),
        "{error}"
    );
    scratch.write("words.txt", &(0..WORDS).map(|word| format!("w{word}\r")).collect::<String>());
    let (pairs, body) = corpus();
    scratch.write("docword.txt", &format!("{DOCUMENTS}\n{WORDS}\n{pairs}\n{body}"));
    let all = sizes(&scratch, "docword.txt --vocabulary words.txt");
    assert_eq!(all[1], WORDS as u64);
}

#[test]
fn whole_counts_may_be_written_as_reals() {
    let scratch = Scratch::new("reals");
    scratch.write("a.ldac", "2 0:1.0 1:2.0\n1 1:3e0\n");
    scratch.write("docword.a.txt", "2\n2\n3\n1 1 1.0\n1 2 2.0\n2 2 3.0\n");
    let banner = "%%MatrixMarket matrix coordinate integer general\n";
    scratch.write("a.mtx", &format!("\n\n{banner}2 2 3\n1 1 1.0\n1 2 2.0\n2 2 3.0\n"));
    for file in ["a.ldac", "docword.a.txt", "a.mtx"] {
        assert_eq!(sizes(&scratch, file), [2, 2, 6], "{file}");
    }
}

#[test]
fn segmented_text_is_cut_at_white_space() {
    let scratch = Scratch::new("segmented");
    scratch.write(
        "zh.txt",
        "\u{4eca}\u{5929} \u{5929}\u{6c14} \u{53bb}\n\u{5929}\u{6c14} \u{6563}\u{6b65}\n",
    );
    assert_eq!(sizes(&scratch, "zh.txt --words whitespace"), [2, 4, 5]);
    let error = scratch.fail("zh.txt --topics 2", 1);
    assert!(error.contains("are shorter than --min-length"), "{error}");
}

#[test]
fn files_of_a_directory_that_are_no_text_are_skipped() {
    let scratch = Scratch::new("skipped");
    fs::create_dir(scratch.0.join("texts")).unwrap();
    scratch.write("texts/a.txt", "garden river bank");
    scratch.write("texts/c.txt", "market garden");
    fs::write(scratch.0.join("texts/b.txt"), b"caf\xe9 river").unwrap();
    std::os::unix::fs::symlink("nothing", scratch.0.join("texts/dangling")).unwrap();
    let output = scratch.train("texts --topics 2 --epochs 2");
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(error.contains("skipped texts/b.txt:1: invalid UTF-8"), "{error}");
    assert!(error.contains("skipped texts/dangling: "), "{error}");
    assert!(error.contains("2 files skipped"), "{error}");
    assert_eq!(sizes(&scratch, "texts"), [2, 4, 5]);
    let error = scratch.fail("texts --topics 2 --strict", 1);
    assert!(error.contains("texts/b.txt:1: invalid UTF-8"), "{error}");
    assert_eq!(sizes(&scratch, "texts --extensions .txt"), [2, 4, 5]);
    let error = scratch.fail("texts --topics 2 --extensions .md", 1);
    assert!(error.contains("no file has a name with the extension .md"), "{error}");
}

#[test]
fn inputs_without_words_say_why() {
    let scratch = Scratch::new("no-words");
    scratch.write("ids.txt", "12 45 45 99\n12 13\n");
    let error = scratch.fail("ids.txt --topics 2", 1);
    assert!(error.contains("of its 6 words 6 are numbers (--numbers keeps them)"), "{error}");
    fs::write(scratch.0.join("x.bz2"), b"BZh91AY&SY\0\0").unwrap();
    let error = scratch.fail("x.bz2 --topics 2", 1);
    assert!(error.contains("a bzip2 file, which is not read; unpack"), "{error}");
}

#[test]
fn dictionaries_name_words_by_id() {
    let scratch = Scratch::new("dictionaries");
    scratch.write("docword.a.txt", "2\n3\n4\n1 1 2\n1 2 1\n2 2 1\n2 3 2\n");
    scratch.write("plain.txt", "river\nbank\nstock\n");
    scratch.write("new.txt", "2\n2\tstock\t1\n0\triver\t1\n1\tbank\t2\n");
    let table = |words: &str| {
        let line = "--topics 2 --epochs 3 --quiet --topic-words out.csv";
        scratch.succeed(&format!("docword.a.txt --vocabulary {words} {line}"));
        scratch.read("out.csv").lines().skip(1).map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(table("new.txt"), table("plain.txt"));
    scratch.write("counts.txt", "river\t2\nbank\t2\nstock\t2\n");
    let error = scratch.fail("docword.a.txt --vocabulary counts.txt --topics 2", 1);
    assert!(error.contains("counts.txt:1: expected one word per line"), "{error}");
    scratch.write("twice.txt", "river\nbank\nriver\n");
    let output = scratch.train("docword.a.txt --vocabulary twice.txt --topics 2 --epochs 1");
    let note = "1 words have the name of another word, such as `river`";
    assert!(stderr(&output).contains(note), "{}", stderr(&output));
}

#[test]
fn data_are_not_read_as_prose() {
    let scratch = Scratch::new("data");
    scratch.write("docs.csv", "id,text\n0,\"first words\"\n1,more words\n");
    scratch.write("docs.tsv", "0\tgood\tfirst words\n1\tbad\tmore words\n");
    scratch.write("docs.jsonl", "{\"id\": 0, \"text\": \"first words\"}\n{\"id\": 1}\n");
    scratch.write("docs.json", "[{\"id\": 0, \"text\": \"first words\"}]\n");
    scratch.write("vw.txt", "d1 |text river:2 bank:1\nd2 |text stock:3\n");
    scratch.write("low.txt", "2\nhuman interface\ngraph trees\n");
    for (file, said) in [
        ("docs.csv", "the columns are `id`, `text`; name those of the texts in --text-column"),
        ("docs.tsv", "with --no-header, if the first line is a document"),
        ("docs.jsonl", "the columns are `id`, `text`; name those of the texts in --text-column,"),
        ("docs.json", "this is JSON"),
        ("vw.txt", "this is Vowpal Wabbit"),
        ("low.txt", "remove that line"),
    ] {
        let error = scratch.fail(&format!("{file} --topics 2"), 1);
        assert!(error.contains(said) && error.contains("--format to text"), "{error}");
        scratch.succeed(&format!("{file} --format text --topics 2 --epochs 1 --quiet"));
    }
}

#[test]
fn columns_of_tables_are_documents_with_names_and_dates() {
    let scratch = Scratch::new("columns");
    let table = "id,title,text,day\nx-1,\"River, bank\",\"wide\nriver\",2001-02-03\n\
        =2,Market,garden market,2002-03-04T10:00:00\n";
    scratch.write("docs.csv", table);
    let lines = "{\"id\": 7, \"title\": \"River bank\", \"text\": \"wide river\"}\n\
        {\"id\": \"y\", \"title\": \"Market\", \"text\": [\"garden\", \"market\"]}\n";
    scratch.write("docs.jsonl", lines);
    let columns = "--text-column title --text-column text --id-column id";
    assert_eq!(sizes(&scratch, &format!("docs.csv {columns}")), [2, 5, 7]);
    assert_eq!(sizes(&scratch, &format!("docs.jsonl {columns}")), [2, 5, 7]);
    let run = "--topics 2 --epochs 2 --quiet --doc-topics t.csv";
    let heads = |line: &str| -> Vec<String> {
        scratch.succeed(&format!("{line} {run}"));
        let head = |row: &str| row.rsplitn(3, ',').last().unwrap().to_owned();
        scratch.read("t.csv").lines().skip(1).map(head).collect()
    };
    let found = heads(&format!("docs.csv {columns} --date-column day"));
    assert_eq!(found, ["document,name,date", "0,x-1,2001-02-03", "1,'=2,2002-03-04"]);
    assert_eq!(heads(&format!("docs.jsonl {columns}")), ["document,name", "0,7", "1,y"]);
    // The documents of a directory have the names of their files.
    fs::create_dir_all(scratch.0.join("texts/inner")).unwrap();
    scratch.write("texts/inner/a.txt", "wide river");
    scratch.write("texts/b,c.txt", "garden market");
    assert_eq!(heads("texts"), ["document,name", "0,\"b,c.txt\"", "1,inner/a.txt"]);
    let error = scratch.fail(&format!("docs.csv {columns} --date-column title --topics 2"), 1);
    assert!(error.contains("docs.csv:2: `River, bank` is not a date"), "{error}");
    let error = scratch.fail("texts --text-column a --topics 2", 2);
    assert!(error.contains("only CSV and JSON lines have columns"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn one_large_number_does_not_take_all_memory() {
    let scratch = Scratch::new("large-numbers");
    scratch.write("small.svm", "1 1:1 2:1\n");
    let error = scratch.fail("small.svm --topics 2000000000 --epochs 2", 1);
    assert!(error.contains("bytes of memory, and this process may use"), "{error}");
    scratch.write("a.svm", "1 1:1\n1 1:1 20000000:1\n");
    scratch.write("docword.a.txt", "2\n20000000\n3\n1 1 1\n2 1 1\n2 20000000 1\n");
    for file in ["a.svm", "docword.a.txt"] {
        let line = format!("{file} --topics 2 --epochs 2 --memory-limit 1GB");
        let error = scratch.fail(&format!("{line} --max-unused-words 30000000"), 1);
        assert!(error.contains("the memory limit is 1000000000"), "{error}");
        let error = scratch.fail(&line, 1);
        let expected = "20000000 words, of which 19999998 have no token, more than 16777216; the \
                        largest word number is in document 2";
        assert!(
            error.contains(expected) && error.contains("raise the option --max-unused-words"),
            "{error}"
        );
    }
    // Nothing is allocated for each word before the estimate.
    scratch.write("b.svm", "1 2000000000:1\n");
    let line = "b.svm --topics 2 --epochs 2 --memory-limit 8GB --max-unused-words 4000000000";
    assert!(scratch.fail(line, 1).contains("the memory limit is 8000000000"));
}
