"use strict";
// Whole rows to ask about: pasted, out of a table on this machine, or painted where the features are pixels.
(function (T) {
  const LARGEST = 60e6;  // bytes of a table that is opened
  const CELL = 14, MOST_PIXELS = 4096;
  let table = null, number = 1, truth = null, level = 1, cursor = 0;  // `truth` is a pair: the name of the class, and its state

  const text = T.make("textarea", {id: "rows-text", rows: 3, "aria-label": "A row: values with commas between, or name=value pairs", placeholder: "values in the order of the features, or name=value, or a line of names and a line of values"});
  const use = T.make("button", {type: "button", id: "rows-use", on: {click: () => paste(text.value)}}, "Ask about this row");
  const file = T.make("input", {type: "file", id: "rows-file", accept: ".csv,.tsv,.txt,.gz,.data", on: {change: open}});
  const place = T.make("input", {type: "number", id: "rows-number", min: 1, value: 1, disabled: true, "aria-label": "Number of the row", on: {change: () => go(+place.value)}});
  const [back, next] = [["Row before", "‹", -1], ["Next row", "›", 1]].map(([name, sign, step]) => T.make("button", {type: "button", disabled: true, "aria-label": name, id: step < 0 ? "rows-back" : "rows-next", on: {click: () => go(number + step)}}, sign));
  const note = T.make("p", {class: "quiet small", id: "rows-note", role: "status"});
  const canvas = T.make("canvas", {id: "rows-pixels", tabindex: 0, role: "application", "aria-label": "Pixels: arrows move, space paints, Delete makes a pixel unknown"});
  const ink = T.make("input", {type: "range", id: "rows-ink", min: 0, max: 100, value: 100, on: {input: () => { level = +ink.value / 100; }}});
  const blank = T.make("button", {type: "button", id: "rows-blank", on: {click: () => { pixels().forEach((_, i) => paint(i, 0)); T.asking.refresh(); }}}, "Empty image");
  const picture = T.make("div", {class: "pixels", hidden: true}, canvas, T.make("div", {}, T.make("label", {for: "rows-ink"}, "Ink"), ink, blank));
  const box = T.make("details", {id: "rows"}, T.make("summary", {}, "Take a whole row"), T.make("div", {class: "rows"},
    T.make("div", {}, text, T.make("div", {class: "bar"}, use)),
    T.make("div", {}, T.make("label", {for: "rows-file"}, "A table (CSV, also .gz); it stays on this machine"), file, T.make("div", {class: "bar"}, back, place, next), note)));
  T.asking.box.querySelector(".bar").after(box, picture);

  T.rows = {
    show() {
      const image = shape();
      picture.hidden = !image;
      if (image) { canvas.width = CELL * image[1]; canvas.height = CELL * image[0]; this.draw(); }
    },
    draw() { if (!picture.hidden) draw(); },
    changed() { truth = null; note.textContent = ""; },
    truth: (name) => truth && truth[0] === name ? truth[1] : null,
  };

  // Texts between delimiters, of which some may be quoted.
  function parse(content) {
    const first = content.split(/\r?\n/, 1)[0];
    const sign = ["\t", ";", ","].find((one) => first.includes(one)) || ",";
    const lines = [[]];
    let cell = "", quoted = false;
    for (let i = 0; i < content.length; i++) {
      const letter = content[i];
      if (quoted) {
        if (letter !== '"') cell += letter;
        else if (content[i + 1] === '"') { cell += '"'; i++; }
        else quoted = false;
      } else if (letter === '"' && cell.trim() === "") { quoted = true; cell = ""; }
      else if (letter === sign) { lines[lines.length - 1].push(cell); cell = ""; }
      else if (letter === "\n") { lines[lines.length - 1].push(cell); cell = ""; lines.push([]); }
      else if (letter !== "\r") cell += letter;
    }
    lines[lines.length - 1].push(cell);
    return lines.filter((line) => line.length > 1 || line[0].trim() !== "");
  }

  function paste(content) {
    const {variables, target} = T.asking.about, names = variables.map((variable) => variable.name);
    const lines = parse(content.trim());
    if (!lines.length) { note.textContent = "There is nothing to read."; return; }
    if (lines.length > 1) { take(new Map(lines[0].map((name, i) => [name.trim(), lines[1][i]]))); return; }
    const pairs = lines[0].map((cell) => cell.match(/^\s*([^=]+?)\s*=\s*(.*?)\s*$/));
    if (pairs.every((pair) => pair && names.includes(pair[1]))) { take(new Map(pairs.map((pair) => [pair[1], pair[2]]))); return; }
    const features = names.filter((_, node) => node !== target), count = lines[0].length;
    if (count !== features.length && count !== features.length + 1) {
      note.textContent = `Expected ${T.count(features.length)} values in the order of the features, got ${T.count(count)}.`;
      return;
    }
    const order = count > features.length && target !== null ? [...features, names[target]] : features;  // the class may stand at the end
    take(new Map(order.map((name, i) => [name, lines[0][i]])));
  }

  // Ask about a row, given as texts by the names of columns.
  function take(row, said) {
    const {variables, target} = T.asking.about;
    let read = 0;
    truth = null;
    variables.forEach(({name, states, encoding}, node) => {
      if (!encoding || !row.has(name)) { if (node !== target) T.asking.known.delete(name); return; }
      const how = encoding.states === true ? {...encoding, states} : encoding;
      const code = tinybayesProgram.code(how, row.get(name));
      if (node === target) { truth = code >= 0 ? [name, states[code]] : null; T.asking.known.delete(name); return; }
      if (code >= 0) { T.asking.known.set(name, states[code]); read++; } else T.asking.known.delete(name);
    });
    const features = variables.length - (target === null ? 0 : 1), unknown = features - read;
    note.textContent = `${said || "This row"}: ${T.count(read)} of ${T.count(features)} features are known${unknown ? "; the others are empty, or none of the states" : ""}.`;
    T.asking.refresh();
  }

  async function open() {
    const [chosen] = file.files;
    if (!chosen) return;
    try {
      if (chosen.size > LARGEST) throw new Error("it is too large for a page");
      const stream = chosen.name.endsWith(".gz") ? chosen.stream().pipeThrough(new DecompressionStream("gzip")) : chosen.stream();
      const [names, ...lines] = parse(await new Response(stream).text());
      if (!lines.length) throw new Error("it has no rows below its line of names");
      table = {names: names.map((name) => name.trim()), lines};
    } catch (problem) {
      table = null;
      note.textContent = `This table cannot be read: ${problem.message}.`;
    }
    for (const control of [place, back, next]) control.disabled = table === null;
    if (table) { place.max = table.lines.length; go(1); }
  }

  function go(wanted) {
    if (!table || !Number.isFinite(wanted)) return;
    number = Math.max(1, Math.min(table.lines.length, Math.round(wanted)));
    place.value = number;
    take(new Map(table.names.map((name, i) => [name, table.lines[number - 1][i]])), `Row ${T.count(number)} of ${T.count(table.lines.length)}`);
  }

  // The image, where all features are its pixels.
  function shape() {
    const found = T.data.data.image_shape, about = T.asking.about;
    if (!Array.isArray(found) || found.length !== 2 || !about) return null;
    const features = about.variables.length - (about.target === null ? 0 : 1);
    return found[0] * found[1] === features && features <= MOST_PIXELS ? found : null;
  }
  const pixels = () => T.asking.about.variables.filter((_, node) => node !== T.asking.about.target);

  function paint(i, share) {
    const {name, states} = pixels()[i];
    if (share === null) T.asking.known.delete(name);
    else T.asking.known.set(name, states[Math.round(share * (states.length - 1))]);
    T.rows.changed();
  }
  function draw() {
    const context = canvas.getContext("2d"), [, columns] = shape();
    context.clearRect(0, 0, canvas.width, canvas.height);
    pixels().forEach(({name, states}, i) => {
      const [x, y] = [CELL * (i % columns), CELL * Math.floor(i / columns)];
      const code = T.asking.known.has(name) ? states.indexOf(T.asking.known.get(name)) : -1;
      context.fillStyle = code < 0 ? T.css("--raised") : `rgb(${Array(3).fill(Math.round(255 * (1 - code / Math.max(1, states.length - 1)))).join(",")})`;
      context.fillRect(x, y, CELL - 1, CELL - 1);
      if (code < 0) { context.fillStyle = T.css("--quiet"); context.fillRect(x + CELL / 2 - 1.5, y + CELL / 2 - 1.5, 2, 2); }
      if (i === cursor && document.activeElement === canvas) { context.strokeStyle = T.css("--mark"); context.lineWidth = 2; context.strokeRect(x, y, CELL - 1, CELL - 1); }
    });
  }
  let painting = false;
  const under = (event) => {
    const area = canvas.getBoundingClientRect(), [rows, columns] = shape();
    const [r, c] = [Math.floor((event.clientY - area.top) * rows / area.height), Math.floor((event.clientX - area.left) * columns / area.width)];
    return r >= 0 && r < rows && c >= 0 && c < columns ? r * columns + c : -1;
  };
  const stroke = (event) => {
    const i = under(event);
    if (i < 0) return;
    cursor = i;
    paint(i, event.shiftKey ? null : level);
    T.asking.refresh();
  };
  canvas.addEventListener("pointerdown", (event) => { painting = true; canvas.setPointerCapture(event.pointerId); stroke(event); });
  canvas.addEventListener("pointermove", (event) => { if (painting) stroke(event); });
  canvas.addEventListener("pointerup", () => { painting = false; });
  canvas.addEventListener("focus", draw);
  canvas.addEventListener("blur", draw);
  canvas.addEventListener("keydown", (event) => {
    const [, columns] = shape(), size = pixels().length;
    const step = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns}[event.key];
    if (step) cursor = Math.max(0, Math.min(size - 1, cursor + step));
    else if (event.key === " ") { paint(cursor, level); T.asking.refresh(); }
    else if (event.key === "Delete") { paint(cursor, null); T.asking.refresh(); }
    else return;
    event.preventDefault();
    draw();
  });
  document.addEventListener("theme", () => T.rows.draw());
})(Tinybayes);
