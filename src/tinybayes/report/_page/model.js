"use strict";
// The chosen model: its figures, then one panel for each thing that is known about it.
(function (T) {
  const BARS = 14;

  // A page that is served looks its cards up elsewhere.
  T.card = (model) => T.data.cards[model.id];
  T.absent = () => "Only the figures of this model were kept: it is a run of a sweep, or another model is better in every way.";

  T.showModel = function (model) {
    const card = unpacked(T.card(model));
    T.byId("model-title").replaceChildren(T.dot(model.family), model.label);
    const settings = Object.entries(model.settings || {}).map(([name, value]) => [name.replace(/_/g, " "), T.words(value)]);
    T.facts(T.byId("facts"), [
      ["family", T.data.families[model.family] || model.family],
      ...metric(model), ["validation error", T.figure(model, "validation_error")], ["test error", T.percent(model.test_error)],
      ["feature cost", model.feature_cost === null ? "" : T.number(model.feature_cost)], ...program(model), ["parameters", `${T.size(model.bits)} (${T.count(model.bits)} bits), ${T.count(model.parameters)} entries`],
      ["operations", T.count(model.operations)], ["multiplications", T.count(model.multiplications)], ["file", model.file || ""],
      ...(card ? card.facts.filter(([name]) => !["features", "classes"].includes(name)) : []),
    ]);
    T.facts(T.byId("settings"), settings);
    T.byId("settings-title").hidden = !settings.length;
    boards(model.boards);
    const panels = T.byId("panels");
    panels.replaceChildren();
    if (card) inside(panels, card);
    else panels.append(T.make("p", {class: "card quiet"}, T.absent(model)));
    if (model.confusion) T.confusion(panel(panels, "Confusion matrix", "confusion"), model.confusion, classes(card, model.confusion.length));
    if (model.reliability && model.reliability.length) reliability(panel(panels, "Reliability", "reliability"), model.reliability);
    if (card) breakdown(panel(panels, "Where the price comes from", "breakdown"), card.breakdown);
    if (model.history && model.history.length) history(panel(panels, "Learning curve", "history"), model.history);
    if (model.explanations && model.explanations.length) explanations(panel(panels, "Why these labels", "why", true), model.explanations);
    if (card) code(panel(panels, "As C99 for a device", "code-panel", true), card.code, model);
    T.redraw();
  };

  function metric(model) {
    const {name, title} = T.data.metric;
    return name === "error" ? [] : ["validation", "test"].map((rows) => [`${rows} ${title}`, T.figure(model, `${rows}_value`)]);
  }

  // What the program takes on a core, from raw values to a label; of some models only the tables are known.
  function program(model) {
    if (model.flash === null) return [];
    const core = T.data.budget.core ? ` on ${T.data.budget.core}` : "";
    if (model.tables_only) return [["flash of its tables", T.size(8 * model.flash)]];
    const time = model.microseconds === null ? "" : `, ${T.number(model.microseconds)} µs`;
    return [
      [`flash${core}`, `${T.count(model.flash)} B`], ["RAM", `${T.count(model.ram)} B and ${T.count(model.stack)} B of stack`],
      ["a prediction", model.instructions === null ? "" : `${T.count(model.instructions)} instructions${time}`],
    ];
  }

  // Names that models have in common are kept once in the page; put them where they belong.
  function unpacked(card) {
    if (!card || card.names) return card;
    card.names = T.data.variables[card.variables].map((variable) => variable.name);
    if (!card.graph.labels) {
      const features = card.graph.kinds.map((kind, i) => kind === "class" ? card.names[card.target] : card.names[i]);
      card.graph.labels = features;
    }
    card.breakdown = card.breakdown.map(([part, bits, operations]) => ({name: typeof part === "number" ? card.names[part] : part, bits, operations}));
    return card;
  }

  // Wide panels stand alone; others that follow each other share two columns, and go into the shorter one.
  function panel(panels, title, id, wide) {
    const box = T.make("section", {class: "card", id}, T.make("h3", {}, title));
    let column = panels;
    if (!wide) {
      let pair = panels.lastElementChild;
      if (!pair || !pair.classList.contains("pair")) panels.append(pair = T.make("div", {class: "pair"}, T.make("div"), T.make("div")));
      const [left, right] = pair.children;
      column = right.offsetHeight < left.offsetHeight ? right : left;
    }
    column.append(box);
    return box;
  }

  T.classNames = (model, size) => classes(unpacked(T.card(model)), size);
  function classes(card, size) {
    const states = card && card.target !== null ? T.data.variables[card.variables][card.target].states : [];
    return Array.from({length: size}, (_, i) => i < states.length ? states[i] : String(i));
  }

  function boards(list) {
    const box = T.byId("boards");
    box.replaceChildren();
    box.hidden = !list || !list.length;
    if (box.hidden) return;
    const names = {core: "core", flash: "flash (bytes)", ram: "RAM (bytes)", stack: "stack (bytes)", instructions: "instructions"};
    const head = T.make("tr", {}, ...Object.values(names).map((name) => T.make("th", {scope: "col", class: "words"}, T.make("button", {type: "button", disabled: true}, name))));
    const cell = (value) => typeof value === "number" ? T.count(value) : value === undefined || value === null ? "" : String(value);
    const rows = list.map((board) => T.make("tr", {}, ...Object.keys(names).map((name) => T.make("td", {class: "words"}, cell(board[name])))));
    box.append(T.make("h3", {}, "Measured on emulated boards, for one prediction"), T.make("table", {id: "board-table"}, T.make("thead", {}, head), T.make("tbody", {}, ...rows)));
  }

  function inside(panels, card) {
    const titles = {network: "Structure", circuit: "The circuit, from its root", net: "Layers", trees: "A decision tree, from its root"};
    const keys = {
      network: "A line leads from a parent to its child. Blue features depend on the class, hollow ones do not.",
      circuit: "Green nodes are sums, blue ones products, orange ones indicators, pink ones parameters; a dashed rim means that more hangs below.",
      net: "All arithmetic is integer arithmetic.",
      trees: "Blue nodes are tests: the upper branch is that of the answer yes. Orange ones are leaves; a dashed rim means that more hangs below.",
    };
    const box = panel(panels, titles[card.kind], "structure", true);
    const tables = card.tables && card.tables.length ? tablePanel(panels, card) : null;
    // The class is the last mark of the graph, whatever its number is among the variables.
    const variable = (mark) => card.graph.kinds[mark] === "class" ? card.target : mark;
    const drawn = T.graph(box, card.graph, {label: `${titles[card.kind]}: arrows move it, plus and minus zoom`, search: card.kind !== "net", click: (mark) => { if (tables) tables.show(variable(mark)); }});
    if (tables) tables.told = (node) => drawn.choose(node === card.target ? card.graph.kinds.indexOf("class") : node);
    box.append(T.make("p", {class: "quiet small"}, `${keys[card.kind]} ${card.graph.note || ""}`));
    if (card.kind === "network" && card.levels) T.levels(panel(panels, "Use of the levels", "levels"), card.levels, "log-parameter");
    if (card.kind === "circuit" && card.levels) T.levels(panel(panels, "Use of the levels", "levels"), card.levels, "log-parameter");
    if (card.weights) {
      const weights = panel(panels, "Weights", "weights", true);
      weights.classList.add("weights");
      card.weights.forEach((layer) => T.weights(weights, layer));
    }
  }

  function tablePanel(panels, card) {
    const box = panel(panels, "Tables", "tables", true);
    const variables = T.data.variables[card.variables];
    const name = (table) => {
      const given = table.parents.map((parent) => variables[parent].name);
      return T.cut(variables[table.node].name + (given.length ? ` given ${given.join(", ")}` : ""), 70);
    };
    const select = T.make("select", {id: "table-choice", "aria-label": "Table to show"}, ...card.tables.map((table, i) => T.make("option", {value: i}, name(table))));
    const heat = T.make("div", {id: "table-heat"});
    const left = card.left_out ? `${T.count(card.left_out)} tables were left out to keep this page small. ` : "";
    const quantised = card.worths[card.tables[0].worth].exact ? "Each is the exponential of a quantised log-parameter, so that rows need not add up to one; hover to see the level." : "";
    box.append(T.make("div", {class: "bar"}, select), heat, T.make("p", {class: "quiet small"}, `Numbers are probabilities. ${quantised} ${left}`));
    const tables = {told: null, show(node) {
      const i = card.tables.findIndex((table) => table.node === node);
      if (i >= 0) { select.value = i; draw(i); }
    }};
    function draw(i) {
      heat.replaceChildren();
      T.cpt(heat, card, card.tables[i]);
    }
    select.onchange = () => { draw(+select.value); if (tables.told) tables.told(card.tables[+select.value].node); };
    select.value = card.shown;
    draw(card.shown);
    return tables;
  }

  function chart(box, label, make) {
    const chartBox = T.make("div", {class: "plot", role: "img", "aria-label": label});
    box.append(chartBox);
    T.plot(chartBox, make);
  }

  function reliability(box, bins) {
    const most = Math.max(...bins.map((bin) => bin[2]), 1);
    chart(box, "Share of right labels over confidence", () => ({
      traces: [
        {x: [0, 1], y: [0, 1], mode: "lines", line: {dash: "dot", color: T.css("--quiet"), width: 1}, hoverinfo: "skip"},
        {x: bins.map((bin) => bin[0]), y: bins.map((bin) => bin[1]), mode: "lines+markers", line: {color: T.css("--heat"), width: 1.2},
          cliponaxis: false, marker: {size: bins.map((bin) => 4 + 20 * Math.sqrt(bin[2] / most)), opacity: 0.9},
          text: bins.map((bin) => `said ${T.percent(bin[0])}, right ${T.percent(bin[1])}<br>${T.count(bin[2])} rows`), hovertemplate: "%{text}<extra></extra>"},
      ],
      layout: {xaxis: T.axis({title: {text: "confidence of the label"}, range: [0, 1.06]}), yaxis: T.axis({title: {text: "share of right labels"}, range: [0, 1.08]})},
    }));
    box.append(T.make("p", {class: "quiet small"}, "On the dotted line the confidence equals the accuracy; below it the model is overconfident. The area of a mark is its share of the rows."));
  }

  // Rows of the data, each with what its features said for the label and against it.
  function explanations(box, rows) {
    box.append(T.make("div", {class: "why"}, ...rows.map((entry) => {
      const right = entry.label === entry.truth;
      const verdict = right ? "rightly" : `wrongly: it is ${entry.truth}`;
      return T.make("section", {class: right ? "right" : "wrong", "data-row": entry.row}, T.make("h4", {}, `Row ${T.count(entry.row + 1)}: ${entry.label} and not ${entry.against}, ${verdict}`), ...T.odds(entry), T.make("p", {class: "quiet small"}, T.oddsNote(entry)));
    })));
  }

  function history(box, points) {
    chart(box, "Error over the epochs of training", () => ({
      traces: [{x: points.map((point) => point[0]), y: points.map((point) => 100 * point[1]), mode: points.length > 60 ? "lines" : "lines+markers", line: {color: T.css("--heat"), width: 2}, hovertemplate: "epoch %{x}: %{y:.2f} %<extra></extra>"}],
      layout: {xaxis: T.axis({title: {text: "epoch"}}), yaxis: T.axis({title: {text: "validation error (%)"}, rangemode: "tozero"})},
    }));
  }

  // The most expensive parts, memory and operations side by side; the others would dwarf them in one bar, so words say what they take.
  function breakdown(box, parts) {
    const sorted = [...parts].sort((a, b) => b.bits - a.bits || b.operations - a.operations);
    const shown = sorted.slice(0, BARS).reverse(), rest = sorted.slice(BARS);
    const sum = (name) => rest.reduce((total, part) => total + part[name], 0);
    const chartBox = T.make("div", {class: "plot", role: "img", "aria-label": "Memory and operations of each part"});
    chartBox.style.height = `${70 + 21 * shown.length}px`;
    box.append(chartBox);
    const bar = (name, axis, colour, text) => ({
      type: "bar", orientation: "h", y: shown.map((_, i) => i), x: shown.map((part) => name === "bits" ? part.bits / 8 : part[name]), xaxis: axis, marker: {color: colour},
      text: shown.map((part) => `${T.plain(part.name)}: ${text(part[name])}`), textposition: "none", hovertemplate: "%{text}<extra></extra>",
    });
    T.plot(chartBox, () => ({
      traces: [bar("bits", "x", "#0072b2", (bits) => `${T.size(bits)} (${T.count(bits)} bits)`), bar("operations", "x2", "#e69f00", (work) => `${T.count(work)} operations`)],
      layout: {
        xaxis: T.axis({domain: [0, 0.46], title: {text: "bytes"}, nticks: 4, tickformat: "~s"}), xaxis2: T.axis({domain: [0.54, 1], title: {text: "operations"}, nticks: 4, tickformat: "~s"}),
        yaxis: T.axis({tickvals: shown.map((_, i) => i), ticktext: shown.map((part) => T.plain(T.cut(part.name, 18))), ticks: ""}), bargap: 0.25,
      },
    }));
    if (rest.length) {
      const text = `The ${BARS} most expensive of ${T.count(parts.length)} parts. The others take ${T.size(sum("bits"))} and ${T.count(sum("operations"))} operations together.`;
      box.append(T.make("p", {class: "quiet small"}, text));
    }
  }

  // Both files, whole where they are not too long, and the command that writes them for this very model.
  function code(box, program, model) {
    if (program.note) { box.append(T.make("p", {class: "quiet"}, program.note)); return; }
    const words = T.data.directory && model.file ? [T.data.directory, "--model", model.id] : [model.file || "MODEL"];
    const command = ["tinybayes", "export", ...words, "--to", "c", "-o", "firmware"].map(quoted).join(" ");
    listing("code-command", "shell", command, null);
    for (const [id, name, text] of [["code-header", "model.h", program.header], ["code-source", "model.c", program.source]]) listing(id, name, text, program.whole);
    const note = program.whole ? `Both files are whole, ${T.count(program.bytes)} characters: they compile as they are.` : `Tables are cut short here, where both files have ${T.count(program.bytes)} characters; the command writes them whole.`;
    box.append(T.make("p", {class: "quiet small", id: "code-note"}, note));

    function listing(id, name, text, whole) {
      const copy = T.make("button", {type: "button", class: "copy", "aria-label": `Copy ${name === "shell" ? "the command" : name}`}, "Copy");
      copy.addEventListener("click", () => T.copy(copy, text));
      const save = whole ? T.make("button", {type: "button", class: "copy save", "aria-label": `Download ${name}`, on: {click: () => T.download(name, text)}}, "Download") : null;
      const top = T.make("div", {class: "code-top"}, T.make("code", {}, name), T.make("span", {class: "grow"}), whole === false ? null : copy, save);
      box.append(T.make("div", {class: "code"}, top, T.make("pre", {id, tabindex: 0, role: "region", "aria-label": name === "shell" ? "Command that exports this model" : name}, text)));
    }
  }
  const quoted = (word) => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;  // as a shell reads it
})(Tinybayes);
