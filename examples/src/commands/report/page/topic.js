// The list of topics, and a topic: its words, its documents, its time.

const hasTime = contents.time !== undefined;

// Trend of a topic: the slope of its share over bins, weighted by their tokens and relative to its mean.
const trends = lazy(() =>
  topics.map((topic) => {
    const { tokens } = contents.time;
    let [n, x, y, xx, xy] = [0, 0, 0, 0, 0];
    topic.series().forEach((share, i) => {
      const weight = tokens[i];
      n += weight;
      x += weight * i;
      y += weight * share;
      xx += weight * i * i;
      xy += weight * i * share;
    });
    const variance = n * xx - x * x;
    return variance > 0 && y > 0 ? ((n * xy - x * y) / variance) * (n / y) : 0;
  }),
);

const SORTS = [
  ["size", "Largest first", () => bySize],
  ["number", "By number", () => topics.map(({ id }) => id)],
  ...(hasTime
    ? [
        ["rising", "Rising first", () => [...bySize].sort((a, b) => trends()[b] - trends()[a])],
        ["falling", "Falling first", () => [...bySize].sort((a, b) => trends()[a] - trends()[b])],
      ]
    : []),
];

const LAMBDA_HELP =
  "1 orders words by how often the topic says them, 0 by how much more often than others do";

// The slider: one element for all views, so that a redraw does not interrupt a drag.
const slider = lazy(() => {
  const output = h("output", { for: "lambda" });
  const input = h("input", {
    id: "lambda",
    type: "range",
    min: "0",
    max: "1",
    step: String(1 / steps),
    title: LAMBDA_HELP,
    "aria-describedby": "lambda-help",
  });
  const show = () => {
    input.value = String(state.lambda);
    output.textContent = state.lambda.toFixed(2);
  };
  input.addEventListener("input", () => {
    state.lambda = Math.round(Number(input.value) * steps) / steps;
    show();
    current.relevance?.();
    remember();
  });
  const element = h(
    "div",
    { class: "lambda" },
    h("label", { for: "lambda", text: "Relevance λ" }),
    output,
    h("span", { class: "end", text: "distinctive" }),
    input,
    h("span", { class: "end", text: "frequent" }),
    h("span", { id: "lambda-help", class: "hidden", text: LAMBDA_HELP }),
  );
  return { element, show };
});

function topicsView() {
  const widest = topics[bySize[0]]?.share || 1;
  const row = ({ id, word }) => {
    const { share } = topics[id];
    const names = ranked(id, state.lambda, 9)
      .filter((term) => term.word !== word)
      .map((term) => words[term.word]);
    return h(
      "a",
      { class: hasTime ? "topic-row timed" : "topic-row", href: link("topic", id) },
      h("span", { class: "number", text: id }),
      h(
        "span",
        { class: "share" },
        h("span", { class: "bar", css: { width: `${(100 * share) / widest}%` } }),
        h("span", { text: percent(share) }),
      ),
      h(
        "span",
        { class: "words" },
        topics[id].name === undefined ? null : h("strong", { text: `${topics[id].name} ` }),
        word === null || word === undefined ? null : h("mark", { text: words[word] }),
        ` ${names.join(" ")}`,
      ),
      hasTime ? sparkline(curveOf(topics[id])) : null,
    );
  };
  const list = new List("Topics", 40, row);
  const title = h("h2");
  const csv = h("button", {
    class: "step",
    type: "button",
    text: "CSV",
    title: "Download the topics with the words that are shown",
    on: { click: download },
  });
  const sort = h(
    "select",
    {
      "aria-label": "Order of topics",
      on: {
        change: () => {
          state.by = sort.value;
          remember();
          show();
        },
      },
    },
    SORTS.map(([name, text]) => h("option", { value: name, text, selected: name === state.by })),
  );
  const show = () => {
    map.query = find(state.query);
    markMap();
    list.show(map.query ?? SORTS.find(([name]) => name === state.by)[2]().map((id) => ({ id })));
    title.textContent =
      map.query === null
        ? plural(topics.length, "topic")
        : `${plural(map.query.length, "topic")} with “${clip(state.query, 40)}”`;
    sort.hidden = map.query !== null;
    say(title.textContent);
  };
  $("right").replaceChildren(
    h("div", { class: "head" }, title, h("div", { class: "steps" }, csv, sort)),
    slider().element,
    list.element,
  );
  slider().show();
  show();
  return { title: "Topics", relevance: () => list.redraw(), search: show };
}

// The table of topics as a file: text that a spreadsheet would take for a formula follows an apostrophe.
function topicsCsv() {
  const cell = (text) => `"${(/^[=+\-@]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  const rows = topics.map(({ id, name, share, total, coherence }) => {
    const terms = ranked(id, state.lambda).map((term) => words[term.word]);
    const numbers = [share, Math.round(total * unit), coherence ?? ""];
    return [id, cell(name ?? ""), ...numbers, cell(terms.join(" "))].join(",");
  });
  return ["topic,name,share,tokens,coherence,words", ...rows, ""].join("\n");
}

function download() {
  const href = URL.createObjectURL(new Blob([topicsCsv()], { type: "text/csv" }));
  h("a", { href, download: "topics.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}

function topicView(id) {
  const topic = topics[id];
  const [before, after] = [bySize[ranks[id] - 1], bySize[ranks[id] + 1]];
  const step = (to, text, name) =>
    to === undefined
      ? h("span", { class: "step off", text, "aria-hidden": "true" })
      : h("a", {
          class: "step",
          href: link("topic", to),
          text,
          "aria-label": `${name}, topic ${to}`,
          title: name,
        });
  const list = termList(id);
  $("right").replaceChildren(
    h(
      "div",
      { class: "head" },
      h("h2", {}, `Topic ${id} `, h("span", { class: "muted", text: label(id).join(" · ") })),
      h(
        "div",
        { class: "steps" },
        h("a", { class: "step", href: link("topics"), text: "All" }),
        step(before, "‹", "Larger"),
        step(after, "›", "Smaller"),
      ),
    ),
    h(
      "p",
      { class: "facts" },
      h("strong", { text: percent(topic.share) }),
      ` of the tokens (${count(topic.total * unit)}), number ${ranks[id] + 1} of ${count(topics.length)} by size`,
      topic.coherence === undefined
        ? null
        : h("span", {
            title: `${contents.coherence} of its ten most probable words: 1 if they always occur together, 0 by chance`,
            text: `, coherence ${topic.coherence.toFixed(2)}`,
          }),
    ),
    slider().element,
    list.element,
    hasTime ? timeSection(topic) : null,
    documentsOf(topic),
    nearOf(topic),
  );
  $("right")
    .querySelectorAll(":scope > .empty")
    .forEach((empty) => empty.remove());
  slider().show();
  list.show();
  say(`Topic ${id}, ${percent(topic.share)}: ${label(id).join(", ")}`);
  return { title: `Topic ${id}`, relevance: list.show };
}

// Bars: tokens of a word in the topic, as part of its tokens in all topics.
function termList(id) {
  const rows = Array.from({ length: shown }, () => {
    const [word, all, own, number] = [
      h("span", { class: "word" }),
      h("span", { class: "all" }),
      h("span", { class: "own" }),
      h("span", { class: "number" }),
    ];
    return {
      li: h("li", {}, word, h("span", { class: "track" }, all, own), number),
      word,
      all,
      own,
      number,
    };
  });
  const element = h(
    "section",
    { "aria-label": "Words of the topic" },
    h(
      "ol",
      { class: "terms", id: "terms" },
      rows.map(({ li }) => li),
    ),
    h(
      "p",
      { class: "key" },
      h("span", { class: "own" }),
      "tokens in this topic",
      h("span", { class: "all" }),
      "in all topics",
    ),
  );
  const show = () => {
    const found = ranked(id, state.lambda);
    const most = Math.max(1, ...found.map(({ word }) => frequencies[word]));
    rows.forEach(({ li, word, all, own, number }, i) => {
      li.hidden = i >= found.length;
      if (li.hidden) return;
      const term = found[i];
      const everywhere = frequencies[term.word];
      word.textContent = words[term.word];
      word.title = words[term.word];
      all.style.width = `${(100 * everywhere) / most}%`;
      own.style.width = `${(100 * term.count) / most}%`;
      number.textContent = count(term.count * unit);
      li.title = `${percent(term.probability)} of the topic; ${count(term.count * unit)} of its ${count(everywhere * unit)} tokens`;
    });
  };
  return { element, show };
}

// Bins with enough tokens: in a bin of few tokens, shares are noise.
const telling = lazy(() => {
  const { tokens } = contents.time;
  const enough = tokens.reduce((sum, n) => sum + n, 0) / tokens.length / 10;
  return tokens.map((_, i) => i).filter((i) => tokens[i] >= enough);
});

// (bin, share) of a topic.
const curveOf = (topic) => telling().map((i) => [i, topic.series()[i]]);

function timeSection(topic) {
  const { bins, tokens, unit: bin } = contents.time;
  const points = curveOf(topic);
  const [top, most] = points.reduce((best, point) => (point[1] > best[1] ? point : best));
  const every = Math.max(1, Math.ceil((points[points.length - 1][0] - points[0][0] + 1) / 6));
  const drawn = chart([{ name: "", points }], {
    width: Math.min(620, $("right").clientWidth),
    height: 150,
    from: 0,
    area: true,
    nameX: (i) => bins[i],
    nameY: (share) => `${Number((100 * share).toPrecision(3))}%`,
    noteX: (i) => `${bins[i]}, ${plural(tokens[i], "token")}`,
    xTicks: bins.map((_, i) => i).filter((i) => (i - points[0][0]) % every === 0),
    title: `Share of the topic by ${bin}; most in ${bins[top]}, ${percent(most)}`,
  });
  const few = bins.length - points.length;
  const without = few === 0 ? "" : `; without ${few} with too few tokens`;
  return h(
    "section",
    {},
    h(
      "h3",
      {},
      "Over time ",
      h("span", {
        class: "muted",
        text: `share of the tokens of each ${bin}; most in ${bins[top]}${without}`,
      }),
    ),
    drawn,
  );
}

function documentsOf(topic) {
  const found = topic.documents();
  if (found.length === 0) return h("span", { class: "empty" });
  return h(
    "section",
    {},
    h("h3", { text: "Most typical documents" }),
    h(
      "ol",
      { class: "documents" },
      found.map(([at, share]) => {
        const document = documents[at];
        return h(
          "li",
          {},
          h(
            "a",
            { href: link("document", document.number) },
            h(
              "span",
              { class: "share" },
              h("span", { class: "bar", css: { width: `${100 * share}%` } }),
              h("span", { text: percent(share) }),
            ),
            h(
              "span",
              { class: "what" },
              h("strong", { text: documentName(document) }),
              ` ${excerpt(document, 14)}`,
            ),
            h("span", { class: "muted", text: document.date ?? "" }),
          ),
        );
      }),
    ),
  );
}

function nearOf(topic) {
  if (topic.near.length === 0) return h("span", { class: "empty" });
  return h(
    "section",
    {},
    h("h3", {}, "Similar topics ", h("span", { class: "muted", text: "by distance, 0 to 1" })),
    h(
      "ul",
      { class: "near" },
      topic.near.map(([id, far]) =>
        h(
          "li",
          {},
          h(
            "a",
            { href: link("topic", id) },
            h("span", { class: "number", text: id }),
            h("span", { class: "words", text: label(id).join(" ") }),
            h("span", { class: "muted", text: (far / 1000).toFixed(2) }),
          ),
        ),
      ),
    ),
  );
}
