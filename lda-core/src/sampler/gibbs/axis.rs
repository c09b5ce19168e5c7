//! The visited axis as a type, so that sweeps are compiled for it.

use crate::counts::Rows;
use crate::layout::Order;
use crate::sampler::Context;
use crate::sampler::topic_prior::TopicPrior;

/// Priors of the two axes.
#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct Priors<'a> {
    /// Prior of the visited axis: b_k = (count + prior) / (C_k + Vβ).
    pub visited: TopicPrior<'a>,
    /// Prior of the other axis: the weight of b_k in the part that is not scanned.
    pub partner: TopicPrior<'a>,
}

/// The axis visited.
pub(in crate::sampler) trait Axis: 'static {
    /// Order of tokens.
    const ORDER: Order;

    /// The priors as this axis sees them.
    fn priors<'a>(cx: &Context<'a>) -> Priors<'a>;

    /// Rows visited and partners' rows, of C_w and C_d.
    fn rows<'a, T>(
        words: &'a mut Rows<T>,
        documents: &'a mut Rows<T>,
    ) -> (&'a mut Rows<T>, &'a mut Rows<T>);
}

/// Words are visited, documents are partners.
#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct ByWord;

/// Documents are visited, words are partners.
#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct ByDocument;

fn alpha<'a>(cx: &Context<'a>) -> TopicPrior<'a> {
    TopicPrior::new(cx.alpha, cx.alpha_symmetric)
}

impl Axis for ByWord {
    const ORDER: Order = Order::ByWord;

    fn priors<'a>(cx: &Context<'a>) -> Priors<'a> {
        Priors { visited: TopicPrior::symmetric(cx.beta as f32), partner: alpha(cx) }
    }

    #[inline(always)]
    fn rows<'a, T>(
        words: &'a mut Rows<T>,
        documents: &'a mut Rows<T>,
    ) -> (&'a mut Rows<T>, &'a mut Rows<T>) {
        (words, documents)
    }
}

impl Axis for ByDocument {
    const ORDER: Order = Order::ByDocument;

    fn priors<'a>(cx: &Context<'a>) -> Priors<'a> {
        Priors { visited: alpha(cx), partner: TopicPrior::symmetric(cx.beta as f32) }
    }

    #[inline(always)]
    fn rows<'a, T>(
        words: &'a mut Rows<T>,
        documents: &'a mut Rows<T>,
    ) -> (&'a mut Rows<T>, &'a mut Rows<T>) {
        (documents, words)
    }
}
