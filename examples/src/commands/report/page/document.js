// The list of documents, and a document: its topics, and each word in the colour of its topic.

// Number of topics of a document with a colour and a letter; more could not be distinguished.
const COLOURS = 8;
const letter = (place) => String.fromCharCode(97 + place);

function legend(document) {
  return document.topics().slice(0, COLOURS);
}

// A bar of the shares of a document's topics.
function shareBar(document) {
  const parts = legend(document).map(({ topic, share }, i) =>
    h("span", {
      class: `c${i}`,
      css: { width: `${100 * share}%` },
      title: `Topic ${topic}: ${percent(share)}`,
    }),
  );
  return h("span", { class: "stack", "aria-hidden": "true" }, parts);
}

function documentsView() {
  // Without colours: they distinguish the topics of one document, and in a list they would suggest that
  // one colour is one topic.
  const leading = (document) =>
    h(
      "span",
      { class: "leading" },
      document
        .topics()
        .slice(0, 4)
        .flatMap(({ topic, share }) => [
          h("b", { text: percent(share) }),
          ` ${label(topic).slice(0, 2).join(" ")}`,
        ]),
    );
  const list = new List("Documents", innerWidth > 700 ? 58 : 74, (document) =>
    h(
      "a",
      { class: "document-row", href: link("document", document.number) },
      h(
        "span",
        { class: "what" },
        h("strong", { text: documentName(document) }),
        ` ${excerpt(document, 12)}`,
      ),
      h("span", {
        class: "muted",
        text: [document.date, plural(document.tokens, "token")].filter(Boolean).join(" · "),
      }),
      leading(document),
    ),
  );
  const title = h("h2");
  const show = () => {
    const text = state.query.trim().toLowerCase();
    const found =
      text === ""
        ? documents
        : documents.filter(
            (document) =>
              String(document.number) === text ||
              documentName(document).toLowerCase().includes(text) ||
              document.date?.startsWith(text),
          );
    list.show(found);
    title.textContent =
      text === ""
        ? plural(documents.length, "document")
        : `${plural(found.length, "document")} with “${clip(state.query, 40)}” as number, date or in the title`;
    say(title.textContent);
  };
  const some =
    documents.length < contents.corpus.documents
      ? h("p", {
          class: "facts",
          text: `Of ${count(contents.corpus.documents)} documents, the most typical ones of each topic.`,
        })
      : null;
  $("right").replaceChildren(
    h("div", { class: "head" }, title),
    ...(some ? [some] : []),
    list.element,
  );
  show();
  return { title: "Documents", search: show };
}

function documentView(number) {
  const at = documentAt.get(number);
  const document = documents[at];
  const named = legend(document);
  const text = documentText(document);
  // A press on a topic highlights its words; a second press ends that.
  let alone = null;
  const press = (place) => {
    alone = alone === place ? null : place;
    text.classList.toggle("alone", alone !== null);
    for (const word of text.querySelectorAll("[data-topic]"))
      word.classList.toggle("on", Number(word.dataset.topic) === alone);
    entries
      .querySelectorAll("button")
      .forEach((button, i) => button.setAttribute("aria-pressed", String(i === alone)));
  };
  const entries = h(
    "ul",
    { class: "legend", id: "legend" },
    named.map(({ topic, share }, i) =>
      h(
        "li",
        {},
        h(
          "button",
          {
            type: "button",
            class: `c${i}`,
            "aria-pressed": "false",
            "aria-label": `Highlight the words of topic ${topic}`,
            on: { click: () => press(i) },
          },
          h("span", { class: `swatch c${i}`, text: letter(i) }),
        ),
        h(
          "a",
          { href: link("topic", topic) },
          h("span", { class: "number", text: topic }),
          h("span", { class: "words", text: label(topic).join(" ") }),
        ),
        h("span", { class: "number", text: percent(share) }),
      ),
    ),
  );
  const [before, after] = [documents[at - 1], documents[at + 1]];
  const step = (to, sign, name) =>
    to === undefined
      ? h("span", { class: "step off", text: sign, "aria-hidden": "true" })
      : h("a", {
          class: "step",
          href: link("document", to.number),
          text: sign,
          "aria-label": name,
          title: name,
        });
  const facts = [
    document.title === undefined ? null : `document ${document.number}`,
    document.date,
    plural(document.tokens, "token"),
    document.unknown > 0
      ? `${count(document.unknown)} tokens of unknown words`
      : null,
  ]
    .filter(Boolean)
    .join(" · ");
  $("right").replaceChildren(
    h(
      "div",
      { class: "head" },
      h("h2", { text: documentName(document) }),
      h(
        "div",
        { class: "steps" },
        h("a", { class: "step", href: link("documents"), text: "All" }),
        step(before, "‹", "Previous document"),
        step(after, "›", "Next document"),
      ),
    ),
    h("p", { class: "facts", text: facts }),
    shareBar(document),
    entries,
    ...(document.text === undefined
      ? []
      : [
          h(
            "details",
            { class: "original", open: true },
            h("summary", { text: "Text" }),
            h("p", { dir: "auto", text: document.text }),
          ),
        ]),
    text,
    h("p", { class: "note", text: documentNote(document) }),
  );
  say(
    `${documentName(document)}: ${named.map(({ topic, share }) => `topic ${topic}, ${percent(share)}`).join("; ")}`,
  );
  return { title: documentName(document) };
}

function documentText(document) {
  const all = document.words();
  const order = document.order();
  const span = ({ word, topic, tokens }, times) => {
    const parts = [words[word], times && tokens > 1 ? h("small", { text: `×${tokens}` }) : null];
    const { topic: id } = document.topics()[topic];
    return topic < COLOURS
      ? h(
          "span",
          {
            class: `word c${topic}`,
            "data-topic": topic,
            "data-letter": letter(topic),
            title: `topic ${id}`,
          },
          parts,
        )
      : h("span", { class: "word", title: `topic ${id}` }, parts);
  };
  const shownWords = order
    ? order.map((at) => span(all[at], false))
    : byTokens(all).map((word) => span(word, true));
  return h(
    "p",
    { class: "text", id: "text", dir: "auto" },
    shownWords.flatMap((word) => [word, " "]),
  );
}

function documentNote(document) {
  const all = document.words();
  const order = document.order();
  const here = order ? order.length : all.reduce((sum, { tokens }) => sum + tokens, 0);
  const kind = order
    ? "Words in their order, without unknown words."
    : "The order of words is not known: most frequent first.";
  const cut =
    here < document.tokens ? ` ${count(here)} of ${count(document.tokens)} tokens are shown.` : "";
  return `${kind}${cut} The colour and letter of a word are those of its most probable topic in this document; topics after the first ${COLOURS} are grey.`;
}
