"use strict";
// What all parts of the page share. Text from data is only ever written as text, never as markup.
const Tinybayes = {};
(function (T) {
  // Okabe and Ito's colours, which people with any kind of colour vision can tell apart; each family has its own shape, too.
  T.LOOKS = {
    "naive": ["#0072b2", "circle"], "tan": ["#d55e00", "square"], "subset": ["#e69f00", "diamond"],
    "tied": ["#cc79a7", "triangle-up"], "dense": ["#009e73", "cross"], "conv": ["#56b4e9", "x"],
    "circuit": ["text", "star"], "tree": ["#8b939e", "triangle-down"], "forest": ["#f0e442", "hexagon"],
    "boosted": ["#8a5a2b", "pentagon"],
  };
  const SHAPES = {
    "circle": "M12 8a4 4 0 1 1-8 0a4 4 0 1 1 8 0z", "square": "M4 4h8v8h-8z", "diamond": "M8 2.5l5.5 5.5l-5.5 5.5l-5.5-5.5z",
    "triangle-up": "M8 3l5.5 9.5h-11z", "triangle-down": "M8 13l5.5-9.5h-11z", "hexagon": "M5 3h6l3 5l-3 5h-6l-3-5z",
    "cross": "M6 2.5h4v3.5h3.5v4h-3.5v3.5h-4v-3.5h-3.5v-4h3.5z",
    "x": "M4.5 2l3.5 3.5l3.5-3.5l2.5 2.5l-3.5 3.5l3.5 3.5l-2.5 2.5l-3.5-3.5l-3.5 3.5l-2.5-2.5l3.5-3.5l-3.5-3.5z",
    "pentagon": "M8 2l6 4.4l-2.3 7.1h-7.4l-2.3-7.1z",
    "star": "M8 1.5l2 4.6l5 .4l-3.8 3.3l1.2 4.9l-4.4-2.6l-4.4 2.6l1.2-4.9l-3.8-3.3l5-.4z",
  };
  const SVG = "http://www.w3.org/2000/svg";

  T.look = function (family) {
    const [colour, shape] = T.LOOKS[family] || ["#8b939e", "circle"];
    return [colour === "text" ? T.css("--text") : colour, shape];  // black on white, white on black
  };
  T.byId = (id) => document.getElementById(id);
  T.css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Make an element: T.make("p", {class: "quiet"}, "text", child).
  T.make = function (tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
  };
  T.draw = function (tag, attributes, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
  };
  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }
  T.dot = function (family) {
    const [colour, shape] = T.LOOKS[family] || T.LOOKS.tree;
    const path = T.draw("path", {d: SHAPES[shape], fill: colour === "text" ? "currentColor" : colour, stroke: "currentColor", "stroke-width": .7});
    return T.draw("svg", {class: "dot", viewBox: "0 0 16 16", width: 15, height: 15, "aria-hidden": "true"}, path);
  };

  const separated = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
  T.count = (value) => value === null || value === undefined ? "" : separated.format(value);
  T.percent = (share) => share === null || share === undefined ? "" : (100 * share).toFixed(2) + " %";
  // The metric of the search: its key of a model, a value as text, and a value in words.
  T.metricKey = (key) => T.data.metric.name === "error" ? key : key.replace("_error", "_value");
  T.value = (value) => T.data.metric.percent ? T.percent(value) : value === null || value === undefined ? "" : T.number(value);
  T.says = (value) => T.data.metric.percent ? `${T.percent(value)} ${T.data.metric.title}` : `${T.data.metric.title} ${T.value(value)}`;
  // A figure on validation rows with its standard error, where it is a mean over several splits.
  T.figure = function (model, key) {
    const value = model[key], text = key.endsWith("_error") ? T.percent(value) : T.value(value);
    if (value === null || !model.checked || key !== T.metricKey("validation_error") || model.standard_error === null) return text;
    return T.data.metric.percent ? text.replace(" %", ` ± ${(100 * model.standard_error).toFixed(1)} %`) : `${text} ± ${T.number(model.standard_error)}`;
  };
  T.metricAxis = () => T.plain(T.data.metric.title) + (T.data.metric.percent ? " (%)" : "");
  T.size = function (bits) {
    const bytes = Math.ceil(bits / 8);
    if (bytes < 1000) return bytes + " B";
    return bytes < 1e6 ? (bytes / 1e3).toFixed(1) + " kB" : (bytes / 1e6).toFixed(1) + " MB";
  };
  T.number = (value) => value === 0 ? "0" : Math.abs(value) >= 0.001 ? String(+value.toPrecision(3)) : value.toExponential(1);
  // A setting or a fact, which may be a list or have parts.
  T.words = function (value) {
    if (typeof value === "number") return String(Number.isInteger(value) ? value : +value.toPrecision(4));
    if (Array.isArray(value)) return value.map(T.words).join(", ");
    if (value && typeof value === "object") return Object.entries(value).map(([name, one]) => `${name} ${T.words(one)}`).join(", ");
    return value === null ? "none" : value === true ? "yes" : value === false ? "no" : String(value);
  };
  T.cut = (text, length) => text.length > length ? text.slice(0, length - 1) + "…" : text;

  // The codes of a table: base64 of bytes, or of pairs of them.
  T.codes = function (table) {
    const bytes = Uint8Array.from(atob(table.data), (sign) => sign.charCodeAt(0));
    if (table.width === 1) return bytes;
    const view = new DataView(bytes.buffer);
    return Uint16Array.from({length: bytes.length / 2}, (_, i) => view.getUint16(2 * i, true));
  };
  T.worth = function (worth, code) {
    if (code === worth.last) return -Infinity;
    const value = worth.values ? worth.values[code] : worth.offset - worth.step * code;
    return value === null ? -Infinity : value;
  };

  T.facts = function (list, pairs) {
    list.replaceChildren(...pairs.filter((pair) => pair[1] !== "" && pair[1] !== null && pair[1] !== undefined)
      .map(([name, value]) => T.make("div", {}, T.make("dt", {}, name), T.make("dd", {}, String(value)))));
  };

  T.copy = async function (button, text) {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch (refused) {  // old browsers, and pages that were not opened by a secure way
      const area = T.make("textarea", {class: "visually-hidden", "aria-hidden": "true"});
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    button.textContent = done ? "Copied" : "Select it and press Ctrl+C";
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  };

  T.download = function (name, text) {
    const address = URL.createObjectURL(new Blob([text], {type: "text/plain"}));
    const link = T.make("a", {href: address, download: name});
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };

  T.theme = {
    start() {
      const kept = recall();
      const dark = window.matchMedia("(prefers-color-scheme: dark)");
      this.set(kept || (dark.matches ? "dark" : "light"));
      dark.addEventListener("change", (event) => { if (!recall()) this.set(event.matches ? "dark" : "light"); });
      T.byId("theme").addEventListener("click", () => {
        const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
        try { localStorage.setItem("tinybayes-theme", next); } catch (refused) { /* a page of its own may not keep anything */ }
        this.set(next);
      });
      // Paper is white.
      let before = null;
      window.addEventListener("beforeprint", () => { before = this.now; this.set("light"); });
      window.addEventListener("afterprint", () => { if (before) this.set(before); before = null; });
    },
    set(name) {
      this.now = name;
      document.documentElement.dataset.theme = name;
      T.byId("theme").setAttribute("aria-label", name === "dark" ? "Switch to light" : "Switch to dark");
      document.dispatchEvent(new Event("theme"));
    },
  };
  function recall() {
    try { return localStorage.getItem("tinybayes-theme"); } catch (refused) { return null; }
  }
})(Tinybayes);
