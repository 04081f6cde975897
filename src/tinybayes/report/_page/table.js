"use strict";
// The table of all models: sorted by any column, filtered by words, each row a way into a model.
(function (T) {
  const MOST = 400;  // rows that are drawn
  // Those that are `extra` are not printed.
  const COLUMNS = [
    {key: "label", name: "Model", words: true},
    {key: "validation_value", name: "validation", figure: true, metric: true},
    {key: "test_value", name: "test", text: (value) => T.value(value), metric: true},
    {key: "validation_error", name: "Validation", figure: true, error: "Validation error"},
    {key: "flash", name: "Flash", text: (bytes) => bytes === null ? "" : T.size(8 * bytes)},
    {key: "test_error", name: "Test", text: T.percent, error: "Test error"},
    {key: "feature_cost", name: "Feature cost", text: (cost) => cost === null ? "" : T.number(cost)},
    {key: "stack", name: "Stack", text: (bytes) => bytes === null ? "" : T.size(8 * bytes)},
    {key: "instructions", name: "Instructions", text: T.count},
    {key: "microseconds", extra: true, name: "Time (µs)", text: T.count},
    {key: "bits", extra: true, name: "Parameters", text: T.size},
    {key: "operations", extra: true, name: "Operations", text: T.count},
    {key: "multiplications", extra: true, name: "Multiplications", text: T.count},
    {key: "parameters", extra: true, name: "Entries", text: T.count},
    {key: "on_front", extra: true, name: "Front", text: (yes) => yes ? "yes" : ""},
  ];
  let order = {key: null, sign: 1};
  let columns = COLUMNS;

  T.table = {
    start() {
      const {models} = T.data;
      columns = COLUMNS.filter((column) => column.words || models.some((model) => model[column.key] !== null));
      const [first, second] = ["validation_error", "test_error"].map(T.metricKey);
      if (!order.key) order = {key: models.some((model) => model[first] !== null) ? first : second, sign: 1};
      T.byId("table-section").hidden = models.length < 2;
      T.byId("filter").oninput = () => this.show();
      T.byId("models").tHead.rows[0].replaceChildren(...columns.map(heading));
      this.show();
    },
    show() {
      const rows = matching().sort(compare);
      T.byId("models").tBodies[0].replaceChildren(...rows.slice(0, MOST).map(line));
      for (const head of T.byId("models").tHead.rows[0].cells) {
        const here = head.dataset.key === order.key;
        head.setAttribute("aria-sort", here ? order.sign > 0 ? "ascending" : "descending" : "none");
      }
      const more = rows.length > MOST ? `; the first ${MOST} are listed` : "";
      const means = T.data.models.some((model) => model.checked) ? " Figures with ± are means over several splits of the rows, by which the model was chosen; those without are of one split, and the best of them are so by luck, too." : "";
      T.byId("table-note").textContent = `${T.count(rows.length)} of ${T.count(T.data.models.length)} models${more}.${means}`;
      this.dim();
    },
    dim() {
      for (const row of T.byId("models").tBodies[0].rows) {
        const over = !T.fits(T.model(row.dataset.id));
        row.classList.toggle("dim", over);
        row.querySelector(".over").textContent = over ? "over the budget" : "";
        row.setAttribute("aria-selected", String(row.dataset.id === T.state.chosen));
      }
    },
  };

  // Where the metric is not the error, both are listed.
  function titled(column) {
    const {name, title} = T.data.metric;
    if (name === "error") return column.name;
    return column.metric ? `${title}, ${column.name}` : column.error || column.name;
  }

  function heading(column) {
    const press = () => {
      order = {key: column.key, sign: order.key === column.key ? -order.sign : column.key === "on_front" ? -1 : 1};
      T.table.show();
    };
    const attributes = {scope: "col", "data-key": column.key, class: column.words ? "words" : column.extra ? "extra" : null};
    return T.make("th", attributes, T.make("button", {type: "button", on: {click: press}}, titled(column)));
  }

  function compare(one, other) {
    const [a, b] = [one[order.key], other[order.key]];
    if (a === null || b === null) return (a === null) - (b === null);  // what is not known comes last
    const by = typeof a === "string" ? a.localeCompare(b, undefined, {numeric: true}) : a - b;
    return order.sign * by || one.bits - other.bits;
  }

  function matching() {
    // A number belongs to the word after it: "4 bits" is found as it stands.
    const words = T.byId("filter").value.toLowerCase().match(/\d[\d.]*\s+[^\s,\d]+|[^\s,]+/g) || [];
    const patterns = words.map((word) => new RegExp(`(^|[^a-z0-9.])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/, "\\s+")}${/\d$/.test(word) ? "(?![\\d.])" : ""}`));
    return T.data.models.filter((model) => {
      const named = Object.values(model.settings || {}).filter((value) => typeof value === "string");  // numbers would match by chance
      const text = [model.label, model.family, T.data.families[model.family] || "", ...named].join(" ").toLowerCase();
      return T.visible(model) && patterns.every((pattern) => pattern.test(text));
    });
  }

  function line(model) {
    const cells = columns.map((column) => {
      const text = column.figure ? T.figure(model, column.key) : column.text ? column.text(model[column.key]) : model[column.key];
      if (!column.words) return T.make("td", {class: column.extra ? "extra" : null}, text);
      const chosen = model.id === T.data.chosen ? T.make("span", {class: "tag"}, "chosen") : null;
      return T.make("td", {class: "words"}, T.make("span", {class: "named"}, T.dot(model.family), T.make("span", {}, T.make("button", {type: "button"}, text), chosen, T.make("span", {class: "over"}))));
    });
    return T.make("tr", {"data-id": model.id, on: {click: () => T.open(model.id)}}, ...cells);
  }
})(Tinybayes);
