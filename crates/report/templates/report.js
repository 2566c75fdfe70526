// Draws the charts of the report from the JSON beside it. No network, no state beyond the pickers.
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  // Okabe and Ito's colours, which colour-blind readers can tell apart, darkest first for print.
  const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"];
  const BANDS = [
    { key: "p50", name: "50 %", dash: "solid", width: 2.2 },
    { key: "p99", name: "99 %", dash: "dash", width: 1.7 },
    { key: "p99_9", name: "99.9 %", dash: "dot", width: 1.5 },
    { key: "max", name: "max", dash: "longdashdot", width: 1 },
  ];
  const CONFIG = { displaylogo: false, responsive: true, displayModeBar: "hover",
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"] };
  const LEGEND = { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 11 } };
  const AXIS = { gridcolor: "#e6e9ee", zeroline: false, linecolor: "#8a94a3", ticks: "outside",
    tickcolor: "#8a94a3", fixedrange: false, automargin: true };
  const several = data.stores.length > 1;
  const phasePicker = document.getElementById("phase");
  const kindPicker = document.getElementById("kind");
  const drawn = new Set();

  const colour = (store) => COLOURS[store % COLOURS.length];
  // Plotly reads a few tags in names; outside text must stay text.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

  function latencyText(us) {
    if (us === null || us === undefined) return "";
    if (us < 1) return (us * 1e3).toPrecision(3) + " ns";
    if (us < 1e3) return us.toPrecision(3) + " µs";
    if (us < 1e6) return (us / 1e3).toPrecision(3) + " ms";
    return (us / 1e6).toPrecision(3) + " s";
  }

  // Ticks at 1, 10, 100 … with their unit, and between them where the span is small.
  function latencyAxis(values) {
    const seen = values.filter((v) => v > 0);
    const low = seen.length ? Math.min(...seen) : 1;
    const high = seen.length ? Math.max(...seen) : 10;
    const steps = high / low > 300 ? [1] : high / low > 8 ? [1, 3] : [1, 1.5, 2, 3, 5, 7];
    const at = [];
    for (let power = -3; power <= 10; power++) for (const s of steps) at.push(s * 10 ** power);
    return { ...AXIS, type: "log", tickvals: at, ticktext: at.map(tickText),
      range: [Math.log10(low) - 0.08, Math.log10(high) + 0.12] };
  }

  function tickText(us) {
    const [value, unit] = us < 0.9999 ? [us * 1e3, "ns"] : us < 999.9 ? [us, "µs"]
      : us < 999900 ? [us / 1e3, "ms"] : [us / 1e6, "s"];
    return +value.toPrecision(3) + " " + unit;
  }

  function layout(extra) {
    return { margin: { l: 62, r: 12, t: 34, b: 44 }, showlegend: true, legend: LEGEND,
      font: { family: "system-ui, 'Liberation Sans', Arial, sans-serif", size: 12, color: "#1c2430" },
      paper_bgcolor: "#fff", plot_bgcolor: "#fff", hovermode: "x unified",
      hoverlabel: { font: { size: 11 } }, ...extra };
  }

  function draw(id, traces, extra) {
    const figure = document.getElementById(id);
    Plotly.react(figure, traces, layout(extra), CONFIG);
    drawn.add(id);
  }

  // All charts over time of a phase span the longest of its runs.
  function seconds(phase) {
    const ends = phase.runs.flatMap((run) => stepped(run).slice(-1));
    return { ...AXIS, title: { text: "since the phase began", standoff: 8 }, ticksuffix: " s",
      hoverformat: ".1f", range: [0, Math.max(...ends, 0.001)] };
  }
  // What was done to a testbed: a band from where it began until it was over.
  function marked(phase, extra) {
    const faults = phase.runs.flatMap((run) => run.faults);
    const band = (fault) => ({ type: "rect", xref: "x", yref: "paper", x0: fault.begin, x1: fault.end,
      y0: 0, y1: 1, layer: "below", line: { width: 1, color: "#b4232a" }, fillcolor: "#b4232a",
      opacity: 0.25 });
    const word = (fault, index) => ({ x: fault.begin, xref: "x", y: 1, yref: "paper", xanchor: "left",
      yanchor: "top", yshift: -12 * (index % 4), showarrow: false, text: plain(fault.text),
      font: { size: 10, color: "#b4232a" } });
    return { ...extra, xaxis: seconds(phase), shapes: faults.map(band), annotations: faults.map(word) };
  }
  const amount = (title) => ({ ...AXIS, title: { text: title, standoff: 8 }, rangemode: "tozero",
    tickformat: "~s", hoverformat: ",.0f" });

  function overview() {
    const phases = data.phases.filter((phase) => !phase.prepares);
    const figure = document.getElementById("overview-figure");
    figure.hidden = phases.length === 0 || (phases.length === 1 && !several);
    if (figure.hidden) return;
    const traces = data.stores.map((name, store) => ({
      type: "bar", name: plain(name), marker: { color: colour(store) },
      x: phases.map((_, index) => index),
      y: phases.map((phase) => (phase.runs.find((run) => run.store === store) || {}).rate ?? null),
      hovertemplate: "%{y:,.0f}/s",
    }));
    // Where a phase is dozens of times faster than another, only a logarithmic axis shows both.
    const rates = traces.flatMap((trace) => trace.y).filter((rate) => rate > 0);
    const low = Math.min(...rates);
    const wide = rates.length > 1 && Math.max(...rates) / low > 30;
    const logarithmic = { ...amount("operations/s, logarithmic"), type: "log", dtick: 1,
      range: [Math.floor(Math.log10(low)), Math.log10(Math.max(...rates)) + 0.1] };
    draw("overview", traces, {
      barmode: "group", bargap: 0.5, showlegend: several,
      xaxis: { ...AXIS, tickvals: phases.map((_, index) => index),
        ticktext: phases.map((phase) => plain(phase.title)), fixedrange: true },
      yaxis: wide ? logarithmic : amount("operations/s"),
    });
  }

  // What searches for the highest rate found: every probe is a point.
  function capacity() {
    if (data.capacity.length === 0) return;
    const label = (found) => plain(data.stores[found.store] + " " + found.title);
    const latency = [], scaling = [];
    for (const found of data.capacity) {
      const own = colour(found.store);
      for (const [key, name, dash] of [["p50", "50 %", "solid"], ["p99", "99 %", "dash"]]) {
        for (const [points, kind, size] of [[found.open, "open", 9], [found.sweep, "closed", 6]]) {
          latency.push({ type: "scatter", mode: "lines+markers", name: label(found) + ", " + kind + ", " + name,
            x: points.map((p) => p.rate), y: points.map((p) => p[key]),
            text: points.map((p) => kind === "closed" ? p.clients + " clients" : p.met ? "met" : plain(p.why)),
            line: { color: own, dash: kind === "open" ? dash : "dot", width: kind === "open" ? 1.6 : 0.8 },
            marker: { color: own, size, symbol: points.map((p) =>
              kind === "closed" ? "x-thin-open" : p.met ? "circle" : "circle-open") },
            hovertemplate: "%{x:,.0f}/s: %{y:,.1f} µs, %{text}<extra></extra>" });
        }
      }
      scaling.push({ type: "scatter", mode: "markers", name: label(found), marker: { color: own, size: 9 },
        x: found.sweep.map((p) => p.clients), y: found.sweep.map((p) => p.rate),
        hovertemplate: "%{x} clients: %{y:,.0f}/s<extra></extra>" });
      if (found.law.length) scaling.push({ type: "scatter", mode: "lines", name: label(found) + ", law",
        x: found.law.map((p) => p[0]), y: found.law.map((p) => p[1]), line: { color: own, width: 1.6 },
        hovertemplate: "%{x} clients: %{y:,.0f}/s<extra></extra>" });
    }
    const rates = { ...AXIS, title: { text: "operations/s", standoff: 8 }, tickformat: "~s" };
    draw("capacity-latency", latency, { hovermode: "closest", xaxis: rates,
      yaxis: latencyAxis(latency.flatMap((trace) => trace.y)) });
    draw("capacity-scaling", scaling, { hovermode: "closest", yaxis: amount("operations/s"),
      xaxis: { ...AXIS, title: { text: "clients", standoff: 8 } } });
  }

  const kindOf = (run) => run.kinds.find((kind) => kind.name === kindPicker.value);

  function overTime(id, phase, title, values, step) {
    const traces = phase.runs.filter(kindOf).map((run) => ({
      type: "scatter", mode: "lines", name: plain(data.stores[run.store]),
      x: stepped(run), y: held(values(run)), line: { color: colour(run.store), width: 2, shape: step },
      connectgaps: false, hovertemplate: "%{y:,.0f}",
    }));
    draw(id, traces, marked(phase, { showlegend: several, yaxis: amount(title) }));
  }

  // What each process used: one colour for each of its own, one dash for each store.
  function uses(id, phase, title, values, format) {
    const figure = document.getElementById(id + "-figure");
    const traces = [];
    for (const run of phase.runs) run.processes.forEach((process, index) => {
      const y = values(process);
      if (!y.some((v) => v > 0)) return;
      const store = plain(data.stores[run.store]);
      traces.push({
        type: "scatter", mode: "lines",
        name: several ? store + " " + plain(process.name) : plain(process.name),
        x: stepped(process), y: held(y), connectgaps: false, hovertemplate: format,
        line: { color: colour(index), width: 2, shape: "hv",
          dash: ["solid", "dash", "dot"][run.store % 3] },
      });
    });
    figure.hidden = traces.length === 0;
    if (figure.hidden) return;
    draw(id, traces, marked(phase, { yaxis: amount(title) }));
  }

  // A point stands for a stretch of time: its value holds until the stretch ends.
  function stepped(run) {
    const last = run.start.length - 1;
    return last < 0 ? [] : run.start.concat(run.start[last] + run.length[last]);
  }
  const held = (values) => (values.length ? values.concat(values[values.length - 1]) : []);

  function latencies(id, phase, clock) {
    const all = [];
    const traces = [];
    for (const run of phase.runs) {
      const bands = (kindOf(run) || {})[clock];
      if (!bands) continue;
      for (const band of BANDS) {
        const y = bands[band.key];
        all.push(...y.filter((v) => v !== null));
        const store = plain(data.stores[run.store]);
        traces.push({
          type: "scatter", mode: run.start.length < 3 ? "lines+markers" : "lines",
          name: several ? store + " " + band.name : band.name,
          x: run.start.map((s, i) => s + run.length[i] / 2), y,
          line: { color: colour(run.store), width: band.width, dash: band.dash },
          opacity: band.key === "max" ? 0.6 : 1, connectgaps: false,
          text: y.map(latencyText), hovertemplate: "%{text}",
        });
      }
    }
    draw(id, traces, marked(phase, { yaxis: latencyAxis(all) }));
  }

  function curves(phase) {
    const traces = [];
    const all = [];
    for (const run of phase.runs) {
      for (const [clock, dash] of [["response", "solid"], ["service", phase.open ? "dot" : "solid"]]) {
        const curve = run[clock + "_curve"];
        if (!curve || curve.x.length === 0) continue;
        all.push(...curve.y);
        const name = [several ? plain(data.stores[run.store]) : "", clock].filter(Boolean).join(" ");
        traces.push({ type: "scatter", mode: "lines", name, x: curve.x, y: curve.y,
          line: { color: colour(run.store), width: 2, dash }, text: curve.y.map(latencyText),
          hovertemplate: "%{text}" });
      }
    }
    const at = [2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];
    const text = ["50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "10⁻⁶", "10⁻⁷", "10⁻⁸"];
    draw("curve", traces, { xaxis: { ...AXIS, type: "log", tickvals: at, ticktext: text, tickangle: 0,
      title: { text: "percentile", standoff: 8 }, unifiedhovertitle: { text: "1 in %{x:.3s}" } },
      yaxis: latencyAxis(all) });
  }

  const some = (phase, values) => phase.runs.some((run) => values(run).some((v) => v > 0));
  const failedOf = (run) => (kindOf(run) || { failed: [] }).failed;

  function show() {
    const phase = data.phases[+phasePicker.value];
    if (!phase) return;
    document.getElementById("phase-title").textContent = "Phase: " + phase.title;
    const figure = (id) => document.getElementById(id + "-figure");
    figure("response").hidden = !phase.open;
    figure("failed").hidden = !some(phase, failedOf);
    figure("backlog").hidden = !some(phase, (run) => run.backlog);
    overTime("throughput", phase, "operations/s", (run) => kindOf(run).rate, "hv");
    curves(phase);
    latencies("service", phase, "service");
    if (phase.open) latencies("response", phase, "response");
    if (!figure("failed").hidden) overTime("failed", phase, "failed/s", failedOf, "hv");
    uses("processors", phase, "processors", (process) => process.processors, "%{y:.2f}");
    uses("memory", phase, "MB", (process) => process.memory, "%{y:,.1f} MB");
    uses("written", phase, "bytes/s", (process) => process.written, "%{y:.3s}B/s");
    if (!figure("backlog").hidden) overTime("backlog", phase, "operations", (run) => run.backlog, "hv");
  }

  function offerKinds() {
    const phase = data.phases[+phasePicker.value];
    const names = new Set(phase ? phase.runs.flatMap((run) => run.kinds.map((kind) => kind.name)) : []);
    const before = kindPicker.value;
    kindPicker.replaceChildren(...[...names].map((name) => new Option(name, name)));
    if (names.has(before)) kindPicker.value = before;
    document.getElementById("kind-label").hidden = names.size < 2;
  }

  function resizeAll(size) {
    for (const id of drawn) {
      const chart = document.getElementById(id);
      const wide = !chart.closest(".charts") || chart.closest(".wide") !== null;
      if (chart.offsetParent === null) continue;
      Plotly.relayout(chart, size ? { width: wide ? 680 : 334, height: id === "overview" ? 190 : 235 }
        : { width: null, height: null, autosize: true });
    }
  }

  phasePicker.replaceChildren(...data.phases.map((phase, index) =>
    new Option(phase.title + (phase.prepares ? " (preparation)" : ""), index)));
  const first = data.phases.findIndex((phase) => !phase.prepares);
  phasePicker.value = String(Math.max(first, 0));
  phasePicker.addEventListener("change", () => { offerKinds(); show(); });
  kindPicker.addEventListener("change", show);
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
    resizeAll(true);
  });
  window.addEventListener("afterprint", () => resizeAll(false));
  offerKinds();
  overview();
  capacity();
  show();
  document.body.dataset.charts = String(drawn.size);
})();
