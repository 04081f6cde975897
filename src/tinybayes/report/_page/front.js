"use strict";
// The front: error over memory, work as area; families that can be hidden; a budget that dims what does not fit.
(function (T) {
  const STEPS = 1000;  // of a slider; the last one means no limit
  const LIMITS = ["memory", "work"];
  // The price of a program on a core, and that of the parameters alone, as papers count it: names of fields, and words.
  const PRICES = {program: {memory: "flash", work: "instructions"}, papers: {memory: "bits", work: "operations"}};
  const NAMES = {flash: "Flash", instructions: "Instructions", bits: "Parameters", operations: "Operations"};
  // What else a budget limits: what a model takes of it, and words.
  const OTHERS = {
    ram: [(model) => model.ram === null ? null : model.ram + model.stack, (limit) => `${T.size(8 * limit)} of RAM`],
    microseconds: [(model) => model.microseconds, (limit) => `${T.number(limit)} µs`],
    features: [(model) => model.feature_cost, (limit) => `${T.number(limit)} for features`],
  };
  T.state = {chosen: null, hidden: new Set(), limits: {}, others: true, price: "program", error: "validation_error", colour: "family", frontOnly: false, group: null};
  for (const field of Object.keys(NAMES)) T.state.limits[field] = Infinity;
  const range = {};
  const field = (name) => PRICES[T.state.price][name];
  const memoryOf = (model) => Math.max(1, model[field("memory")]), workOf = (model) => model[field("work")];
  const inBytes = (memory) => T.state.price === "program" ? memory : memory / 8;
  const sizeText = (value) => T.size(T.state.price === "program" ? 8 * value : value);

  const errorOf = T.errorOf = (model) => model[T.metricKey(T.state.error)];
  // What is not known fits only where there is no limit. Within the limits of the search its own word counts: it adds
  // what its estimates may lack.
  T.fits = function (model) {
    if (model.within !== null && unchanged()) return model.within;
    const others = Object.entries(OTHERS).every(([name, [taken]]) => !T.state.others || (taken(model) ?? (T.data.budget[name] ? Infinity : 0)) <= (T.data.budget[name] ?? Infinity));
    return others && LIMITS.every((name) => (model[field(name)] ?? Infinity) <= T.state.limits[field(name)]);
  };
  const given = (name) => T.data.budget[name] || Infinity;
  const limitOf = (one) => LIMITS.map(field).includes(one) ? T.state.limits[one] : Infinity;  // those of the other price do not count
  const unchanged = () => T.state.others && Object.keys(NAMES).every((one) => limitOf(one) === given(one));
  const looser = () => !T.state.others || Object.keys(NAMES).some((one) => limitOf(one) > given(one));
  // What can be exported: its file was kept, and it has a program.
  T.ships = (model) => model.file !== null && (!model.tables_only || model.id === T.data.chosen);
  const inGroup = (model) => T.state.group === null || model.group === T.state.group;
  T.visible = (model) => inGroup(model) && !T.state.hidden.has(model.family) && (!T.state.frontOnly || model.on_front);

  T.front = {
    start(again) {
      const {models, budget} = T.data;
      if (models.every((model) => errorOf(model) === null)) T.state.error = "test_error";
      const priced = models.every((model) => model.flash !== null);
      if (!again || !priced) T.state.price = priced && (budget.flash || !(budget.bits || budget.operations)) ? "program" : "papers";
      T.byId("price").hidden = !priced;
      measure();
      if (!again) for (const name of Object.keys(T.state.limits)) T.state.limits[name] = budget[name] || Infinity;
      families();
      controls();
      T.byId("front-section").hidden = models.length < 2;
      if (models.length > 1) T.plot(T.byId("front-plot"), picture, {click: T.open, pick});
      this.show();
    },
    // Show the group that a model belongs to, where there are several.
    enter(group) {
      const groups = [...new Set(T.data.models.map((model) => model.group))];
      const kind = T.byId("group-kind");
      T.byId("group").hidden = groups.length < 2;
      if (groups.length < 2 || group === T.state.group) return;
      kind.replaceChildren(...groups.map((name) => T.make("option", {value: name ?? "", selected: name === group}, name ?? "other")));
      kind.onchange = () => this.enter(groups[kind.selectedIndex]);
      T.state.group = group;
      measure();
      controls();
      this.show();
      T.table.show();
    },
    show() {
      T.redraw(T.byId("front-plot"));
      T.search.show();
      for (const name of LIMITS) {
        const limit = T.state.limits[field(name)];
        const text = limit === Infinity ? "no limit" : name === "memory" ? sizeText(limit) : T.count(limit);
        T.byId(`budget-${name}-name`).textContent = NAMES[field(name)];
        T.byId(`budget-${name}-text`).textContent = text;
        T.byId(`budget-${name}`).setAttribute("aria-valuetext", text);
      }
      const others = Object.entries(OTHERS).filter(([name]) => T.state.others && T.data.budget[name]).map(([name, [, words]]) => words(T.data.budget[name]));
      T.byId("budget-others").hidden = !others.length;
      T.byId("budget-others").textContent = others.length ? `Also at most ${others.join(", ")}.` : "";
      T.byId("cheating").textContent = T.state.error === "test_error" && T.data.models.some((model) => model[T.metricKey("validation_error")] !== null)
        ? "Look, but do not choose here: whoever chooses by test rows has no rows left that tell how good the choice is. The recommendation stays with the validation rows." : "";
      best();
      T.table.dim();
    },
  };

  function measure() {
    for (const name of LIMITS) {
      const known = T.data.models.filter(inGroup).map((model) => model[field(name)]).filter((value) => value !== null);
      const values = known.length ? known.map((value) => Math.log(Math.max(1, value))) : [0];
      range[name] = [Math.min(...values), Math.max(...values)];
    }
  }

  function families() {
    const present = [...new Set(T.data.models.map((model) => model.family))];
    const known = Object.keys(T.LOOKS);
    present.sort((a, b) => (known.indexOf(a) + 99) % 99 - (known.indexOf(b) + 99) % 99);
    T.byId("families").replaceChildren(...present.map((family) => {
      const name = T.data.families[family] || family;
      const press = (event) => {
        const hide = !T.state.hidden.delete(family);
        if (hide) T.state.hidden.add(family);
        event.currentTarget.setAttribute("aria-pressed", String(!hide));
        T.front.show();
        T.table.show();
      };
      const pressed = String(!T.state.hidden.has(family));
      return T.make("button", {type: "button", class: "chip", "data-family": family, "aria-pressed": pressed, on: {click: press}}, T.dot(family), name);
    }));
  }

  function controls() {
    for (const name of LIMITS) {
      const slider = T.byId(`budget-${name}`);
      slider.value = toStep(name, T.state.limits[field(name)]);
      slider.oninput = () => { T.state.limits[field(name)] = toLimit(name, +slider.value); T.front.show(); };
    }
    T.byId("budget").onsubmit = (event) => event.preventDefault();
    T.byId("budget-reset").onclick = () => {
      for (const name of Object.keys(T.state.limits)) T.state.limits[name] = Infinity;
      T.state.others = false;
      for (const name of LIMITS) T.byId(`budget-${name}`).value = STEPS;
      T.front.show();
    };
    T.byId("price-kind").value = T.state.price;
    T.byId("price-kind").onchange = (event) => { T.state.price = event.target.value; measure(); controls(); T.front.show(); };
    const kind = T.byId("error-kind"), title = T.data.metric.title;
    T.byId("error-name").textContent = title.charAt(0).toUpperCase() + title.slice(1);
    kind.value = T.state.error;
    for (const option of kind.options) option.disabled = T.data.models.every((model) => model[T.metricKey(option.value)] === null);
    kind.onchange = () => { T.state.error = kind.value; T.front.show(); };
    T.byId("colour-kind").value = T.state.colour;
    T.byId("colour-kind").onchange = (event) => { T.state.colour = event.target.value; T.front.show(); };
    T.byId("front-only").checked = T.state.frontOnly;
    T.byId("front-only").onchange = (event) => { T.state.frontOnly = event.target.checked; T.front.show(); T.table.show(); };
  }

  // The step before the last is at the most expensive model, so that the slider covers just the models.
  function toLimit(name, step) {
    const [low, high] = range[name];
    return step >= STEPS ? Infinity : Math.ceil(Math.exp(low + (high - low) * step / (STEPS - 1)) - 1e-6);
  }
  function toStep(name, limit) {
    const [low, high] = range[name];
    if (limit === Infinity || high === low) return STEPS;
    return Math.max(0, Math.min(STEPS, Math.floor((STEPS - 1) * (Math.log(limit) - low) / (high - low) + 1e-6)));
  }

  // The model that the search chose, as long as the limits are not wider than its own; else by the same rule: one that can
  // be exported, of those that were checked on several splits where there are some, the least validation error. The errors
  // on test rows never choose.
  function recommended() {
    const key = T.metricKey("validation_error"), known = T.data.models.some((model) => model[key] !== null) ? key : T.metricKey("test_error");
    const value = (model) => model[known];
    let fitting = T.data.models.filter((model) => T.visible(model) && T.fits(model) && value(model) !== null);
    if (T.data.models.some(T.ships)) fitting = fitting.filter(T.ships);
    const count = fitting.length, checked = fitting.filter((model) => model.checked), chosen = fitting.find((model) => model.id === T.data.chosen);
    if (chosen && !looser()) return {model: chosen, count, value};
    const limit = T.data.budget.error, good = limit ? fitting.filter((model) => value(model) <= limit) : [];
    const byPrice = (a, b) => memoryOf(a) - memoryOf(b) || workOf(a) - workOf(b);
    const order = good.length ? good.sort(byPrice) : (checked.length ? checked : fitting).sort((a, b) => value(a) - value(b) || byPrice(a, b));
    return {model: order[0] || null, count, value};
  }

  function best() {
    const {model, count, value} = recommended();
    const box = T.byId("best");
    if (!model) {
      box.replaceChildren(T.make("strong", {}, "Nothing fits"), "Move a slider to the right, or show more families.");
      return;
    }
    const work = workOf(model) === null ? "" : `, ${T.count(workOf(model))} ${field("work")}`;
    const price = `${T.says(value(model))} on validation rows, ${sizeText(memoryOf(model))}${work}`;
    box.replaceChildren(
      T.make("span", {class: "quiet small"}, `${model.id === T.data.chosen && T.ships(model) ? "Chosen by the search, of" : "Best of"} ${T.count(count)} that fit${T.ships(model) ? " and can be exported" : ""}`),
      T.make("strong", {"data-id": model.id}, model.label), T.make("span", {}, price), T.make("br"),
      T.make("button", {type: "button", class: "main", id: "best-choose", on: {click: () => T.choose(model.id, true)}}, "Look inside"),
    );
  }

  // The mark under the pointer: of several one of the front, then the one whose middle is closest.
  function pick(event) {
    const chart = T.byId("front-plot"), {xaxis, yaxis} = chart._fullLayout, area = chart.querySelector(".nsewdrag").getBoundingClientRect();
    const height = T.height(), [x, y] = [event.clientX - area.left, event.clientY - area.top];
    const near = shown().map((model) => ({model, distance: Math.hypot(xaxis.d2p(inBytes(memoryOf(model))) - x, yaxis.d2p(height(model)) - y)}))
      .filter(({model, distance}) => distance <= diameter(model) / 2 + 3);
    near.sort((a, b) => b.model.on_front - a.model.on_front || a.distance - b.distance);
    return near.length ? near[0].model.id : null;
  }
  const shown = () => T.data.models.filter((model) => T.visible(model) && errorOf(model) !== null);

  function picture() {
    const drawn = shown();
    drawn.sort((a, b) => (a.id === T.state.chosen) - (b.id === T.state.chosen));  // the chosen one on top
    const height = T.height();
    const traces = [steps(drawn, height)];
    for (const onFront of [false, true]) traces.push(points(drawn.filter((model) => model.on_front === onFront), onFront, height));
    const chosen = drawn.filter((model) => model.id === T.state.chosen);
    traces.push({
      x: chosen.map((model) => inBytes(memoryOf(model))), y: chosen.map(height), mode: "markers", hoverinfo: "skip",
      marker: {symbol: "circle-open", size: chosen.map((model) => diameter(model) + 13), color: T.css("--mark"), line: {width: 3}},
    });
    const [low, high] = range.work.map(Math.exp);
    const area = high > low ? `The area of a mark grows with the ${field("work")} of a prediction, from ${T.count(low)} to ${T.count(high)}. ` : "";
    const tables = T.state.price === "program" && T.data.models.some((model) => model.tables_only) ? "Models whose program was not priced are shown by the size of their tables. " : "";
    T.byId("front-key").textContent = area + tables +
      `Filled marks are on the front: no other model is at least as good in ${T.data.metric.title}, memory${T.data.models.some((model) => model.feature_cost !== null) ? ", feature cost" : ""} and work. Choose a mark to look inside.`;
    const fine = window.matchMedia("(pointer: fine)").matches;
    const limit = T.state.limits[field("memory")];
    const limits = limit === Infinity ? [] : [{
      type: "line", xref: "x", yref: "paper", x0: inBytes(limit), x1: inBytes(limit), y0: 0, y1: 1, line: {color: T.css("--mark"), dash: "dash", width: 1.5},
    }];
    const error = `${T.state.error === "test_error" ? "test" : "validation"} ${T.metricAxis()}`;
    return {traces, layout: {
      xaxis: T.axis(Object.assign({title: {text: memoryTitle()}, fixedrange: !fine}, logAxis(drawnAll((model) => inBytes(memoryOf(model))), 1.35))),
      yaxis: T.axis(Object.assign({title: {text: error}, fixedrange: !fine}, logAxis(drawnAll(height), 1.3))),
      shapes: limits, dragmode: fine ? "zoom" : false, margin: {l: 56, r: 14, t: 16, b: 46}, uirevision: `${T.state.error} ${T.state.group} ${T.state.price}`,
    }};
  }

  function memoryTitle() {
    if (window.matchMedia("(max-width: 560px)").matches) return T.state.price === "program" ? "flash (bytes)" : "parameters (bytes)";
    const core = T.data.budget.core ? `, ${T.plain(String(T.data.budget.core))}` : "";
    return T.state.price === "program" ? `flash of the program (bytes${core})` : "memory of the parameters (bytes)";
  }

  const drawnAll = (value) => T.data.models.filter((model) => inGroup(model) && errorOf(model) !== null).map(value);
  // Where no row was wrong, half of the smallest error there is stands for zero.
  T.height = function () {
    const positive = T.data.models.filter(inGroup).map(errorOf).filter((error) => error > 0);
    const floor = positive.length ? Math.min(...positive) / 2 : 0.001;
    const scale = T.data.metric.percent ? 100 : 1;
    return (model) => scale * Math.max(errorOf(model), floor);
  };

  const logAxis = T.logAxis = function (values, room) {
    const low = Math.min(...values) / room, high = Math.max(...values) * room;
    const at = (digits) => {
      const all = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
        for (const digit of digits) all.push(digit * 10 ** power);
      }
      return all.filter((tick) => tick >= low && tick <= high);
    };
    let ticks = at([1, 2, 5]);
    if (ticks.length < 3) ticks = at([1, 1.5, 2, 3, 4, 5, 6, 8]);
    if (ticks.length > 8) ticks = ticks.filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9);
    return {type: "log", range: [Math.log10(low), Math.log10(high)], tickvals: ticks, ticktext: ticks.map(short)};
  };
  function short(value) {
    const [divisor, suffix] = value >= 1e9 ? [1e9, "G"] : value >= 1e6 ? [1e6, "M"] : value >= 1e3 ? [1e3, "k"] : [1, ""];
    return +(value / divisor).toPrecision(3) + suffix;
  }

  function diameter(model) {
    const [low, high] = range.work;
    const known = high > low && workOf(model) !== null;
    const share = known ? (Math.log(Math.max(1, workOf(model))) - low) / (high - low) : 0.3;
    return Math.sqrt(60 + 560 * share);
  }

  function points(models, onFront, height) {
    const byWork = T.state.colour === "work";
    const marker = {
      symbol: models.map((model) => T.look(model.family)[1] + (onFront ? "" : "-open")),
      size: models.map((model) => diameter(model) * (onFront ? 1 : 0.8)),
      opacity: models.map((model) => model.id === T.state.chosen ? 1 : !T.fits(model) ? 0.2 : onFront ? 0.95 : 0.55),
      color: models.map((model) => byWork ? Math.log10(Math.max(1, workOf(model))) : T.look(model.family)[0]),
      line: onFront ? {width: 1, color: T.css("--text")} : {width: 1.5},
    };
    if (byWork) {
      const [low, high] = range.work.map((value) => value / Math.LN10);
      const ticks = [low, (low + high) / 2, high];
      Object.assign(marker, {colorscale: "Viridis", cmin: low, cmax: Math.max(high, low + 0.1), showscale: onFront,
        colorbar: {thickness: 12, outlinewidth: 0, title: {text: field("work"), side: "right"}, tickvals: ticks, ticktext: ticks.map((tick) => short(10 ** tick))}});
    }
    return {
      x: models.map((model) => inBytes(memoryOf(model))), y: models.map(height), mode: "markers", marker, cliponaxis: false,
      customdata: models.map((model) => model.id), text: models.map(hover), hovertemplate: "%{text}<extra></extra>",
    };
  }

  // Whether a validation figure is a mean over several splits, where some are.
  function doubt(model) {
    if (T.state.error === "test_error" || !T.data.models.some((one) => one.checked)) return "";
    return model.checked ? `, mean over several splits, ± ${T.data.metric.percent ? (100 * model.standard_error).toFixed(1) : T.number(model.standard_error)}` : ", on one split";
  }

  function hover(model) {
    const lines = [`<b>${T.plain(T.cut(model.label, 60))}</b>`, T.plain(T.says(errorOf(model)) + doubt(model))];
    if (model.flash !== null) lines.push(`${T.size(8 * model.flash)} of flash${model.tables_only ? " for tables only" : ""}`);
    if (model.instructions !== null) lines.push(`${T.count(model.instructions)} instructions`);
    lines.push(`${T.size(model.bits)} (${T.count(model.bits)} bits) of parameters`);
    for (const name of ["operations", "parameters"]) if (model[name] !== null) lines.push(`${T.count(model[name])} ${name}`);
    if (model.feature_cost !== null) lines.push(`${T.number(model.feature_cost)} for features`);
    if (!T.fits(model)) lines.push("does not fit the budget");
    return lines.join("<br>");
  }

  // The lower border of what is shown: the least error for that much memory.
  function steps(models, height) {
    const x = [], y = [];
    let least = Infinity;
    for (const model of models.filter(T.fits).sort((a, b) => memoryOf(a) - memoryOf(b) || height(a) - height(b))) {
      if (height(model) < least) { least = height(model); x.push(inBytes(memoryOf(model))); y.push(least); }
    }
    return {x, y, mode: "lines", line: {shape: "hv", color: T.css("--quiet"), width: 1.2}, opacity: 0.7, hoverinfo: "skip"};
  }
})(Tinybayes);
