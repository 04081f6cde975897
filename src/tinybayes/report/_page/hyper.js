"use strict";
// What mattered: how much of the spread of the error each hyper-parameter explains alone, and all runs as lines.
(function (T) {
  const LEAST = 12;  // runs of a family before there is anything to say
  const BINS = 4, MOST_AXES = 6, MOST_BARS = 12, MOST_LINES = 400;
  const LEFT_OUT = new Set(["family", "seed"]);
  const WIDE = 760, HIGH = 300, TOP = 34, LOW = 40;
  let family = null, brushes = new Map();

  T.hyper = {
    start() {
      const counts = new Map();
      for (const model of measured()) counts.set(model.family, (counts.get(model.family) || 0) + 1);
      const able = [...counts.keys()].filter((name) => counts.get(name) >= LEAST && importances(of(name)).length);
      T.byId("hyper-section").hidden = !able.length;
      if (!able.length) return;
      if (!able.includes(family)) family = able.sort((a, b) => counts.get(b) - counts.get(a))[0];
      const select = T.byId("hyper-family");
      select.replaceChildren(...able.map((name) => T.make("option", {value: name, selected: name === family}, `${T.data.families[name] || name}, ${T.count(counts.get(name))} runs`)));
      select.onchange = () => { family = select.value; brushes = new Map(); show(); };
      show();
    },
  };
  document.addEventListener("theme", () => { if (T.data && !T.byId("hyper-section").hidden) show(); });

  const value = (model) => model[T.metricKey("validation_error")];
  const measured = () => T.data.models.filter((model) => value(model) !== null && model.settings);
  const of = (name) => measured().filter((model) => model.family === name);

  // Numbers as they are, everything else by its name.
  function column(models, name) {
    const given = models.map((model) => model.settings[name]);
    const numeric = given.every((one) => typeof one === "number" || one === undefined || one === null) && given.some((one) => typeof one === "number");
    return {name, numeric, values: given.map((one) => numeric ? one ?? null : T.words(one ?? null))};
  }

  // The groups of a column: its values, or quarters of many numbers.
  function groups({numeric, values}) {
    const distinct = [...new Set(values)];
    if (!numeric || distinct.length <= BINS) return values.map((one) => distinct.indexOf(one));
    const sorted = values.filter((one) => one !== null).sort((a, b) => a - b);
    const cuts = Array.from({length: BINS - 1}, (_, i) => sorted[Math.floor((i + 1) * sorted.length / BINS)]);
    return values.map((one) => one === null ? BINS : cuts.filter((cut) => one >= cut).length);
  }

  // The share of the variance between groups, less what chance would give (epsilon squared).
  T.explained = function (numbers, group) {
    const parts = new Map();
    numbers.forEach((number, i) => { if (parts.has(group[i])) parts.get(group[i]).push(number); else parts.set(group[i], [number]); });
    const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
    const spread = (list) => { const middle = mean(list); return list.reduce((sum, one) => sum + (one - middle) ** 2, 0); };
    const count = numbers.length, kinds = parts.size, total = spread(numbers);
    const inside = [...parts.values()].reduce((sum, list) => sum + spread(list), 0);
    if (kinds < 2 || kinds >= count || total <= 0) return 0;
    return Math.max(0, (total - inside - (kinds - 1) * inside / (count - kinds)) / total);
  };

  function importances(models) {
    const names = [...new Set(models.flatMap((model) => Object.keys(model.settings)))].filter((name) => !LEFT_OUT.has(name));
    const positive = models.map(value).filter((one) => one > 0), floor = positive.length ? Math.min(...positive) / 2 : 1;
    const logs = models.map((model) => Math.log(Math.max(value(model), floor)));
    return names.map((name) => column(models, name)).filter(({values}) => new Set(values).size > 1)
      .map((one) => ({...one, share: T.explained(logs, groups(one))})).sort((a, b) => b.share - a.share);
  }

  function show() {
    const models = of(family), found = importances(models);
    T.byId("hyper-bars").replaceChildren(...found.slice(0, MOST_BARS).map(({name, share}) => T.make("div", {class: "odds", "data-name": name, "data-share": share},
      T.make("span", {title: name}, T.cut(name.replace(/_/g, " "), 24)), T.make("span", {class: "track"}, T.oddsBar(100 * share, "right")), T.make("span", {class: "figure"}, `${(100 * share).toFixed(0)} %`))));
    lines(models, found.slice(0, MOST_AXES));
    T.byId("hyper-key").textContent = `Left: how much of the spread of the logarithm of the validation ${T.data.metric.title} each hyper-parameter explains alone, in ${T.count(models.length)} runs; many numbers are taken in quarters, and what chance would explain is taken off. Shares need not add up. Right: a line is a run${models.length > MOST_LINES ? " (of many some are drawn)" : ""}, the darker the better; drag along an axis to keep some runs, press the axis to keep all again, and press a line to open its model.`;
  }

  // Parallel coordinates: the hyper-parameters that matter most, the memory and the error.
  function lines(models, found) {
    const priced = models.every((model) => model.flash !== null);
    const log = (list) => list.map((one) => one === null ? null : Math.log10(Math.max(one, 1e-9)));
    const axes = [
      ...found.map(axis),
      {name: priced ? "flash" : "parameters", at: scale(log(models.map((model) => priced ? model.flash : model.bits / 8))), ends: ends(models.map((model) => priced ? model.flash : model.bits / 8), (one) => T.size(8 * one))},
      {name: T.data.metric.title, at: scale(log(models.map((model) => Math.max(value(model), 1e-6)))), ends: ends(models.map(value), T.value)},
    ];
    const x = (i) => 60 + (WIDE - 120) * i / (axes.length - 1), y = (share) => HIGH - LOW - (HIGH - TOP - LOW) * share;
    const ranked = models.map((_, i) => i).sort((a, b) => value(models[b]) - value(models[a]));  // the best on top
    const order = ranked.filter((_, rank) => ranked.length <= MOST_LINES || (ranked.length - 1 - rank) % Math.ceil(ranked.length / MOST_LINES) === 0);
    const paths = order.map((i, rank) => {
      const points = axes.map((one, k) => one.at[i] === null ? null : `${x(k).toFixed(1)} ${y(one.at[i]).toFixed(1)}`).filter(Boolean);
      const path = T.draw("path", {class: "run", d: `M${points.join("L")}`, "data-id": models[i].id, on: {click: () => T.open(models[i].id)}}, T.draw("title", {}, `${models[i].label}: ${T.says(value(models[i]))}`));
      path.style.setProperty("--p", Math.round(15 + 85 * rank / Math.max(1, order.length - 1)));
      path.index = i;
      return path;
    });
    const keep = () => paths.forEach((path) => path.classList.toggle("out", [...brushes].some(([name, [low, high]]) => {
      const one = axes.find((entry) => entry.name === name);
      return one && !(one.at[path.index] !== null && one.at[path.index] >= low && one.at[path.index] <= high);
    })));
    const drawn = axes.map((one, k) => ruler(one, x(k), y, keep, Math.floor((x(1) - x(0)) / 8.2)));
    const svg = T.draw("svg", {viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": `All runs of this family as lines over ${axes.map((one) => one.name).join(", ")}; the table lists the same models`}, ...paths, ...drawn);
    T.byId("hyper-lines").replaceChildren(svg);
    keep();
  }

  function axis({name, numeric, values}) {
    if (!numeric) {
      const states = [...new Set(values)].sort((a, b) => a.localeCompare(b, undefined, {numeric: true}));
      return {name, at: values.map((one) => states.length > 1 ? states.indexOf(one) / (states.length - 1) : 0.5), ends: [states[0], states[states.length - 1]]};
    }
    const known = values.filter((one) => one !== null), positive = known.every((one) => one > 0);
    const wide = positive && Math.max(...known) / Math.min(...known) > 30;  // such as learning rates
    return {name, at: scale(values.map((one) => one === null ? null : wide ? Math.log(one) : one)), ends: ends(known, T.number)};
  }
  function scale(values) {
    const known = values.filter((one) => one !== null), low = Math.min(...known), high = Math.max(...known);
    return values.map((one) => one === null ? null : high > low ? (one - low) / (high - low) : 0.5);
  }
  const ends = (values, text) => [text(Math.min(...values)), text(Math.max(...values))];

  function ruler(one, x, y, keep, letters) {  // as many as have room between two axes
    const mark = T.draw("rect", {class: "kept", x: x - 7, width: 14, visibility: "hidden"});
    const share = (event) => {
      const box = group.ownerSVGElement.getBoundingClientRect();
      return Math.max(-0.02, Math.min(1.02, (HIGH - LOW - (event.clientY - box.top) * HIGH / box.height) / (HIGH - TOP - LOW)));
    };
    const paint = () => {
      const range = brushes.get(one.name);
      mark.setAttribute("visibility", range ? "visible" : "hidden");
      if (range) { mark.setAttribute("y", y(range[1])); mark.setAttribute("height", Math.max(2, y(range[0]) - y(range[1]))); }
      keep();
    };
    let from = null;
    const hit = T.draw("rect", {class: "hit", x: x - 14, y: TOP - 8, width: 28, height: HIGH - TOP - LOW + 16});
    hit.addEventListener("pointerdown", (event) => { from = share(event); hit.setPointerCapture(event.pointerId); });
    hit.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const to = share(event);
      if (Math.abs(to - from) > 0.02) { brushes.set(one.name, [Math.min(from, to), Math.max(from, to)]); paint(); }
    });
    hit.addEventListener("pointerup", (event) => {
      if (from !== null && Math.abs(share(event) - from) <= 0.02) { brushes.delete(one.name); paint(); }
      from = null;
    });
    const group = T.draw("g", {"data-axis": one.name}, T.draw("line", {class: "ruler", x1: x, x2: x, y1: y(0), y2: y(1)}), mark, hit,
      T.draw("text", {x, y: 14, class: "name"}, T.cut(one.name.replace(/_/g, " "), letters), T.draw("title", {}, one.name)), T.draw("text", {x, y: TOP - 6}, T.cut(one.ends[1], 12)), T.draw("text", {x, y: HIGH - LOW + 18}, T.cut(one.ends[0], 12)));
    return group;
  }
})(Tinybayes);
