//! Which contender is drawn in which colour.

use lda_core::train::SamplerKind;

use super::super::plot::{Color, PALETTE};
use super::super::{Contender, Plan, Rival};

/// The colours of a plan's contenders, the same in every plot of it.
///
/// A sampler or rival has its colour in all plans: samplers take them from the first on and rivals
/// from the last, so that all differ as long as there are as many colours. Variants take those that
/// no other contender of their plan has, in their order.
pub(super) struct Colors {
    /// By name.
    variants: Vec<(String, Color)>,
}

impl Colors {
    pub(super) fn of_plan(plan: &Plan) -> Self {
        let samplers = plan.samplers.iter().map(|&kind| fixed(kind));
        let rivals = plan.rivals.iter().map(|&rival| fixed(rival.into()));
        let taken: Vec<Color> = samplers.chain(rivals).collect();
        let free: Vec<Color> = PALETTE.into_iter().filter(|color| !taken.contains(color)).collect();
        // Twenty contenders leave none.
        let free = if free.is_empty() { PALETTE.to_vec() } else { free };
        Self { variants: plan.variant.keys().cloned().zip(free.into_iter().cycle()).collect() }
    }

    /// The colour of `contender` that runs under `name`.
    pub(super) fn of(&self, contender: Contender, name: &str) -> Color {
        let variant = self.variants.iter().find(|(variant, _)| variant == name);
        variant.map_or_else(|| fixed(contender), |(_, color)| *color)
    }
}

fn fixed(contender: Contender) -> Color {
    let place = match contender {
        Contender::Sampler(kind) => SamplerKind::ALL.iter().position(|other| *other == kind),
        Contender::Auto => Some(SamplerKind::ALL.len()),
        Contender::Rival(rival) => {
            let place = Rival::ALL.iter().position(|other| *other == rival);
            place.map(|place| PALETTE.len() - 1 - place % PALETTE.len())
        }
    };
    PALETTE[place.unwrap_or_default() % PALETTE.len()]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn different(colors: impl IntoIterator<Item = Color>) -> usize {
        let colors = colors.into_iter().map(|Color(r, g, b)| [r, g, b]);
        colors.collect::<HashSet<[u8; 3]>>().len()
    }

    #[test]
    fn contenders_have_colours_of_their_own() {
        let samplers = SamplerKind::ALL.into_iter().map(Contender::from);
        let contenders: Vec<_> = samplers.chain(Rival::ALL.map(Contender::from)).collect();
        let colors = contenders.iter().map(|contender| fixed(*contender));
        assert_eq!(different(colors), contenders.len().min(PALETTE.len()));
    }

    #[test]
    fn variants_take_colours_that_are_free() {
        let text = "samplers = [\"light\", \"warp\"]\nrivals = [\"spark\"]\n\
                    [variant.a]\nsampler = \"light\"\n[variant.b]\nsampler = \"light\"";
        let colors = Colors::of_plan(&toml::from_str(text).unwrap());
        let (light, warp) = (SamplerKind::Light.into(), SamplerKind::Warp.into());
        let all = [(light, "light"), (warp, "warp"), (light, "a"), (light, "b")];
        let all = all.map(|(contender, name)| colors.of(contender, name));
        assert_eq!(different(all.into_iter().chain([fixed(Rival::Spark.into())])), 5);
        assert_eq!(all[2], PALETTE[0]);
    }

    #[test]
    fn more_variants_than_colours_share_them() {
        let tables = (0..30).map(|i| format!("[variant.v{i}]\nsampler = \"warp\"\n"));
        let plan = toml::from_str(&tables.collect::<String>()).unwrap();
        let colors = Colors::of_plan(&plan);
        assert_eq!(colors.variants.len(), 30);
        assert_eq!(different(colors.variants.into_iter().map(|(_, color)| color)), 19);
    }
}
