// Views without the map: training, the origin of the page, and help.

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
    const changes = curves.flatMap((curve) =>
      curve.changes.map(([epoch, seconds, sampler]) => [
        by === "epochs" ? epoch : seconds,
        curves.length > 1 ? `${curve.name}: ${sampler}` : `${sampler} from here`,
      ]),
    );
    const last = curves
      .map((curve) => `${curve.name} ends at ${curve.values[curve.values.length - 1].toFixed(4)}`)
      .join("; ");
    area.replaceChildren(
      chart(joint, {
        ...common,
        changes,
        labelY: "log joint likelihood per token (nats)",
        nameY: (y) => String(Number(y.toFixed(4))),
        title: `Log joint likelihood per token by ${by}: ${last}`,
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
        ["Log", "Run", "Epochs", "Seconds", "Log joint per token"].map((text, i) =>
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
            "Log joint likelihood per token at the end: ",
            h("strong", { text: Number(known).toFixed(4) }),
            ". With --log FILE, a log of lda train, the page shows its curve.",
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
  "Topics and documents are numbered from 0, as in the files of lda train and lda infer.",
  "Map: topics that use similar words are near each other. Distances are square roots of Jensen-Shannon divergences, from 0 for equal topics to 1 for topics without a common word. A plane cannot preserve all of them; the stress measures the error: 0 is none, and above 0.2 the map is poor (Kruskal 1964). The axes have no meaning. The area of a circle is the topic's share of the tokens. Lines lead to the nearest topics by the distances before the projection.",
  "Words: relevance is λ ln φ + (1 − λ) ln(φ / p), where φ is the probability of the word in the topic and p its probability in all topics (Sievert and Shirley 2014).",
  "Documents: shares are posterior means, with the prior. A document is typical of a topic by its tokens of the topic times the topic's share of the document. The topic of a word is the most probable one given the word and the shares of the document.",
];

const KEYS = [
  ["/", "find a word or a topic number"],
  ["[ and ]", "larger and smaller topic; previous and next document"],
  ["Arrows", "on the map, the nearest topic in that direction; on the slider, the next λ"],
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
  // A saved page contains the elements that it showed, so they are replaced.
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
