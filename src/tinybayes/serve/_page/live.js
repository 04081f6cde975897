"use strict";
// A page that is served: it follows the search that runs in the directory, and asks for the inside of a model when it is wanted.
(function (T) {
  const PAUSE = 1000, LONG_PAUSE = 4000;  // milliseconds between two looks, and when nobody looks or answers
  const TRIES = 4;  // of a request for which the app had no time
  const TITLES = new Map([["starting", "Starting"], ["retraining the front", "Retraining the front"]]);  // by phase of the search
  const cards = new Map();
  let own = null, version = "", wasRunning = false;

  T.get = async function (path, parameters) {
    const address = path + (parameters ? "?" + new URLSearchParams(parameters) : "");
    let answer = await fetch(address, {cache: "no-store"});
    for (let k = 0; answer.status === 503 && k < TRIES; k++) {  // too many at once: told to try again
      await new Promise((go) => setTimeout(go, PAUSE * (1 + k)));
      answer = await fetch(address, {cache: "no-store"});
    }
    if (answer.status === 403) throw new Error("open the link that tinybayes serve printed");
    const content = await answer.json();
    if (!answer.ok) throw new Error(content.error || answer.statusText);
    return content;
  };

  // The inside of a model: asked for once, and shown when it comes.
  const keyOf = (model) => `${model.id} ${model.file}`;
  T.card = function (model) {
    if (!model.file) return null;
    const entry = cards.get(keyOf(model));
    if (!entry) { cards.set(keyOf(model), {note: "Looking inside…"}); load(model); }
    if (!entry || !entry.card) return null;
    entry.card.variables = T.data.variables.indexOf(entry.nodes);
    if (entry.card.variables < 0) entry.card.variables = T.data.variables.push(entry.nodes) - 1;
    return entry.card;
  };
  T.questions = (model) => (cards.get(keyOf(model)) || {}).ask;
  T.answer = (model, pairs, against) => T.get("/ask", Object.assign({id: model.id, known: pairs.map((pair) => pair.join(".")).join(",")}, against === null ? {} : {against}));
  const absent = T.absent;
  T.absent = (model) => (cards.get(keyOf(model)) || {}).note || absent(model);

  async function load(model) {
    let entry;
    try {
      entry = await T.get("/model", {id: model.id});
      entry.nodes = entry.card.nodes;
    } catch (problem) {
      entry = {note: `This model cannot be shown: ${problem.message}`};
    }
    cards.set(keyOf(model), entry);
    const shown = T.model(T.state.chosen);
    if (shown && keyOf(shown) === keyOf(model)) T.showModel(shown);
  }

  // The search: how far it is, and a way to end it.
  const bar = T.make("progress", {id: "live-bar", max: 1, value: 0, "aria-label": "Time of the search"});
  const title = T.make("h2", {id: "live-title"}, "Searching");
  const stop = T.make("button", {type: "button", id: "stop", on: {click: end}}, "Stop the search");
  const text = T.make("p", {id: "live-text", "aria-live": "off"});
  const note = T.make("p", {id: "live-note", class: "quiet small", role: "status"});
  const box = T.make("section", {class: "card live", id: "live", "aria-labelledby": "live-title", hidden: true},
    T.make("div", {class: "bar"}, title, T.make("span", {class: "grow"}), stop), bar, text, note);
  document.querySelector("main").prepend(box);

  async function end() {
    stop.disabled = true;
    try {
      const answer = await fetch("/stop", {method: "POST", headers: {"X-Tinybayes-Token": own.token}});
      const content = await answer.json();
      if (!answer.ok) throw new Error(content.error);
      note.textContent = "The search ends after what it is doing now; what it has found is kept.";
    } catch (problem) {
      stop.disabled = false;
      note.textContent = `It could not be stopped: ${problem.message}`;
    }
  }

  function duration(seconds) {
    const whole = Math.max(0, Math.round(seconds)), minutes = Math.floor(whole / 60);
    if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
    return minutes ? `${minutes} min ${whole % 60} s` : `${whole} s`;
  }

  function show(progress) {
    if (!progress) return;
    if (progress.running) wasRunning = true;
    const crashed = !progress.running && progress.phase !== "done";
    box.hidden = !wasRunning && !crashed;
    stop.hidden = !progress.running;
    bar.hidden = !progress.running;
    const parts = [`${T.count(progress.runs)} runs`];
    if (progress.running) {
      const total = progress.seconds + progress.seconds_left, gone = progress.seconds + progress.age;
      bar.value = total > 0 ? Math.min(1, gone / total) : 0;
      title.textContent = TITLES.get(progress.phase) || "Searching";
      if (total > 0) parts.push(gone < total ? `${duration(total - gone)} left` : "ending");
      if (progress.stopping) { stop.disabled = true; stop.textContent = "Stopping…"; }
      else { stop.disabled = false; stop.textContent = "Stop the search"; }
    } else {
      title.textContent = crashed ? "The search was interrupted" : "The search has ended";
      note.textContent = crashed ? "The same command resumes it." : "Figures on test rows are known now. The same command continues the search.";
    }
    const best = progress.best;
    if (best) parts.push(`best so far ${best.said || `${T.percent(best.error)} error`} in ${T.size(best.flash ? 8 * best.flash : best.bits)}: ${best.label}`);
    text.textContent = parts.join(" · ");
  }

  async function follow() {
    let pause = document.hidden ? LONG_PAUSE : PAUSE;
    try {
      const state = await T.get("/state");
      show(state.progress);
      if (state.version !== version) {
        const front = await T.get("/front");
        if (front.version.startsWith("front.json")) cards.clear();  // the models were retrained under the same names
        version = front.version;
        front.data.variables = T.data.variables;  // what is on the page refers to them
        T.update(front.data);
      }
      document.body.classList.remove("lost");
    } catch (problem) {
      pause = LONG_PAUSE;
      document.body.classList.add("lost");
      box.hidden = false;
      stop.hidden = bar.hidden = true;
      title.textContent = "No connection";
      text.textContent = "The app has ended, or this page is old. Start tinybayes serve again and open the link that it prints.";
    }
    setTimeout(follow, pause);
  }

  document.querySelector("footer").textContent = "Served by tinybayes on this machine. Charts by plotly.js (MIT licence).";
  T.started = function () {
    own = T.data.serve;
    version = own.version;
    follow();
  };
})(Tinybayes);
