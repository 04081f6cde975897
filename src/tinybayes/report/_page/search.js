"use strict";
// How the search went: every model in the order of the search, and the best so far of those that fit the budget.
(function (T) {
  const LEAST = 8;  // models before there is anything to see

  T.search = {
    start() {
      const {models} = T.data;
      const known = models.length >= LEAST && (T.data.trials !== null || models.every((model) => model.seconds !== null));
      T.byId("search-section").hidden = !known;
      if (known) T.plot(T.byId("search-plot"), picture, {click: T.open});
    },
    show() {
      if (!T.byId("search-section").hidden) T.redraw(T.byId("search-plot"));
    },
  };

  // Models with the time that was spent up to them; that of a batch is shared out among its models.
  function timed() {
    let spent = 0;
    return T.data.models.map((model) => ({model, at: spent += T.data.trials === null ? model.seconds : 1}));  // or the number of the run
  }

  function picture() {
    const height = T.height(), all = timed(), known = all.filter(({model}) => T.errorOf(model) !== null);
    const shown = known.filter(({model}) => T.visible(model));  // not all models are measured on the test rows
    const end = Math.max(all[all.length - 1].at, 1e-3);
    const line = {x: [], y: []};
    let best = null;
    for (const {model, at} of shown) {
      if (!T.fits(model) || (best !== null && height(model) >= height(best.model))) continue;
      best = {model, at};
      line.x.push(at);
      line.y.push(height(model));
    }
    if (best !== null) { line.x.push(end); line.y.push(height(best.model)); }
    T.byId("search-key").textContent = said(best, end);
    const [unit, name] = T.data.trials === null && end >= 300 ? [60, "minutes"] : [1, "seconds"];
    const marks = {
      x: shown.map(({at}) => at / unit), y: shown.map(({model}) => height(model)), mode: "markers", cliponaxis: false,
      marker: {
        symbol: shown.map(({model}) => T.look(model.family)[1]), size: 8, color: shown.map(({model}) => T.look(model.family)[0]),
        opacity: shown.map(({model}) => T.fits(model) ? 0.8 : 0.2),
      },
      customdata: shown.map(({model}) => model.id), hovertemplate: "%{text}<extra></extra>",
      text: shown.map(({model, at}) => `<b>${T.plain(T.cut(model.label, 60))}</b><br>${T.plain(T.says(T.errorOf(model)))}<br>after ${time(at)}`),
    };
    const steps = {x: line.x.map((x) => x / unit), y: line.y, mode: "lines", line: {shape: "hv", color: T.css("--mark"), width: 2}, hoverinfo: "skip"};
    return {traces: [steps, marks], layout: {
      xaxis: T.axis({title: {text: T.data.trials === null ? `time spent on models (${name})` : "runs"}, range: [0, 1.02 * end / unit]}),
      yaxis: T.axis(Object.assign({title: {text: T.metricAxis()}}, T.logAxis(known.map(({model}) => height(model)), 1.3))),
    }};
  }

  const time = (seconds) => T.data.trials !== null ? `${T.count(seconds)} runs` : seconds >= 300 ? `${Math.round(seconds / 60)} minutes` : `${+seconds.toPrecision(2)} s`;

  function said(best, end) {
    if (best === null) return "Nothing that is shown fits the budget.";
    const lastStep = `The line is the best so far that fits the budget; the last step was after ${time(best.at)} of ${time(end)}. `;
    return lastStep + (best.at > 0.7 * end ? T.data.trials !== null ? "With more trials a search may find a better one." : "With more time the same command may find a better one." : "Nothing better came in the rest of the time.");
  }
})(Tinybayes);
