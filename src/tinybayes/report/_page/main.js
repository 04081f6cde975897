"use strict";
// Put the data on the page, and follow the choice of a model.
(function (T) {
  const byId = new Map();
  T.model = (id) => byId.get(id);

  T.choose = function (id, go) {
    const model = T.model(id);
    if (!model) return;
    T.state.chosen = id;
    T.state.shown = JSON.stringify(model);
    T.front.enter(model.group ?? null);
    T.front.show();
    T.showModel(model);
    history.replaceState(history.state, "", `#model=${encodeURIComponent(id)}`);
    if (go) {
      T.byId("model-section").scrollIntoView({block: "start"});
      T.byId("model-title").focus({preventScroll: true});
    }
  };

  // Show data; a page that is kept up to date calls this again, and choices stay as they are.
  T.update = function (data) {
    const again = Boolean(T.data);
    T.data = data;
    byId.clear();
    data.models.forEach((model) => byId.set(model.id, model));
    head(data);
    for (const part of ["front", "table", "search", "hyper", "model"]) T.byId(`${part}-section`).hidden = !data.models.length;
    if (!data.models.length) return;  // a search that has found nothing yet
    T.table.start();
    T.search.start();
    T.hyper.start();
    T.front.start(Boolean(T.state.chosen));
    const shown = again && T.state.chosen && JSON.stringify(T.model(T.state.chosen));
    if (shown && shown === T.state.shown) { T.front.show(); T.panel.update(); return; }  // so that whoever looks at a model is left in peace
    const wanted = again ? T.state.chosen : decodeURIComponent((location.hash.match(/^#model=(.*)$/) || ["", ""])[1]);
    T.choose([wanted, data.chosen, firstOf(data.models)].find((id) => byId.has(id)), false);
    T.panel.update();
  };

  function firstOf(models) {
    const best = [...models].sort((a, b) => (a[T.metricKey("validation_error")] ?? 1e9) - (b[T.metricKey("validation_error")] ?? 1e9));
    return (best.find((model) => model.file !== null) || best[0]).id;
  }

  function head(data) {
    document.title = data.title;
    T.byId("title").textContent = data.title;
    const {name, rows, features, target} = data.data, parts = [];
    if (name && name !== target) parts.push(String(name));
    if (rows) parts.push(`${T.count(rows)} rows`);
    if (features) parts.push(`${T.count(features)} features`);
    if (data.data.classes) parts.push(`${T.count(Array.isArray(data.data.classes) ? data.data.classes.length : data.data.classes)} classes`);
    if (target) parts.push(`class ${target}`);
    if (data.models.length > 1) parts.push(`${T.count(data.models.length)} models, ${T.count(data.models.filter((model) => model.on_front).length)} on the front`);
    T.byId("about").textContent = parts.join(" · ");
    T.byId("command").textContent = data.command || "The command was not recorded.";
    T.byId("cut").textContent = cutText(data);
    const more = Object.entries(data.provenance).map(([key, value]) => [key.replace(/_/g, " "), T.words(value)]);
    T.facts(T.byId("provenance"), [["seed", data.seed === null ? "" : data.seed], ["made", data.created], ...more]);
  }

  // What the time decided: a search by the clock finds more on a quicker machine.
  function cutText(data) {
    if (data.trials !== null) return `A search of ${T.count(data.trials)} trials: neither the time nor the number of workers decided, and the same command in a new directory gives the same files, byte for byte.`;
    if (data.cut === null) return "";
    const cut = data.cut.length ? ` The time did not suffice for all: ${data.cut.join("; ")}.` : "";
    return `The time decided how much was tried, so that the same command may find other models.${cut} With --trials N instead of --time, a search can be repeated byte for byte.`;
  }

  T.theme.start();
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", () => T.copy(button, T.byId(button.dataset.copy).textContent));
  }
  T.update(JSON.parse(T.byId("data").textContent));
  if (T.started) T.started();
})(Tinybayes);
