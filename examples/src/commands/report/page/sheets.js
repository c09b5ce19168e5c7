// Views without the map: training, and where the page comes from; and help.

function trainingView() {
  let by = "epochs";
  const area = h("div");
  const { curves } = contents;
  const draw = () => {
    const width = Math.max(320, Math.min(1080, $("right").clientWidth));
    const x = (curve, i) => curve[by][i];
    const nameX = (value) => (by === "epochs" ? count(value) : `${Number(value.toPrecision(3))} s`);
    const common = {
      width,
      height: width < 600 ? 300 : 420,
      nameX,
      labelX: by === "epochs" ? "epochs" : "seconds of sampling",
    };
    const joint = curves.map((curve) => ({
      name: curves.length > 1 ? curve.name : "",
      points: curve.values.map((value, i) => [x(curve, i), value]),
    }));
    const held = curves
      .filter(({ perplexity }) => perplexity.length > 0)
      .map((curve) => ({
        name: curve.name,
        points: curve.perplexity.map(([epoch, seconds, value]) => [
          by === "epochs" ? epoch : seconds,
          value,
        ]),
      }));
    const last = curves
      .map((curve) => `${curve.name} ends at ${curve.values[curve.values.length - 1].toFixed(4)}`)
      .join("; ");
    area.replaceChildren(
      chart(joint, {
        ...common,
        labelY: "log joint likelihood a token (nats)",
        nameY: (y) => String(Number(y.toFixed(4))),
        title: `Log joint likelihood a token by ${by}: ${last}`,
      }),
      ...(held.length === 0
        ? []
        : [
            chart(held, {
              ...common,
              height: 240,
              labelY: "perplexity of held-out documents",
              nameY: (y) => String(Number(y.toFixed(2))),
              title: "Perplexity of held-out documents",
            }),
          ]),
    );
  };
  const choose = (name, text) =>
    h("button", {
      type: "button",
      "aria-pressed": String(name === by),
      text,
      on: {
        click: (event) => {
          by = name;
          event.target.parentElement
            .querySelectorAll("button")
            .forEach((button) =>
              button.setAttribute("aria-pressed", String(button === event.target)),
            );
          draw();
        },
      },
    });
  const table = h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["Log", "Run", "Epochs", "Seconds", "Log joint a token"].map((text, i) =>
          h("th", { scope: "col", class: i > 1 ? "number" : undefined, text }),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      curves.map((curve, i) => {
        const end = curve.values.length - 1;
        return h(
          "tr",
          {},
          h("td", {}, h("span", { class: `dash c${i % COLOURS}` }), curve.name),
          h("td", { text: curve.caption }),
          [
            count(curve.epochs[end]),
            curve.seconds[end].toFixed(1),
            curve.values[end].toFixed(4),
          ].map((text) => h("td", { class: "number", text })),
        );
      }),
    ),
  );
  const known = bestLogJoint();
  $("right").replaceChildren(
    h(
      "div",
      { class: "head" },
      h("h2", { text: "Training" }),
      curves.length === 0
        ? null
        : h(
            "div",
            { class: "choice", role: "group", "aria-label": "Horizontal axis" },
            choose("epochs", "Epochs"),
            choose("seconds", "Seconds"),
          ),
    ),
    ...(curves.length === 0
      ? [
          h(
            "p",
            {},
            "Log joint likelihood a token at the end: ",
            h("strong", { text: Number(known).toFixed(4) }),
            ". A log of the run would show how it got there.",
          ),
        ]
      : [
          area,
          h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Logs" }, table),
        ]),
  );
  if (curves.length > 0) draw();
  return { title: "Training", resize: curves.length > 0 ? draw : undefined };
}

function aboutView() {
  const sections = contents.about.map(({ title, rows }) =>
    h(
      "section",
      {},
      h("h3", { text: title }),
      h(
        "dl",
        {},
        rows.flatMap(([name, value]) => [h("dt", { text: name }), h("dd", { text: value })]),
      ),
    ),
  );
  $("right").replaceChildren(
    h("div", { class: "head" }, h("h2", { text: "About this page" })),
    h("div", { class: "sheets" }, sections),
    h(
      "section",
      { class: "prose" },
      h("h3", { text: "How to read it" }),
      ABOUT.map((text) => h("p", { text })),
    ),
  );
  return { title: "About" };
}

const ABOUT = [
  "Topics and documents are numbered from 0, as in the files of train and infer.",
  "Map: topics that use like words are near one another. Distances are square roots of Jensen-Shannon divergences, from 0 for equal topics to 1 for topics without a word in common; a plane cannot keep all of them, and the stress says how much is lost (0 is nothing). Axes have no meaning. A circle's area is the topic's share of the tokens; lines lead to the topics that are nearest before anything is flattened.",
  "Words: relevance is λ ln φ + (1 − λ) ln(φ / p), where φ is the word's probability in the topic and p that in all of them (Sievert and Shirley 2014).",
  "Documents: shares are of the posterior, prior included. Most typical of a topic are those where its tokens times the share that they are of all tokens is greatest. A word's topic is the most probable one given the word and the document's shares.",
];

const KEYS = [
  ["/", "find a word or a topic's number"],
  ["[ and ]", "larger and smaller topic; document before and after"],
  ["Arrows", "on the map, the next topic that way; on the slider, the next λ"],
  ["Home, End", "on the map, the largest and the smallest topic"],
  ["+ and −", "on the map, zoom; also Ctrl and the wheel"],
  ["Esc", "back to the list"],
  ["?", "this help"],
];

function buildHelp() {
  const close = h("button", {
    type: "button",
    text: "Close",
    on: { click: () => $("help").close() },
  });
  // A page that was saved with what it showed begins anew.
  $("help").replaceChildren(
    h("h2", { id: "help-title", text: "Keys" }),
    h(
      "dl",
      {},
      KEYS.flatMap(([key, text]) => [h("dt", {}, h("kbd", { text: key })), h("dd", { text })]),
    ),
    close,
  );
  $("help-open").addEventListener("click", () => $("help").showModal());
}
