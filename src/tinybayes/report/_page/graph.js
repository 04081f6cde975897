"use strict";
// A graph whose places were found beforehand: moved by dragging, arrows and buttons, searched by name.
(function (T) {
  const RADIUS = 6, LONGEST = 18, MARGIN = 16, READABLE = 0.5, FIRST = 0.62, CHARACTER = 6.6;

  // Draw into `container`; `more.click(node)` is told what was pressed. Returns {choose}.
  T.graph = function (container, graph, more) {
    const view = {x: 0, y: 0, scale: 1};
    const svg = T.draw("svg", {tabindex: 0, role: "group", "aria-label": more.label});
    const world = T.draw("g", {});
    const frame = T.make("div", {class: graph.height < 120 ? "graph low" : "graph"}, svg);
    const edges = graph.edges.map((pair) => line(pair, "edge"));
    const ofClass = T.draw("g", {}, ...graph.class_edges.map((pair) => line(pair, "edge of-class")));
    const cut = new Set(graph.cut || []);
    const nodes = graph.labels.map(draw);
    const start = graph.kinds.includes("class") ? graph.kinds.indexOf("class") : graph.x.indexOf(Math.min(...graph.x));  // in view at first
    world.append(ofClass, ...edges, ...nodes);
    svg.append(world);
    container.append(bar(), frame);

    function at(node) { return [graph.x[node], graph.y[node]]; }
    function line([from, to], kind) {
      const [x, b] = at(from), [c, d] = at(to);
      const a = x + 16 + CHARACTER * Math.min(graph.labels[from].length, LONGEST);  // behind the label
      const middle = (a + c) / 2;
      return T.draw("path", {class: kind, d: `M${a} ${b}C${middle} ${b} ${middle} ${d} ${c} ${d}`});
    }
    function draw(label, node) {
      const [x, y] = at(node), kind = graph.kinds[node];
      const box = kind === "class" || kind === "layer";
      const mark = box ? T.draw("rect", {x: x - 8, y: y - 8, width: 16, height: 16, rx: 4}) : T.draw("circle", {cx: x, cy: y, r: RADIUS});
      const text = T.draw("text", {x: x + 11, y: y + 4}, T.cut(label, LONGEST));
      const group = T.draw("g", {class: `node ${kind}${cut.has(node) ? " cut" : ""}`}, T.draw("title", {}, graph.titles ? graph.titles[node] : label), mark, text);
      group.addEventListener("click", () => { choose(node); if (more.click) more.click(node); });
      return group;
    }

    function choose(node) {
      nodes.forEach((element, i) => { element.classList.toggle("chosen", i === node); element.classList.remove("near"); });
      graph.edges.forEach(([from, to], i) => {
        const near = from === node || to === node;
        edges[i].classList.toggle("near", near);
        if (near) nodes[from === node ? to : from].classList.add("near");
      });
    }

    function move() {
      world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
      frame.classList.toggle("far", view.scale < READABLE);
    }
    function fit(readable) {
      const width = svg.clientWidth || 600, height = svg.clientHeight || 400;
      const whole = Math.min((width - 2 * MARGIN) / (graph.width + 40), (height - 2 * MARGIN) / Math.max(graph.height, 30), 1.5);
      view.scale = readable ? Math.max(whole, FIRST) : whole;
      view.x = Math.max(MARGIN + 8, (width - graph.width * view.scale) / 2);
      const middle = (height - (graph.height - 26) * view.scale) / 2;
      view.y = middle >= MARGIN ? middle : Math.min(MARGIN + 8, height / 2 - graph.y[start] * view.scale);
      move();
    }
    function zoom(factor, x = svg.clientWidth / 2, y = svg.clientHeight / 2) {
      const scale = Math.max(0.03, Math.min(4, view.scale * factor));
      view.x = x - (x - view.x) * scale / view.scale;
      view.y = y - (y - view.y) * scale / view.scale;
      view.scale = scale;
      move();
    }
    function centre(node) {
      if (view.scale < READABLE) view.scale = 0.9;
      view.x = svg.clientWidth / 2 - graph.x[node] * view.scale;
      view.y = svg.clientHeight / 2 - graph.y[node] * view.scale;
      move();
    }

    let last = null, moved = false;
    svg.addEventListener("pointerdown", (event) => {
      last = [event.clientX, event.clientY];
      moved = false;
      window.addEventListener("pointerup", () => { last = null; }, {once: true});
    });
    svg.addEventListener("pointermove", (event) => {
      if (!last) return;
      view.x += event.clientX - last[0];
      view.y += event.clientY - last[1];
      moved = moved || Math.hypot(event.clientX - last[0], event.clientY - last[1]) > 2;
      last = [event.clientX, event.clientY];
      move();
    });
    svg.addEventListener("click", (event) => { if (moved) event.stopPropagation(); }, true);
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;  // a plain wheel goes on scrolling the page
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, event.clientX - box.left, event.clientY - box.top);
    }, {passive: false});
    svg.addEventListener("keydown", (event) => {
      const step = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60]}[event.key];
      if (step) { view.x += step[0]; view.y += step[1]; move(); }
      else if (event.key === "+" || event.key === "=") zoom(1.25);
      else if (event.key === "-") zoom(0.8);
      else if (event.key === "0") fit(false);
      else return;
      event.preventDefault();
    });

    function bar() {
      const button = (name, text, act) => T.make("button", {type: "button", "aria-label": name, title: name, on: {click: act}}, text);
      const search = T.make("input", {type: "search", placeholder: "Find a variable", "aria-label": "Find a variable in the graph", class: "find", autocomplete: "off"});
      const counter = T.make("span", {class: "quiet small found", "aria-live": "polite"});
      let matches = [], here = 0;
      search.addEventListener("input", () => {
        const word = search.value.toLowerCase();
        matches = word ? (graph.titles || graph.labels).flatMap((label, i) => label.toLowerCase().includes(word) ? [i] : []) : [];
        nodes.forEach((element) => element.classList.remove("match"));
        matches.forEach((i) => nodes[i].classList.add("match"));
        frame.classList.toggle("searching", Boolean(word));
        counter.textContent = word ? `${T.count(matches.length)} found` : "";
        here = 0;
        if (matches.length) centre(matches[0]);
      });
      search.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || !matches.length) return;
        const node = matches[here++ % matches.length];
        centre(node);
        choose(node);
        if (more.click) more.click(node);
      });
      const parts = [more.search ? search : null, counter, T.make("span", {class: "grow"})];
      if (graph.class_edges.length) {
        const shown = graph.class_edges.length <= 40;
        ofClass.style.display = shown ? "" : "none";
        const toggle = (event) => { ofClass.style.display = event.target.checked ? "" : "none"; };
        parts.push(T.make("label", {class: "check"}, T.make("input", {type: "checkbox", checked: shown, class: "class-edges", on: {change: toggle}}), "Edges from the class"));
      }
      parts.push(button("Smaller", "−", () => zoom(0.8)), button("Larger", "+", () => zoom(1.25)), button("Fit: show all of it", "Fit", () => fit(false)));
      return T.make("div", {class: "bar"}, ...parts);
    }

    fit(true);
    new ResizeObserver(() => fit(true)).observe(frame);
    return {choose};
  };
})(Tinybayes);
