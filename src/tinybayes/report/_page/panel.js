"use strict";
// A panel at the side of the charts: the model that was pressed, or two of them side by side. Back closes it.
(function (T) {
  const CLASSES = 12;
  let shown = null, kept = null;  // ids of models

  const body = T.make("div", {id: "panel-body"});
  const close = T.make("button", {type: "button", id: "panel-close", class: "plain", "aria-label": "Close the panel", on: {click: leave}}, "×");
  const title = T.make("h2", {id: "panel-title", tabindex: -1});
  const look = T.make("button", {type: "button", id: "panel-look", class: "main", on: {click: () => { const id = shown; hide(); history.replaceState(null, "", location.hash); T.choose(id, true); }}}, "Look inside");
  const keep = T.make("button", {type: "button", id: "panel-keep", on: {click: () => { kept = kept === null ? shown : null; draw(); }}});
  const aside = T.make("aside", {id: "panel", class: "drawer", "aria-labelledby": "panel-title", hidden: true, on: {keydown: (event) => { if (event.key === "Escape") leave(); }}},
    T.make("div", {class: "bar"}, title, T.make("span", {class: "grow"}), close), T.make("div", {class: "bar"}, look, keep), body);
  document.body.append(aside);

  // Open a model at the side, from wherever it was pressed.
  T.open = function (id) {
    if (!T.model(id)) return;
    const first = shown === null;
    shown = id;
    T.choose(id, false);
    history[first ? "pushState" : "replaceState"]({panel: true}, "", `#model=${encodeURIComponent(id)}`);
    draw();
    aside.hidden = false;
    title.focus({preventScroll: true});
  };
  window.addEventListener("popstate", (event) => { if (!(event.state && event.state.panel)) hide(); });

  function leave() {
    if (history.state && history.state.panel) history.back();  // as the key Back does
    else hide();
  }
  function hide() {
    [shown, kept] = [null, null];
    aside.hidden = true;
  }

  T.panel = {
    // What is shown follows the data; a model that has gone closes the panel.
    update() {
      if (kept !== null && !T.model(kept)) kept = null;
      if (shown === null) return;
      if (T.model(shown)) draw();
      else hide();
    },
  };

  function draw() {
    const models = [kept, shown].filter((id) => id !== null).map(T.model);
    const two = models.length > 1 && models[0].id !== models[1].id;
    aside.classList.toggle("two", two);
    title.replaceChildren(...(two ? ["Two models side by side"] : [T.dot(models[0].family), models[0].label]));
    keep.textContent = kept === null ? "Compare with another" : "Compare no more";
    const hint = kept !== null && !two ? T.make("p", {class: "quiet small", id: "panel-hint"}, "Now choose the other model: a mark of the chart, or a row of the table.") : null;
    body.replaceChildren(...[hint, table(two ? models : models.slice(-1)), ...classes(two ? models : [])].filter(Boolean));
  }

  // A line of the table: its name, a number to compare by (the smaller is better) or null, and the text.
  function lines() {
    const {name, title: metric} = T.data.metric;
    const value = (key) => (model) => model[key];
    const own = name === "error" ? [] : ["validation", "test"].map((rows) => [`${rows} ${metric}`, value(`${rows}_value`), (model) => T.figure(model, `${rows}_value`)]);
    return [
      ...own,
      ["validation error", value("validation_error"), (model) => T.figure(model, "validation_error")],
      ["test error", value("test_error"), (model) => T.percent(model.test_error)],
      ["feature cost", value("feature_cost"), (model) => model.feature_cost === null ? "" : T.number(model.feature_cost)],
      ["flash", value("flash"), (model) => model.flash === null ? "" : `${T.count(model.flash)} B${model.tables_only ? " of tables" : ""}`],
      ["RAM and stack", (model) => model.ram === null ? null : model.ram + model.stack, (model) => model.ram === null ? "" : `${T.count(model.ram + model.stack)} B`],
      ["instructions", value("instructions"), (model) => T.count(model.instructions)],
      ["time", value("microseconds"), (model) => model.microseconds === null ? "" : `${T.number(model.microseconds)} µs`],
      ["parameters", value("bits"), (model) => T.size(model.bits)],
      ["operations", value("operations"), (model) => T.count(model.operations)],
      ["on the front", null, (model) => model.on_front ? "yes" : "no"],
      ["fits the budget", null, (model) => T.fits(model) ? "yes" : "no"],
      ["family", null, (model) => T.data.families[model.family] || model.family],
    ];
  }

  function table(models) {
    const names = [...new Set(models.flatMap((model) => Object.keys(model.settings || {})))].filter((name) => name !== "family");
    const said = (value) => value === undefined ? "" : T.words(value);
    const settings = names.map((name) => [name.replace(/_/g, " "), null, (model) => said((model.settings || {})[name])]);
    const rows = [...lines(), ...settings].map(([name, value, text]) => {
      const texts = models.map(text);
      if (texts.every((one) => one === "")) return null;
      const numbers = value ? models.map(value) : [];
      const better = (i) => models.length > 1 && value && numbers[i] !== null && numbers[1 - i] !== null && numbers[i] < numbers[1 - i];
      const differ = models.length > 1 && texts[0] !== texts[1];
      return T.make("tr", {class: differ ? "differs" : null}, T.make("th", {scope: "row"}, name), ...texts.map((one, i) => T.make("td", {class: better(i) ? "better" : null}, one, better(i) ? T.make("span", {class: "visually-hidden"}, " (better)") : null)));
    });
    const head = models.length > 1 ? T.make("thead", {}, T.make("tr", {}, T.make("td"), ...models.map((model) => T.make("th", {scope: "col"}, T.make("span", {class: "named"}, T.dot(model.family), model.label))))) : null;
    return T.make("table", {class: "pairs", id: "panel-table"}, head, T.make("tbody", {}, ...rows.filter(Boolean)));
  }

  // The errors of each class, where both models were measured.
  function classes(models) {
    if (models.length < 2 || !models.every((model) => model.confusion && model.confusion.length === models[0].confusion.length)) return [];
    const size = Math.min(models[0].confusion.length, CLASSES), names = T.classNames(models[0], models[0].confusion.length);
    const wrong = (model, c) => {
      const total = model.confusion[c].reduce((a, b) => a + b, 0);
      return total ? 1 - model.confusion[c][c] / total : null;
    };
    const rows = Array.from({length: size}, (_, c) => {
      const shares = models.map((model) => wrong(model, c));
      return T.make("tr", {}, T.make("th", {scope: "row"}, names[c]), ...shares.map((share, i) => T.make("td", {class: share !== null && share < shares[1 - i] ? "better" : null}, T.percent(share))));
    });
    return [T.make("h3", {}, "Test error by true class"), T.make("table", {class: "pairs"}, T.make("tbody", {}, ...rows))];
  }
})(Tinybayes);
