// Line charts with axes, the value under the pointer, and a sentence for screen readers.

// Round numbers that cover a range.
function ticks(low, high, n) {
  const span = high - low || Math.abs(high) || 1;
  const rough = span / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((by) => by * power).find((size) => size >= rough * 0.999);
  const out = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step)
    out.push(Number(at.toPrecision(12)));
  return out;
}

// `lines`: [{ name, points: [[x, y], ...] }]; `changes`: [[x, text], ...], marked by vertical lines. `nameX` and `nameY` format values on the axes, `noteX` the
// one under the pointer.
function chart(
  lines,
  {
    width,
    height,
    title,
    from,
    nameX = String,
    nameY = String,
    noteX = nameX,
    xTicks,
    labelX,
    labelY,
    area = false,
    changes = [],
  },
) {
  const all = lines.flatMap(({ points }) => points);
  const [xs, ys] = [all.map(([x]) => x), all.map(([, y]) => y)];
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  const pad =
    from === undefined
      ? (Math.max(...ys) - Math.min(...ys)) * 0.05 || Math.abs(ys[0]) * 0.01 || 1
      : 0;
  const [y0, y1] = [
    from ?? Math.min(...ys) - pad,
    Math.max(...ys, from === undefined ? -Infinity : 1e-9) + pad,
  ];
  const yTicks = ticks(y0, y1, height < 160 ? 3 : 5);
  const names = yTicks.map(nameY);
  const edge = {
    left: 14 + 6.4 * Math.max(...names.map((name) => name.length)),
    right: 14,
    top: labelY ? 26 : 10,
    bottom: labelX ? 44 : 26,
  };
  const px = (x) =>
    edge.left + (x1 === x0 ? 0.5 : (x - x0) / (x1 - x0)) * (width - edge.left - edge.right);
  const py = (y) =>
    height - edge.bottom - ((y - y0) / (y1 - y0)) * (height - edge.top - edge.bottom);
  const path = (points) =>
    points.map(([x, y], i) => `${i ? "L" : "M"}${px(x).toFixed(1)} ${py(y).toFixed(1)}`).join("");
  const svg = s("svg", {
    class: "chart",
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": title,
  });
  yTicks.forEach((y, i) =>
    svg.append(
      s("line", { class: "grid", x1: edge.left, x2: width - edge.right, y1: py(y), y2: py(y) }),
      s("text", { class: "y", x: edge.left - 7, y: py(y) + 4, text: names[i] }),
    ),
  );
  const marks = (xTicks ?? ticks(x0, x1, Math.max(2, Math.floor(width / 110)))).filter(
    (x) => x >= x0 && x <= x1,
  );
  for (const x of marks) {
    const anchor = marks.length > 1 && px(x) > width - 30 ? "end" : "middle";
    svg.append(
      s("text", {
        class: "x",
        x: anchor === "end" ? width - edge.right : px(x),
        y: height - edge.bottom + 18,
        "text-anchor": anchor,
        text: nameX(x),
      }),
    );
  }
  if (labelX)
    svg.append(
      s("text", {
        class: "label",
        x: (edge.left + width - edge.right) / 2,
        y: height - 6,
        "text-anchor": "middle",
        text: labelX,
      }),
    );
  if (labelY) svg.append(s("text", { class: "label", x: 2, y: 13, text: labelY }));
  changes.forEach(([x, text]) => {
    const at = px(x);
    const isRight = at > width / 2;
    svg.append(
      s("line", { class: "change", x1: at, x2: at, y1: edge.top, y2: height - edge.bottom }),
      s("text", {
        class: "label",
        x: isRight ? at - 5 : at + 5,
        y: height - edge.bottom - 8,
        "text-anchor": isRight ? "end" : "start",
        text,
      }),
    );
  });
  lines.forEach(({ points }, i) => {
    if (area && points.length > 1)
      svg.append(
        s("path", { class: "area", d: `${path(points)}L${px(x1)} ${py(y0)}L${px(x0)} ${py(y0)}Z` }),
      );
    svg.append(s("path", { class: `line c${i % COLOURS}`, d: path(points) }));
    if (points.length < 40)
      points.forEach(([x, y]) =>
        svg.append(
          s("circle", {
            class: `dot c${i % COLOURS}`,
            cx: px(x),
            cy: py(y),
            r: points.length === 1 ? 4 : 2.2,
          }),
        ),
      );
  });
  const cursor = s("line", {
    class: "cursor",
    y1: edge.top,
    y2: height - edge.bottom,
    visibility: "hidden",
  });
  svg.append(cursor);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x =
      x0 +
      ((((event.clientX - box.left) * width) / box.width - edge.left) /
        (width - edge.left - edge.right)) *
        (x1 - x0);
    const near = lines.map(({ name, points }) => ({
      name,
      point: points.reduce((best, point) =>
        Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best,
      ),
    }));
    const at = px(near[0].point[0]);
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.setAttribute("visibility", "visible");
    tip(event, [
      noteX(near[0].point[0]),
      ...near.map(({ name, point }) => `${name ? `${name}: ` : ""}${nameY(point[1])}`),
    ]);
  });
  svg.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    untip();
  });
  return svg;
}

// A topic's share over time, without axes.
function sparkline(points, width = 72, height = 22) {
  const most = Math.max(...points.map(([, share]) => share), 1e-9);
  const first = points[0][0];
  const span = points[points.length - 1][0] - first;
  const x = (i) => (span === 0 ? width / 2 : ((i - first) / span) * width);
  const y = (share) => height - 2 - (share / most) * (height - 4);
  const d = points
    .map(([i, share], at) => `${at ? "L" : "M"}${x(i).toFixed(1)} ${y(share).toFixed(1)}`)
    .join("");
  return s(
    "svg",
    { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
    s("path", { d }),
  );
}
