//! Facts about this build, for `lda --version`.

use std::sync::LazyLock;

use lda_core::simd::Isa;

/// Each feature of the package, and whether it is compiled in.
const FEATURES: [(&str, bool); 10] = [
    ("train", cfg!(feature = "train")),
    ("infer", cfg!(feature = "infer")),
    ("convert", cfg!(feature = "convert")),
    ("report", cfg!(feature = "report")),
    ("serve", cfg!(feature = "serve")),
    ("cluster", cfg!(feature = "cluster")),
    ("status", cfg!(feature = "status")),
    ("grpc", cfg!(feature = "grpc")),
    ("object-store", cfg!(feature = "object-store")),
    ("mpi", cfg!(feature = "mpi")),
];

/// Version, compiled features and instruction set: three lines.
pub static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let features: Vec<&str> =
        FEATURES.iter().filter(|(_, compiled)| *compiled).map(|(name, _)| *name).collect();
    format!(
        "{}\nfeatures: {}\ninstruction set: {}",
        env!("CARGO_PKG_VERSION"),
        features.join(" "),
        Isa::detect()
    )
});
