// Creation of elements. Data become text and attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value))
        element.addEventListener(event, listener);
    } else if (name === "text") {
      element.textContent = value;
    } else if (name === "css") {
      for (const [property, to] of Object.entries(value)) element.style.setProperty(property, to);
    } else if (value !== undefined && value !== null && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const h = (name, attributes = {}, ...children) =>
  fill(document.createElement(name), attributes, children);
const s = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);

const integer = new Intl.NumberFormat("en");
const count = (number) => integer.format(Math.round(number));
const plural = (number, one) => `${count(number)} ${one}${number === 1 ? "" : "s"}`;

// Formats a share with at most three significant digits.
function percent(share) {
  const value = 100 * share;
  if (value === 0) return "0%";
  if (value < 0.01) return "<0.01%";
  return `${value < 1 ? value.toFixed(2) : value < 10 ? value.toFixed(1) : value.toFixed(0)}%`;
}

function say(text) {
  $("status").textContent = text;
}

// A tooltip next to the pointer.
function tip(event, lines) {
  const box = $("tip");
  box.replaceChildren(...lines.map((line, i) => h(i === 0 ? "strong" : "span", { text: line })));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, innerWidth - width - 8);
  const top =
    event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18;
  box.style.left = `${Math.max(8, left)}px`;
  box.style.top = `${Math.max(8, top)}px`;
}

function untip() {
  $("tip").hidden = true;
}
