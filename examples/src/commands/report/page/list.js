// A list of any length: only the visible rows are in the document.

class List {
  // `row(item, place)` creates the element of an item; each is `height` pixels high.
  constructor(name, height, row) {
    this.height = height;
    this.row = row;
    this.items = [];
    this.rows = h("ol", { class: "rows" });
    this.element = h(
      "div",
      { class: "list", tabindex: "0", role: "group", "aria-label": name },
      this.rows,
    );
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
  }

  show(items) {
    this.items = items;
    this.rows.style.height = `${items.length * this.height}px`;
    this.element.scrollTop = 0;
    this.redraw();
  }

  redraw() {
    this.from = this.to = -1;
    this.draw();
  }

  draw() {
    const { scrollTop, clientHeight } = this.element;
    const from = Math.max(0, Math.floor(scrollTop / this.height) - 4);
    const to = Math.min(this.items.length, Math.ceil((scrollTop + clientHeight) / this.height) + 4);
    if (from === this.from && to === this.to) return;
    // A focused row keeps the focus, if its item is still visible.
    const focused = this.rows.contains(document.activeElement)
      ? document.activeElement.closest("li").dataset.place
      : null;
    this.from = from;
    this.to = to;
    const rows = [];
    for (let place = from; place < to; place++) {
      const li = h(
        "li",
        { "data-place": place, "aria-setsize": this.items.length, "aria-posinset": place + 1 },
        this.row(this.items[place], place),
      );
      li.style.transform = `translateY(${place * this.height}px)`;
      li.style.height = `${this.height}px`;
      rows.push(li);
    }
    this.rows.replaceChildren(...rows);
    if (focused !== null)
      this.rows.querySelector(`[data-place="${focused}"] a`)?.focus({ preventScroll: true });
  }
}
