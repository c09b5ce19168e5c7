// The map: a circle per topic, whose area is the topic's share.

const map = { scale: 1, x: 0, y: 0, width: 0, height: 0, marks: new Map(), query: null };

function buildMap() {
  map.circles = topics.map((topic) =>
    s("circle", {
      id: `t${topic.id}`,
      role: "option",
      "aria-selected": "false",
      "aria-label": `Topic ${topic.id}, ${percent(topic.share)}: ${label(topic.id).join(", ")}`,
    }),
  );
  map.classes = topics.map(() => "");
  map.lines = s("g", { class: "near", "aria-hidden": "true" });
  map.names = s("g", { class: "names", "aria-hidden": "true" });
  // Small circles are on top, so that they can be clicked.
  map.svg = s(
    "svg",
    {
      tabindex: "0",
      role: "listbox",
      "aria-label": "Map of topics: arrow keys select the nearest topic in their direction",
    },
    map.lines,
    s(
      "g",
      { class: "circles", role: "presentation" },
      bySize.map((id) => map.circles[id]),
    ),
    map.names,
  );
  const button = (text, name, click) =>
    h("button", {
      class: "quiet",
      type: "button",
      "aria-label": name,
      title: name,
      text,
      on: { click },
    });
  const tools = h(
    "div",
    { class: "tools" },
    button("+", "Zoom in", () => zoom(1.5)),
    button("−", "Zoom out", () => zoom(1 / 1.5)),
    button("⟲", "Whole map", () => {
      Object.assign(map, { scale: 1, x: 0, y: 0 });
      placeMap();
    }),
  );
  $("map").replaceChildren(map.svg, tools);
  map.svg.addEventListener("click", (event) => {
    const id = circleOf(event);
    if (id !== null && !map.dragged) go("topic", id);
  });
  map.svg.addEventListener("pointermove", (event) => {
    const id = circleOf(event);
    if (id === null || map.drag) untip();
    else
      tip(event, [
        `Topic ${id} · ${percent(topics[id].share)}`,
        ranked(id, state.lambda, 6)
          .map((term) => words[term.word])
          .join(", "),
      ]);
  });
  map.svg.addEventListener("pointerleave", untip);
  map.svg.addEventListener("keydown", mapKey);
  map.svg.addEventListener(
    "wheel",
    (event) => {
      // Without a key the wheel scrolls the page; a pinch sets `ctrlKey` too.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = map.svg.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
    },
    { passive: false },
  );
  dragMap();
  new ResizeObserver(() => {
    const { clientWidth: width, clientHeight: height } = $("map");
    if (width === map.width && height === map.height) return;
    Object.assign(map, { width, height });
    placeMap();
  }).observe($("map"));
}

function circleOf(event) {
  return event.target.tagName === "circle" ? Number(event.target.id.slice(1)) : null;
}

function dragMap() {
  map.svg.addEventListener("pointerdown", (event) => {
    map.dragged = false;
    // On a phone one finger scrolls the page, unless the map is zoomed in.
    if (event.pointerType === "touch" && map.scale === 1) return;
    map.drag = { x: event.clientX - map.x, y: event.clientY - map.y };
  });
  addEventListener("pointermove", (event) => {
    if (!map.drag) return;
    const [x, y] = [event.clientX - map.drag.x, event.clientY - map.drag.y];
    if (Math.hypot(x - map.x, y - map.y) < 3 && !map.dragged) return;
    map.dragged = true;
    Object.assign(map, { x, y });
    placeMap();
  });
  addEventListener("pointerup", () => (map.drag = null));
  addEventListener("pointercancel", () => (map.drag = null));
}

function zoom(by, x = map.width / 2, y = map.height / 2) {
  const scale = Math.min(40, Math.max(1, map.scale * by));
  const ratio = scale / map.scale;
  Object.assign(map, { scale, x: x - (x - map.x) * ratio, y: y - (y - map.y) * ratio });
  if (scale === 1) Object.assign(map, { x: 0, y: 0 });
  placeMap();
}

// Centre and radius of a topic in pixels.
function placeMap() {
  const { width, height, scale } = map;
  if (width === 0) return;
  map.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  map.svg.classList.toggle("zoomed", scale > 1);
  const edge = Math.min(width, height) / 2;
  // All circles together cover a tenth of the map.
  const radius = Math.sqrt((0.1 * width * height) / Math.PI);
  const margin = Math.min(edge / 2, 14 + radius * Math.sqrt(topics[bySize[0]]?.share ?? 0));
  let reach = Infinity;
  for (const { place } of topics) {
    reach = Math.min(
      reach,
      (width / 2 - margin) / Math.max(1, Math.abs(place[0])),
      (height / 2 - margin) / Math.max(1, Math.abs(place[1])),
    );
  }
  map.at = topics.map(({ place, share }) => [
    map.x + scale * (width / 2 + place[0] * reach),
    map.y + scale * (height / 2 - place[1] * reach),
    Math.max(2.5, radius * Math.sqrt(share)) * Math.sqrt(scale),
  ]);
  map.at.forEach(([x, y, r], id) => {
    const circle = map.circles[id];
    circle.setAttribute("cx", x.toFixed(1));
    circle.setAttribute("cy", y.toFixed(1));
    circle.setAttribute("r", r.toFixed(1));
  });
  markMap();
}

// Labels of the largest and of the highlighted circles, as far as they fit.
function nameMap() {
  const taken = [];
  const shown = [];
  const overlaps = (box) =>
    taken.some(
      (other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3],
    );
  const marked = [...map.marks.keys()];
  const order = [...marked, ...bySize.filter((id) => !map.marks.has(id)).slice(0, 400)];
  const limit = Math.max(8, Math.round((map.width * map.height) / 14000));
  for (const id of order) {
    if (shown.length >= limit + marked.length) break;
    const [x, y, r] = map.at[id];
    if (x < -20 || y < -20 || x > map.width + 20 || y > map.height + 20) continue;
    const text = `${id} ${clip(
      label(id)
        .slice(0, map.marks.has(id) ? 3 : 2)
        .join(" "),
      28,
    )}`;
    // An estimate that fits most letters, because measuring is slow.
    const half = text.length * (map.marks.has(id) ? 3.5 : 3.25) + 4;
    const middle = Math.min(Math.max(x, half), map.width - half);
    const top = r > 16 || y + r + 14 > map.height ? y - 6 : y + r + 2;
    const box = [middle - half, top, middle + half, top + 13];
    if (overlaps(box)) continue;
    taken.push(box);
    const element = s("text", {
      x: middle.toFixed(1),
      y: (top + 10).toFixed(1),
      class: map.marks.has(id) ? "marked" : undefined,
      text,
    });
    shown.push({ topic: id, element });
  }
  // The other circles have their numbers alone, as far as they fit.
  const named = new Set(shown.map(({ topic }) => topic));
  for (const id of bySize.slice(0, 2000)) {
    if (named.has(id)) continue;
    const [x, y] = map.at[id];
    const half = 3.25 * String(id).length + 1;
    const box = [x - half, y - 6, x + half, y + 7];
    if (x < 0 || y < 0 || x > map.width || y > map.height || overlaps(box)) continue;
    taken.push(box);
    const at = { x: x.toFixed(1), y: (y + 4).toFixed(1) };
    shown.push({ topic: id, element: s("text", { ...at, class: "number", text: String(id) }) });
  }
  map.names.replaceChildren(...shown.map(({ element }) => element));
}

function clip(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

// Highlighted topics: the current one, those of a document in its colours, those that match a query.
function markMap() {
  if (!map.at) return;
  map.marks = new Map();
  const chosen = state.view === "topic" ? state.id : null;
  if (chosen !== null) map.marks.set(chosen, "chosen");
  if (state.view === "document") {
    legend(documents[documentAt.get(state.id)]).forEach(({ topic }, i) =>
      map.marks.set(topic, `c${i}`),
    );
  }
  const found =
    state.view === "topics" && map.query ? new Set(map.query.map(({ id }) => id)) : null;
  map.svg.classList.toggle("faint", state.view === "document" || found !== null);
  map.circles.forEach((circle, id) => {
    const mark = map.marks.get(id) ?? (found?.has(id) ? "found" : "");
    // PERF: only the few circles that change are updated.
    if (mark === map.classes[id]) return;
    map.classes[id] = mark;
    circle.setAttribute("class", mark);
    circle.setAttribute("aria-selected", String(mark === "chosen"));
  });
  if (chosen === null) map.svg.removeAttribute("aria-activedescendant");
  else map.svg.setAttribute("aria-activedescendant", `t${chosen}`);
  map.lines.replaceChildren(
    ...(chosen === null
      ? []
      : topics[chosen].near.map(([other]) =>
          s("line", {
            x1: map.at[chosen][0],
            y1: map.at[chosen][1],
            x2: map.at[other][0],
            y2: map.at[other][1],
          }),
        )),
  );
  nameMap();
}

const WAYS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

function mapKey(event) {
  const chosen = state.view === "topic" ? state.id : null;
  let to = null;
  if (event.key in WAYS) to = chosen === null ? bySize[0] : nextOnMap(chosen, WAYS[event.key]);
  else if (event.key === "Home") to = bySize[0];
  else if (event.key === "End") to = bySize[bySize.length - 1];
  else if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 1.5 : 1 / 1.5);
  else return;
  event.preventDefault();
  if (to !== null) go("topic", to);
}

// The nearest topic in a direction: one that is farther in that direction than sideways.
function nextOnMap(from, [dx, dy]) {
  const [x, y] = map.at[from];
  let best = null;
  let least = Infinity;
  map.at.forEach(([u, v], id) => {
    const along = (u - x) * dx + (v - y) * dy;
    const aside = Math.abs((u - x) * dy) + Math.abs((v - y) * dx);
    if (id === from || along <= 0 || aside > along) return;
    const far = along + 2 * aside;
    if (far < least) [best, least] = [id, far];
  });
  return best;
}
