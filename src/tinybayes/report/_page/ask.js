"use strict";
// Questions to a model: what is known on the left, what follows from it on the right. The page computes the answers itself,
// by the program that is exported; a page that is served asks the app, which knows more.
(function (T) {
  const CLASSES = 15;
  const most = () => window.matchMedia("(max-width: 900px)").matches ? 6 : 12;  // rows, so that the answer is in sight
  const known = new Map();  // texts of states by names of variables, so that other models can be asked the same
  let model = null, about = null, asked = 0, against = null, all = false;

  const filter = T.make("input", {type: "search", id: "ask-filter", placeholder: "Find a variable", "aria-label": "Find a variable", autocomplete: "off", on: {input: rows}});
  const forget = T.make("button", {type: "button", id: "ask-forget", class: "plain", on: {click: () => { known.clear(); T.rows.changed(); rows(); ask(); }}}, "Forget all");
  const facts = T.make("div", {class: "chips", id: "ask-facts"});
  const list = T.make("div", {id: "ask-rows", role: "group", "aria-label": "What is known"});
  const more = T.make("button", {type: "button", id: "ask-more", class: "plain", on: {click: () => { all = true; rows(); ask(); }}});
  const meaning = T.make("p", {class: "quiet small", id: "ask-unknown"});
  const answer = T.make("div", {id: "ask-answer", "aria-live": "polite", "aria-atomic": "false"});
  const box = T.make("section", {class: "card", id: "ask", "aria-labelledby": "ask-title", hidden: true},
    T.make("div", {class: "bar"}, T.make("h3", {id: "ask-title"}, "Ask this model"), T.make("span", {class: "grow"}), filter, forget),
    facts, T.make("div", {class: "ask"}, T.make("div", {}, list, more, meaning), answer));
  T.byId("panels").before(box);

  const UNKNOWN = {
    network: "What is not known is summed out: the answer is the mean over all that it may be, as probable as the model says.",
    circuit: "What is not known is summed out: the answer is the mean over all that it may be, as probable as the model says.",
    net: "A net knows no probabilities of its inputs: what is not known enters as zero, which is the mean of a number, or none of the states. The more is unknown, the less the answer means.",
    trees: "Where a test asks for what is not known, the row goes to the side that was learned for gaps.",
  };

  // The variables of a model, and how its program runs in this page.
  T.questions = function (model) {
    const card = T.card(model);
    if (!card || !card.program) return null;
    if (!card.ask) {
      const variables = T.data.variables[card.variables].map(({name, states, encoding}, node) => ({
        name, encoding, states: Array.from({length: card.sizes[node]}, (_, i) => i < states.length ? states[i] : String(i)),
      }));
      card.ask = {variables, target: card.target, explains: false, posteriors: false, kind: card.kind, sums: card.kind !== "network" || Boolean(card.program.forest)};
    }
    return card.ask;
  };
  const programs = new WeakMap();  // by card
  T.answer = async function (model, pairs) {
    const card = T.card(model), size = card.sizes.length - (card.kind === "circuit" ? 0 : 1);
    if (!programs.has(card)) programs.set(card, tinybayesProgram(card.program));
    const program = programs.get(card);
    const row = new Array(size).fill(-1);
    for (const [node, code] of pairs) if (node < size) row[node] = code;
    const classes = program.probabilities(row);
    if (classes === null) return {note: "This structure takes complete rows: say what every variable is."};
    return {classes, best: program.predict(row), local: true};
  };
  T.asking = {known, box, get about() { return about; }, refresh() { rows(); ask(); }};

  const show = T.showModel;
  T.showModel = function (chosen) {
    show(chosen);
    const questions = T.questions(chosen) || null;
    box.hidden = !questions;
    if (!questions || questions === about) return;
    [model, about, against] = [chosen, questions, null];
    meaning.textContent = about.sums === false ? "" : UNKNOWN[about.kind] || "";
    rows();
    T.rows.show();
    ask();
  };

  // What is known, in the numbers of the model that is asked.
  function codes() {
    const pairs = [];
    about.variables.forEach((variable, node) => {
      const code = known.has(variable.name) ? variable.states.indexOf(known.get(variable.name)) : -1;
      if (code >= 0 && (about.posteriors || node !== about.target)) pairs.push([node, code]);
    });
    return pairs;
  }

  function rows() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const order = about.variables.map((_, node) => node).filter((node) => node !== about.target);
    if (about.posteriors && about.target !== null) order.unshift(about.target);
    const matching = order.filter((node) => words.every((word) => about.variables[node].name.toLowerCase().includes(word)));
    const shown = all ? matching : matching.slice(0, most());
    list.replaceChildren(...shown.map(row));
    more.hidden = shown.length === matching.length;
    more.textContent = `Show all ${T.count(matching.length)} variables`;
    if (!matching.length) list.append(T.make("p", {class: "quiet"}, "No variable has such a name."));
  }

  function row(node) {
    const variable = about.variables[node], id = `ask-${node}`;
    const options = [T.make("option", {value: ""}, "not known"), ...variable.states.map((state) => T.make("option", {value: state}, state))];
    const select = T.make("select", {id, "data-node": node, on: {change: () => set(variable.name, select.value)}}, ...options);
    select.value = known.has(variable.name) && variable.states.includes(known.get(variable.name)) ? known.get(variable.name) : "";
    const name = T.make("label", {for: id}, variable.name, node === about.target ? T.make("span", {class: "quiet"}, " (class)") : null);
    return T.make("div", {class: "ask-row"}, name, select, T.make("div", {class: "strip", "data-node": node}));
  }

  function set(name, state) {
    T.rows.changed();
    if (state === "") known.delete(name);
    else known.set(name, state);
    for (const select of list.querySelectorAll("select")) {
      const variable = about.variables[+select.dataset.node];
      if (variable.name === name) select.value = state;
    }
    ask();
  }

  async function ask() {
    const number = ++asked, pairs = codes();
    facts.replaceChildren(...pairs.map(([node, code]) => {
      const {name, states} = about.variables[node];
      return T.make("button", {type: "button", class: "chip", "aria-label": `Forget ${name}`, on: {click: () => set(name, "")}}, T.cut(`${name}: ${states[code]}`, 50), T.make("span", {class: "quiet"}, "×"));
    }));
    let reply;
    try {
      reply = await T.answer(model, pairs, against);
    } catch (problem) {
      reply = {note: problem.message};
    }
    if (number !== asked) return;  // a newer question is under way
    T.rows.draw();
    strips(reply.posteriors);
    answer.replaceChildren();
    if (reply.note) answer.append(T.make("p", {class: "quiet"}, reply.note));
    if (reply.classes) classes(reply.classes, reply.best);
    if (reply.local) answer.append(T.make("p", {class: "quiet small", id: "ask-local"}, "Computed in this page, by the integers of the exported program: the label is that of Python and of a device. Probabilities are rounded for display."));
    if (reply.explanation) explanation(reply.explanation);
    if (reply.log_evidence !== null && reply.log_evidence !== undefined && pairs.length) {
      answer.append(T.make("p", {class: "quiet small", id: "ask-evidence"}, `The probability of what is known is ${T.number(Math.exp(reply.log_evidence))} (its logarithm ${T.number(reply.log_evidence)}).`));
    }
    answer.dataset.number = number;
  }

  function strips(posteriors) {
    for (const strip of list.querySelectorAll(".strip")) {
      const node = +strip.dataset.node, {name, states} = about.variables[node];
      const shares = posteriors && posteriors[node];
      strip.replaceChildren();
      strip.removeAttribute("title");
      if (!shares || states.length < 2 || (known.has(name) && states.includes(known.get(name)))) continue;
      const best = shares.indexOf(Math.max(...shares));
      const pieces = shares.map((share, code) => {
        const piece = T.make("i");
        piece.style.width = `${100 * share}%`;
        piece.style.setProperty("--step", 15 + 70 * (states.length > 1 ? code / (states.length - 1) : 0));
        return piece;
      });
      strip.title = states.slice(0, 30).map((state, code) => `${state}: ${T.percent(shares[code])}`).join("\n");
      strip.append(T.make("span", {class: "strip-bar", "aria-hidden": "true"}, ...pieces), T.make("span", {class: "quiet small"}, `${T.cut(states[best], 22)}: ${share(shares[best])}`));
    }
  }
  const share = (value) => value > 0.9995 && value < 1 ? "> 99.9 %" : `${(100 * value).toFixed(1)} %`;

  function classes(shares, best) {
    const {name, states} = about.variables[about.target];
    const order = shares.map((_, code) => code);
    const many = order.length > CLASSES;
    if (many) order.sort((a, b) => shares[b] - shares[a]);
    const top = best ?? shares.indexOf(Math.max(...shares));
    const lines = order.slice(0, CLASSES).map((code) => {
      const press = () => { against = code; ask(); };
      const label = about.explains ? T.make("button", {type: "button", title: `Why not ${states[code]}?`, on: {click: press}}, T.cut(states[code], 26)) : T.make("span", {}, T.cut(states[code], 26));
      return T.make("div", {class: code === top ? "odds best-class" : "odds", "data-class": states[code], "data-share": shares[code]}, label, T.make("span", {class: "track"}, T.oddsBar(100 * shares[code], "right")), T.make("span", {class: "figure"}, share(shares[code])));
    });
    answer.append(T.make("h4", {}, name), T.make("div", {id: "ask-classes"}, ...lines));
    const truth = T.rows.truth(name);
    if (truth !== null) answer.append(T.make("p", {class: "small", id: "ask-truth"}, truth === states[top] ? `Right: the table says ${truth}.` : `The table says ${truth}.`));
    if (many) answer.append(T.make("p", {class: "quiet small"}, `The ${CLASSES} most probable of ${T.count(order.length)} classes.`));
  }

  function explanation(reasons) {
    answer.append(T.make("h4", {}, `Why ${reasons.label} and not ${reasons.against}`), T.make("div", {id: "ask-why"}, ...T.odds(reasons)),
      T.make("p", {class: "quiet small"}, `${T.oddsNote(reasons)} Choose a class above to compare with it.`));
  }
})(Tinybayes);
