//! The operations of [`Lanes`](super::Lanes) that are one instruction of two operands, one line
//! each. The trait and its three implementations are made from these lines.
//!
//! Operations with an instruction sequence, a constant, a memory operand or a scalar form that is not
//! inlined are written out in each file.

/// Calls `$make!` with the table: documentation, name, type of operands and result, AVX2, AVX-512,
/// and the definition of a lane.
macro_rules! lanewise {
    ($make:ident) => {
        $make! {
            "`a + b`.", add_f, F, _mm256_add_ps, _mm512_add_ps, |a, b| a + b;
            "`a − b`.", sub_f, F, _mm256_sub_ps, _mm512_sub_ps, |a, b| a - b;
            "`a · b`.", mul_f, F, _mm256_mul_ps, _mm512_mul_ps, |a, b| a * b;
            "`a / b`, correctly rounded.", div_f, F, _mm256_div_ps, _mm512_div_ps, |a, b| a / b;
            "`a + b`, wrapping.", add_u, U, _mm256_add_epi32, _mm512_add_epi32, u32::wrapping_add;
            "`a − b`, wrapping.", sub_u, U, _mm256_sub_epi32, _mm512_sub_epi32, u32::wrapping_sub;
            "`a & b`.", and_u, U, _mm256_and_si256, _mm512_and_si512, |a, b| a & b;
            "`a | b`.", or_u, U, _mm256_or_si256, _mm512_or_si512, |a, b| a | b;
            "`a ^ b`.", xor_u, U, _mm256_xor_si256, _mm512_xor_si512, |a, b| a ^ b;
        }
    };
}

pub(super) use lanewise;
