"use strict";
// Tables of numbers as heat maps, made of real tables: they can be read, copied and reached by a screen reader.
(function (T) {
  const ROWS = 40, NUMBERS = 24;

  // Draw rows of {names, cells: [{share, text, title, wrong}]}; the first rows at once, all of them when asked.
  T.heat = function (container, {corners, columns, rows, label}) {
    const body = T.make("tbody", {});
    const head = T.make("tr", {}, ...corners.map((name) => T.make("th", {scope: "col", class: "side", title: name}, T.cut(name, 24))), ...columns.map((name) => T.make("th", {scope: "col", title: name}, T.cut(name, 16))));
    const table = T.make("table", {class: "heat"}, T.make("caption", {class: "visually-hidden"}, label), T.make("thead", {}, head), body);
    const plain = columns.length <= NUMBERS;
    body.append(...rows.slice(0, ROWS).map((row) => line(row, plain)));
    container.append(T.make("div", {class: "heat-scroll", tabindex: 0, role: "region", "aria-label": label}, table));
    if (rows.length > ROWS) {
      const all = T.make("button", {type: "button", on: {click: () => {
        body.append(...rows.slice(ROWS).map((row) => line(row, plain)));
        all.remove();
      }}}, `Show all ${T.count(rows.length)} rows`);
      container.append(all);
    }
  };

  function line(row, plain) {
    const cells = row.cells.map((cell) => {
      const percent = Math.round(100 * cell.share);
      const element = T.make("td", {class: cell.wrong ? "wrong" : null, title: cell.title}, plain ? cell.text : "");
      element.style.setProperty("--p", percent);
      return element;
    });
    return T.make("tr", {}, ...row.names.map((name) => T.make("th", {scope: "row", class: "side", title: name}, T.cut(name, 60))), ...cells);
  }

  // One table of a network: P(node | parents), or what its quantised numbers say.
  T.cpt = function (container, card, table) {
    const variables = T.data.variables[card.variables];
    const node = variables[table.node], columns = stateNames(card, table.node);
    const codes = T.codes(table), wide = columns.length, worth = card.worths[table.worth];
    const rows = Array.from({length: table.rows}, (_, row) => ({
      names: table.names ? [table.names[row]] : assignment(card, table.parents, row),
      cells: columns.map((state, column) => {
        const code = codes[row * wide + column], log = T.worth(worth, code);
        const share = Math.exp(log);
        const level = worth.exact ? `, level ${code}` : "";
        return {share: Math.min(1, share), text: T.number(share), title: `${node.name} = ${state}: ${T.number(share)}, log ${log.toFixed(3)}${level}`};
      }),
    }));
    const given = table.parents.map((parent) => variables[parent].name);
    const label = given.length ? `${node.name} given ${given.join(", ")}` : `${node.name}`;
    T.heat(container, {corners: table.names ? ["when"] : given.length ? given : [""], columns, rows, label});
  };

  function stateNames(card, node) {
    const known = T.data.variables[card.variables][node].states;
    return Array.from({length: card.sizes[node]}, (_, i) => i < known.length ? known[i] : String(i));
  }
  // The values of the parents in a row; the last parent runs fastest.
  function assignment(card, parents, row) {
    const parts = [];
    for (let i = parents.length - 1; i >= 0; i--) {
      const size = card.sizes[parents[i]];
      parts.unshift(stateNames(card, parents[i])[row % size]);
      row = Math.floor(row / size);
    }
    return parts.length ? parts : ["always"];
  }

  // The confusion matrix; right labels in the one colour, mistakes in the other, each relative to its true class.
  T.confusion = function (container, counts, names) {
    const rows = counts.map((row, truth) => {
      const total = row.reduce((a, b) => a + b, 0) || 1;
      return {names: [names[truth]], cells: row.map((count, label) => ({
        share: label === truth ? count / total : Math.min(1, 2.5 * count / total), wrong: label !== truth && count > 0, text: count ? T.number(count) : "",
        title: `${names[truth]} taken for ${names[label]}: ${T.count(count)} of ${T.count(total)}`,
      }))};
    });
    T.heat(container, {corners: ["true / predicted"], columns: names, rows, label: "Confusion matrix"});
    const pairs = counts.flatMap((row, truth) => row.map((count, label) => [count, truth, label])).filter(([count, a, b]) => count && a !== b);
    pairs.sort((a, b) => b[0] - a[0]);
    const worst = pairs.slice(0, 3).map(([count, a, b]) => `${names[a]} taken for ${names[b]} (${T.number(count)})`).join(", ");
    container.append(T.make("p", {class: "quiet small"}, worst ? `Most often: ${worst}.` : "No mistakes."));
  };

  // The weights of a layer as an image, a pixel a weight.
  T.weights = function (container, layer) {
    container.append(T.make("h3", {}, `${layer.name}, ${layer.shape.map(T.count).join(" × ")}, ${layer.bits} bits`));
    if (!layer.data) {
      container.append(T.make("p", {class: "quiet small"}, "Too many weights to draw them all here; the levels below count them."));
    } else {
      const [rows, columns] = layer.shape, codes = T.codes(layer);
      const turned = rows > columns;  // a long side lies flat
      const canvas = T.make("canvas", {role: "img", "aria-label": `Weights of ${layer.name}: blue is positive, orange negative`});
      canvas.width = turned ? rows : columns;
      canvas.height = turned ? columns : rows;
      const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
      for (let i = 0; i < codes.length; i++) {
        const row = Math.floor(i / columns), column = i % columns;
        const value = layer.values[codes[i]], pale = 1 - Math.abs(value);
        const colour = value >= 0 ? [0, 114, 178] : [213, 94, 0];
        const spot = 4 * (turned ? column * rows + row : i);
        colour.forEach((part, k) => { image.data[spot + k] = part + (245 - part) * pale; });
        image.data[spot + 3] = 255;
      }
      context.putImageData(image, 0, 0);
      canvas.style.height = `${Math.max(24, Math.min(300, canvas.height * 6))}px`;
      container.append(canvas);
    }
    T.levels(container, layer, "weight");
  };

  // How often each level is used.
  T.levels = function (container, use, what) {
    const total = use.counts.reduce((a, b) => a + b, 0) || 1;
    const box = T.make("div", {class: "plot", role: "img", "aria-label": `How often each of ${use.counts.length} levels is used`});
    container.append(T.make("div", {class: "levels"}, box));
    T.plot(box, () => ({
      traces: [{
        type: "bar", x: use.values.map((_, i) => i), y: use.counts.map((count) => 100 * count / total), marker: {color: T.css("--heat")},
        text: use.values.map((value, i) => `level ${i}: ${what} ${value === null ? "−∞" : T.number(value)}<br>${T.count(use.counts[i])} times`),
        textposition: "none", hovertemplate: "%{text}<extra></extra>",
      }],
      layout: {xaxis: T.axis({title: {text: "level"}, dtick: Math.max(1, Math.ceil(use.counts.length / 16))}), yaxis: T.axis({title: {text: "use (%)"}}), bargap: 0.15},
    }));
  };
})(Tinybayes);
