//! Colours of methods in plots.

use lda_core::train::SamplerKind;

use super::super::plot::{Color, PALETTE};
use super::super::{Baseline, Method, Plan};

/// Colours of a plan's methods, the same in all its plots.
///
/// A sampler or baseline has the same colour in every plan: samplers take the palette from its
/// start and baselines from its end, so all differ while there are enough colours. Variants take
/// colours that no other method of their plan has, in order.
pub(super) struct Colors {
    /// By name.
    variants: Vec<(String, Color)>,
}

impl Colors {
    pub(super) fn of_plan(plan: &Plan) -> Self {
        let samplers = plan.samplers.iter().map(|&kind| fixed(kind));
        let baselines = plan.baselines.iter().map(|&baseline| fixed(baseline.into()));
        let taken: Vec<Color> = samplers.chain(baselines).collect();
        let free: Vec<Color> = PALETTE.into_iter().filter(|color| !taken.contains(color)).collect();
        // Twenty methods use all colours.
        let free = if free.is_empty() { PALETTE.to_vec() } else { free };
        Self { variants: plan.variant.keys().cloned().zip(free.into_iter().cycle()).collect() }
    }

    /// The colour of `method` that runs under `name`.
    pub(super) fn of(&self, method: Method, name: &str) -> Color {
        let variant = self.variants.iter().find(|(variant, _)| variant == name);
        variant.map_or_else(|| fixed(method), |(_, color)| *color)
    }
}

fn fixed(method: Method) -> Color {
    let place = match method {
        Method::Sampler(kind) => SamplerKind::ALL.iter().position(|other| *other == kind),
        Method::Auto => Some(SamplerKind::ALL.len()),
        Method::PolyaUrn => Some(SamplerKind::ALL.len() + 1),
        Method::Baseline(baseline) => {
            let place = Baseline::ALL.iter().position(|other| *other == baseline);
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
    fn methods_have_colours_of_their_own() {
        let samplers = SamplerKind::ALL.into_iter().map(Method::from);
        let methods: Vec<_> = samplers.chain(Baseline::ALL.map(Method::from)).collect();
        let colors = methods.iter().map(|method| fixed(*method));
        assert_eq!(different(colors), methods.len().min(PALETTE.len()));
    }

    #[test]
    fn variants_take_colours_that_are_free() {
        let text = "samplers = [\"light\", \"warp\"]\nbaselines = [\"spark\"]\n\
                    [variant.a]\nsampler = \"light\"\n[variant.b]\nsampler = \"light\"";
        let colors = Colors::of_plan(&toml::from_str(text).unwrap());
        let (light, warp) = (SamplerKind::Light.into(), SamplerKind::Warp.into());
        let all = [(light, "light"), (warp, "warp"), (light, "a"), (light, "b")];
        let all = all.map(|(method, name)| colors.of(method, name));
        assert_eq!(different(all.into_iter().chain([fixed(Baseline::Spark.into())])), 5);
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
