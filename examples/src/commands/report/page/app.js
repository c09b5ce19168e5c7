// Shows the view that the address names.

let current = {};

const TABS = [
  ["topics", "Topics", ["topics", "topic"]],
  ...(documents.length > 0 ? [["documents", "Documents", ["documents", "document"]]] : []),
  ...(contents.curves.length > 0 || bestLogJoint() !== undefined
    ? [["training", "Training", ["training"]]]
    : []),
  ["about", "About", ["about"]],
];

const DRAW = {
  topics: topicsView,
  topic: () => topicView(state.id),
  documents: documentsView,
  document: () => documentView(state.id),
  training: trainingView,
  about: aboutView,
};

function render() {
  const before = { ...state };
  written = location.hash;
  Object.assign(state, parse(written));
  const moved = before.view !== state.view || before.id !== state.id;
  const wide = state.view === "training" || state.view === "about";
  document.body.classList.toggle("wide", wide);
  document.body.dataset.view = state.view;
  if ($("search").value !== state.query) $("search").value = state.query;
  $("search").placeholder =
    state.view === "documents" ? "Number, date or title" : "Word or topic number";
  current = DRAW[state.view]();
  document.title = `${current.title} · ${contents.title}`;
  // A tab drops the query: a query for topics does not apply to documents.
  const plain = (view) => address({ ...state, view, id: null, query: "" });
  $("views").replaceChildren(
    ...TABS.map(([view, text, views]) =>
      h("a", {
        href: plain(view),
        text,
        "aria-current": views.includes(state.view) ? "page" : undefined,
      }),
    ),
  );
  untip();
  if (!wide) markMap();
  if (moved) $("right").scrollTop = 0;
}

// The search stays in the list that it filters.
function search() {
  state.query = $("search").value;
  remember();
  if (current.search) {
    current.search();
  } else {
    flush();
    go(state.view === "document" ? "documents" : "topics");
  }
}

function key(event) {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && !$("help").open) {
    if (event.target === $("search") && $("search").value !== "") {
      $("search").value = "";
      search();
    } else if (state.id !== null) {
      go(`${state.view}s`);
    }
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  if (event.key === "/") {
    event.preventDefault();
    $("search").focus();
    $("search").select();
  } else if (event.key === "?") {
    $("help").showModal();
  } else if (event.key === "[" || event.key === "]") {
    const by = event.key === "[" ? -1 : 1;
    if (state.view === "document") {
      const to = documents[documentAt.get(state.id) + by];
      if (to) go("document", to.number);
    } else {
      const to = bySize[state.view === "topic" ? ranks[state.id] + by : 0];
      if (to !== undefined) go("topic", to);
    }
  }
}

$("title").textContent = contents.title;
$("summary").textContent = [
  plural(topics.length, "topic"),
  plural(contents.corpus.documents, "document"),
  plural(contents.corpus.tokens, "token"),
].join(" · ");
// Kruskal's scale of 1964: 0.2 is poor.
const distorted = contents.stress > 0.2;
$("map-note").replaceChildren(
  "Topics near each other use similar words; the area of a circle is its share of the tokens.",
  ...(distorted
    ? [
        h("strong", {
          text: ` Distances on this map are distorted (stress ${contents.stress.toFixed(2)}): go by the similar topics that each topic lists.`,
        }),
      ]
    : []),
);
buildHelp();
buildMap();
$("search").addEventListener("input", search);
addEventListener("keydown", key);
addEventListener("hashchange", render);
addEventListener("pagehide", flush);
let resizing = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(resizing);
  resizing = requestAnimationFrame(() => current.resize?.());
});
render();
