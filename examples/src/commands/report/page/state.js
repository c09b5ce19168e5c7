// State of the page. It is in the address, so that links, a reload and the back button restore it.
//
//   #/topics  #/topic/17  #/documents  #/document/33  #/training  #/about     ?lambda=0.6&q=word&by=number

const VIEWS = ["topics", "topic", "documents", "document", "training", "about"];
const DEFAULTS = { view: "topics", id: null, lambda: 0.6, query: "", by: "size" };
const state = { ...DEFAULTS };

// The address that `state` was last read from or written to.
let written = location.hash;

function parse(hash) {
  const [path, search] = hash.replace(/^#\/?/, "").split("?");
  const [view, id] = path.split("/");
  const options = new URLSearchParams(search ?? "");
  const found = { ...DEFAULTS };
  if (VIEWS.includes(view)) found.view = view;
  found.id = /^\d+$/.test(id ?? "") ? Number(id) : null;
  const known =
    found.view === "topic"
      ? found.id !== null && found.id < topics.length
      : found.view === "document"
        ? documentAt.has(found.id)
        : true;
  // The address of another page.
  if (!known) Object.assign(found, { view: `${found.view}s`, id: null });
  if (found.view === "training" && contents.curves.length === 0 && bestLogJoint() === undefined)
    found.view = "topics";
  const lambda = Number(options.get("lambda") ?? DEFAULTS.lambda);
  if (lambda >= 0 && lambda <= 1) found.lambda = Math.round(lambda * steps) / steps;
  found.query = options.get("q") ?? "";
  if (SORTS.some(([name]) => name === options.get("by"))) found.by = options.get("by");
  return found;
}

function address(to) {
  const options = new URLSearchParams();
  if (to.lambda !== DEFAULTS.lambda) options.set("lambda", String(to.lambda));
  if (to.query !== "") options.set("q", to.query);
  if (to.by !== DEFAULTS.by) options.set("by", to.by);
  const search = options.toString();
  return `#/${to.view}${to.id === null ? "" : `/${to.id}`}${search === "" ? "" : `?${search}`}`;
}

// The address of another view with the same other state.
const link = (view, id = null) => address({ ...state, view, id });

function go(view, id = null) {
  location.hash = link(view, id);
}

// Replaces the address without a step in the history; delayed, because browsers limit the rate.
let pending = 0;
function remember() {
  clearTimeout(pending);
  pending = setTimeout(flush, 150);
}

// Not over a newer address, whose event is still under way.
function flush() {
  clearTimeout(pending);
  if (location.hash !== written) return;
  if (address(state) !== written) history.replaceState(null, "", address(state));
  written = location.hash;
}

// The last likelihood in the model's file.
function bestLogJoint() {
  const rows = contents.about.find(({ title }) => title === "Model")?.rows ?? [];
  return rows.find(([name]) => name === "log joint likelihood per token")?.[1];
}
