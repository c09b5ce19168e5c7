//! Plots of a projection.

use super::super::plot::{BarGroup, Bars, Chart, Curve, PALETTE, Scale, Scene};
use super::{Line, Measured, ScalePlan, largest};

pub(super) fn draw(plan: &ScalePlan, measured: &Measured, lines: &[Line]) -> Vec<(String, Scene)> {
    let last = lines.iter().map(|line| line.after).max().unwrap_or(0);
    let note = format!("K = {}, after {last} epochs", plan.topics);
    let mut scenes = Vec::new();
    let mut add = |name: String, scene: Option<Scene>| {
        scenes.extend(scene.map(|scene| (name, scene)));
    };
    let fast = plan.machine.gbit.iter().copied().fold(0.0, f64::max);
    let at =
        |line: &Line, gbit: f64| line.takes.times.iter().find(|time| time.gbit == gbit).copied();
    let curves = |grows: bool, of: &dyn Fn(&Line) -> Option<f64>| {
        let arms = plan.arms().into_iter().enumerate().map(|(number, (arm, _))| {
            let most = plan.machines.last();
            let own = lines.iter().filter(|line| line.arm == arm && line.after == last);
            let own = own.filter(|line| line.grows == grows || Some(&line.machines) == most);
            Curve {
                label: arm.to_owned(),
                color: PALETTE[number % PALETTE.len()],
                dashed: arm == plan.beside,
                points: own
                    .filter_map(|line| Some((f64::from(line.machines), of(line)?)))
                    .collect(),
            }
        });
        arms.collect::<Vec<Curve>>()
    };
    let chart = |title: &str, note: String, y_label: &str, curves| {
        Chart {
            title: title.to_owned(),
            note,
            x_label: "machines".to_owned(),
            y_label: y_label.to_owned(),
            x_scale: Scale::Log,
            y_low: Some(0.0),
            y_high: None,
            curves,
            marks: Vec::new(),
        }
        .draw()
    };
    for &gbit in &plan.machine.gbit {
        let seconds = |line: &Line| Some(at(line, gbit)?.hidden);
        let note = format!("{note}, {gbit} Gbit/s, tokens grow with machines");
        let title = "Seconds per epoch, network time hidden";
        add(format!("seconds-{gbit}"), chart(title, note, "seconds", curves(true, &seconds)));
    }
    let a_token = |line: &Line| Some(line.takes.bytes.total() / line.tokens);
    let title = "Bytes per token and epoch";
    let grown = format!("{note}, tokens grow with machines");
    add("bytes".to_owned(), chart(title, grown, "bytes per token", curves(true, &a_token)));
    let fixed = format!("{note}, all tokens on each number of machines");
    add(
        "bytes-all-tokens".to_owned(),
        chart(title, fixed, "bytes per token", curves(false, &a_token)),
    );
    add("parts-of-time".to_owned(), parts(plan, lines, last, fast));
    add("kinds".to_owned(), kinds(plan, lines, last, &note));
    add("model-and-runs".to_owned(), runs(measured));
    scenes
}

/// Stacked bars: what an epoch waits for.
fn parts(plan: &ScalePlan, lines: &[Line], last: u32, gbit: f64) -> Option<Scene> {
    let names = [
        "worker samples",
        "rounds as long as their slowest",
        "beside, all rounds",
        "heaviest server samples",
        "worker's link",
        "heaviest server's link",
        "master's link",
    ];
    let own = largest(plan, lines).into_iter().filter(|line| line.after == last);
    let groups = own.filter_map(|line| {
        let time = line.takes.times.iter().find(|time| time.gbit == gbit)?;
        let values = [
            line.takes.worker_seconds,
            time.sampling,
            time.beside * f64::from(line.rounds),
            line.takes.server_seconds,
            time.worker,
            time.server,
            time.master,
        ];
        Some(BarGroup { label: line.arm.clone(), values: values.map(Some).to_vec() })
    });
    Bars {
        title: "What an epoch waits for".to_owned(),
        note: format!(
            "{} machines, {gbit} Gbit/s, one core per node, after {last} epochs",
            plan.machines.last()?
        ),
        y_label: "seconds".to_owned(),
        series: names
            .iter()
            .zip(PALETTE)
            .map(|(name, color)| ((*name).to_owned(), color))
            .collect(),
        groups: groups.collect(),
    }
    .draw()
}

/// Stacked bars: bytes by kind.
fn kinds(plan: &ScalePlan, lines: &[Line], last: u32, note: &str) -> Option<Scene> {
    let own: Vec<&Line> =
        largest(plan, lines).into_iter().filter(|line| line.after == last).collect();
    let names = own.first()?.takes.bytes.each().map(|it| it.0.to_owned());
    let groups = own.iter().map(|line| BarGroup {
        label: line.arm.clone(),
        values: line.takes.bytes.each().map(|(_, bytes)| Some(bytes / 1e12)).to_vec(),
    });
    Bars {
        title: "Bytes per epoch, by kind".to_owned(),
        note: format!("{} machines, {note}", plan.machines.last()?),
        y_label: "TB".to_owned(),
        series: names.into_iter().zip(PALETTE).collect(),
        groups: groups.collect(),
    }
    .draw()
}

/// Predicted next to measured bytes.
fn runs(measured: &Measured) -> Option<Scene> {
    let groups = measured.checked.iter().map(|it| {
        let way = if it.symmetric { "sym." } else { "asym." };
        BarGroup {
            label: format!("{}/{}\n{way} {}", it.shards, it.servers, it.epoch),
            values: vec![Some(it.measured.total() / 1e6), Some(it.predicted.total() / 1e6)],
        }
    });
    Bars {
        title: "The model against runs".to_owned(),
        note: "shards/servers, way, epoch".to_owned(),
        y_label: "MB per epoch".to_owned(),
        series: vec![("moved".to_owned(), PALETTE[0]), ("predicted".to_owned(), PALETTE[5])],
        groups: groups.collect(),
    }
    .draw()
}
