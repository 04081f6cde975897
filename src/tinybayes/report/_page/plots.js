"use strict";
// Charts in the colours of the page, drawn again when those change.
(function (T) {
  const live = new Map();

  function axis(more) {
    return Object.assign({
      gridcolor: T.css("--grid"), linecolor: T.css("--line"), zeroline: false, ticks: "outside",
      tickcolor: T.css("--line"), automargin: true, fixedrange: true,
    }, more);
  }

  T.axis = axis;
  T.plot = function (container, make, more) {
    live.set(container, make);
    container.drawn = show(container, make);
    if (!more) return;
    // Plotly takes the smallest mark under the pointer; `pick` says which one it should be.
    const picked = (event) => more.pick && event.event && !Array.isArray(event.event) ? more.pick(event.event) : null;
    for (const name of ["plotly_click", "plotly_hover"]) container.removeAllListeners(name);  // of an earlier chart in the same container
    container.on("plotly_click", (event) => more.click(picked(event) ?? event.points[0].customdata));
    container.on("plotly_hover", (event) => {
      const id = picked(event);
      if (id === null || id === event.points[0].customdata) return;
      container.data.forEach((trace, curveNumber) => {
        const pointNumber = (trace.customdata || []).indexOf(id);
        if (pointNumber >= 0) Plotly.Fx.hover(container, [{curveNumber, pointNumber}], "xy", true);
      });
    });
  };

  function show(container, make) {
    const {traces, layout} = make();
    const base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, autosize: true, hovermode: "closest",
      font: {family: getComputedStyle(document.body).fontFamily, size: 13, color: T.css("--text")},
      margin: {l: 50, r: 12, t: 10, b: 42}, dragmode: false,
      hoverlabel: {bgcolor: T.css("--raised"), bordercolor: T.css("--line"), font: {color: T.css("--text"), size: 13}, align: "left"},
    };
    return Plotly.react(container, traces, Object.assign(base, layout), {
      displaylogo: false, displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: "reset",
    });
  }

  T.redraw = function (only) {
    for (const [container, make] of live) {
      if (!container.isConnected) {  // wait until it is drawn: half-drawn ones must not be taken away
        container.drawn.then(() => Plotly.purge(container));
        live.delete(container);
      } else if (!only || only === container) container.drawn = show(container, make);
    }
  };
  document.addEventListener("theme", () => T.redraw());

  // Text that Plotly shows understands a few tags: names must not become any.
  T.plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
})(Tinybayes);
