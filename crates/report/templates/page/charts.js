// One chart of a page: lines over time, curves, points, a heat map. What is drawn comes from page.js; how, from here. On
// screens uPlot draws; on paper and in saved images lines of SVG do (picture.js). Colours are those of the style sheet, so
// that dark and printed pages have their own.
const Charts = (function () {
  "use strict";
  const DASHES = [[], [9, 4], [2, 3], [9, 3, 2, 3], [16, 4], [1, 6]];
  const FONT = "system-ui, 'Liberation Sans', Arial, sans-serif";
  const charts = new Map();
  // From so many lines on, each server has a panel of its own.
  const MOST_IN_ONE = 3;

  function colour(name, isPaper) {
    const from = isPaper ? document.querySelector(".paper") : document.documentElement;
    return getComputedStyle(from).getPropertyValue("--" + name).trim();
  }
  const storeColour = (store, isPaper) => colour("store-" + (store % 7), isPaper);
  // On a wall everything is larger.
  const scaled = (size) => size * (+getComputedStyle(document.documentElement).getPropertyValue("--scale") || 1);
  const font = (size) => scaled(size) + "px " + FONT;

  function latencyText(us) {
    if (us === null || us === undefined) return "–";
    const [value, unit] = us < 0.9999 ? [us * 1e3, "ns"] : us < 999.9 ? [us, "µs"]
      : us < 999900 ? [us / 1e3, "ms"] : [us / 1e6, "s"];
    return +value.toPrecision(3) + " " + unit;
  }

  function shortText(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    const [by, unit] = size >= 1e9 ? [1e9, "G"] : size >= 1e6 ? [1e6, "M"] : size >= 1e3 ? [1e3, "k"] : [1, ""];
    return +(value / by).toPrecision(3) + unit;
  }

  // As many digits as tell one tick from the next: a tick stands where it says.
  function digits(step) {
    for (let count = 0; count < 9; count++) if (Math.abs(step * 10 ** count - Math.round(step * 10 ** count)) < 1e-6) return count;
    return 9;
  }
  function amountTick(value, step) {
    const size = Math.max(Math.abs(value), step);
    const [by, unit] = size >= 1e9 ? [1e9, "G"] : size >= 1e6 ? [1e6, "M"] : size >= 1e3 ? [1e3, "k"] : [1, ""];
    return value === 0 ? "0" : +(value / by).toFixed(digits(step / by)) + unit;
  }
  function latencyTick(us, step) {
    if (us === 0) return "0";
    const size = Math.max(Math.abs(us), step);
    const [by, unit] = size < 1 ? [1e-3, "ns"] : size < 1e3 ? [1, "µs"] : size < 1e6 ? [1e3, "ms"] : [1e6, "s"];
    return +(us / by).toFixed(digits(step / by)) + " " + unit;
  }
  function secondsTick(at, step) {
    const sign = at < 0 ? "−" : "", size = Math.abs(at), two = (part) => String(part).padStart(2, "0");
    if (step < 60) return sign + +size.toFixed(digits(step)) + " s";
    const minutes = Math.round(size / 60);
    return sign + (minutes < 60 ? minutes + " min" : Math.floor(minutes / 60) + ":" + two(minutes % 60) + " h");
  }

  // Ticks at 1, 10, 100 … and between them where the span is small.
  function logarithmic(low, high) {
    const steps = high / low > 300 ? [1] : high / low > 8 ? [1, 3] : [1, 1.5, 2, 3, 5, 7];
    const ticks = [];
    for (let power = -3; power <= 12; power++) for (const step of steps) ticks.push(+(step * 10 ** power).toPrecision(3));
    return ticks.filter((tick) => tick >= low && tick <= high);
  }

  const STEPS = [];
  for (let power = -6; power <= 13; power++) for (const step of [1, 2, 5]) STEPS.push(+(step * 10 ** power).toPrecision(3));
  const TIMES = [...STEPS.filter((step) => step <= 10), 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

  const plainAxis = { range: (low, high) => [low, high > low ? high : low + 1], text: shortText, tick: amountTick };
  const logRange = (low, high) => [low / 1.15, high * 1.25];
  const fromZero = (low, high) => [0, high > 0 ? high * 1.08 : 1];
  const AXES = {
    latency: { log: true, text: latencyText, tick: latencyText, range: logRange, unit: "µs" },
    amount: { text: shortText, tick: amountTick, range: fromZero },
    // One in so many operations is slower: 1 / (1 − percentile).
    percentile: { log: true, range: (low, high) => [low, high],
      splits: (low, high) => [2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].filter((at) => at >= low && at <= high),
      text: (at) => at <= 1 ? "0 %" : at === 2 ? "50 %" : 100 - +(100 / at).toPrecision(2) + " %" },
    seconds: { text: (at) => +at.toFixed(2) + " s", tick: secondsTick, steps: TIMES, range: plainAxis.range, unit: "s" },
    plain: plainAxis,
  };
  // The same on the other scale: linear for logarithmic, and the other way round.
  AXES.latency.other = { text: latencyText, tick: latencyTick, range: fromZero, unit: "µs" };
  AXES.amount.other = { log: true, text: shortText, tick: shortText, range: logRange };

  // An axis of uPlot's for one of ours.
  function axis(kind, title, isX, isBare) {
    return {
      stroke: colour("soft"), font: font(11), labelFont: font(11), label: isBare ? undefined : title, labelSize: scaled(18),
      size: scaled(isX ? 30 : 58), gap: scaled(4),
      grid: { show: !isX, stroke: colour("line"), width: 1 }, ticks: { show: isX, stroke: colour("line"), width: 1, size: scaled(5) },
      values: (_u, at, _axis, _space, step) => at.map((value) => value === null ? "" : (kind.tick ?? kind.text)(value, step)),
      incrs: kind.steps ?? STEPS,
      ...(kind.log ? { splits: (_u, _i, low, high) => (kind.splits || logarithmic)(low, high), filter: (_, at) => at } : {}),
      space: scaled(isX ? 68 : 32),
    };
  }

  function scale(kind, span) {
    const range = (_, low, high) => {
      // All charts over time of a phase show the same stretch.
      if (span) return span();
      if (low === null || low === undefined || high === null) return kind.log ? [1, 10] : [0, 1];
      return kind.range(low, high);
    };
    return { time: false, distr: kind.log ? 3 : 1, range };
  }

  function clipped(u, drawn) {
    const { left, top, width, height } = u.bbox;
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
    drawn(u.ctx);
    u.ctx.restore();
  }

  // What happened: a band from where it began until it was over; a line where it is a moment.
  function bands(u, marks) {
    clipped(u, (ctx) => marks.forEach((mark) => {
      const left = u.valToPos(mark.begin, "x", true), right = u.valToPos(mark.end ?? u.scales.x.max, "x", true);
      ctx.fillStyle = colour(mark.kind);
      // Where a figure left its level is told along the bottom, so that it hides nothing.
      const strip = scaled(4) * devicePixelRatio;
      if (mark.kind === "excursion") return ctx.fillRect(left, u.bbox.top + u.bbox.height - strip, Math.max(right - left, 2), strip);
      ctx.globalAlpha = mark.isDown ? 0.08 : 0.16;
      ctx.fillRect(left, u.bbox.top, Math.max(right - left, 2 * devicePixelRatio), u.bbox.height);
      ctx.globalAlpha = 0.8;
      ctx.fillRect(left, u.bbox.top, scaled(1) * devicePixelRatio, u.bbox.height);
      ctx.globalAlpha = 1;
    }));
  }

  // The rows in which the names of marks stand, so that none covers another; what finds no row has none.
  function rows(marks, width, place, [begin, end], rowCount) {
    const ends = Array(rowCount).fill(begin - 5), placed = [];
    for (const mark of marks.filter((mark) => mark.text).toSorted((a, b) => a.begin - b.begin)) {
      const at = place(mark.begin), long = width(mark.text), isLate = at + long > end, left = isLate ? at - long - 8 : at;
      const row = ends.findIndex((end) => end < left - 4);
      if (row < 0) continue;
      ends[row] = left + long;
      placed.push({ mark, row, left });
    }
    return placed;
  }
  function words(u, marks) {
    clipped(u, (ctx) => {
      const size = scaled(11) * devicePixelRatio, { left, width } = u.bbox;
      ctx.font = size + "px " + FONT;
      ctx.textBaseline = "top";
      const place = (at) => u.valToPos(at, "x", true) + 4 * devicePixelRatio;
      const seen = marks.filter((mark) => mark.begin >= u.scales.x.min && mark.begin <= u.scales.x.max);
      ctx.textAlign = "left";
      for (const { mark, row, left: at } of rows(seen, (text) => ctx.measureText(text).width, place, [left, left + width], 4)) {
        ctx.fillStyle = colour(mark.kind);
        ctx.fillText(mark.text, at, u.bbox.top + (1.25 * row + 0.3) * size);
      }
    });
  }

  // Curves that go back and forth along x, which uPlot's own series cannot.
  function strokes(u, lines) {
    clipped(u, (ctx) => lines.forEach((line) => {
      ctx.strokeStyle = storeColour(line.store);
      ctx.lineWidth = scaled(line.width) * devicePixelRatio;
      ctx.setLineDash(DASHES[line.dash].map((length) => scaled(length) * devicePixelRatio));
      ctx.beginPath();
      line.points.forEach(([x, y]) => ctx.lineTo(u.valToPos(x, "x", true), u.valToPos(y, "y", true)));
      ctx.stroke();
    }));
  }

  // Where a cell of the heat map begins, µs.
  const cellBegin = (cell) => 10 ** (cell / 10 - 3);
  // The cells of a heat map: the darker, the more operations.
  function cells(heat) {
    const most = Math.log1p(heat.columns.reduce((most, column) => column.counts.reduce((a, b) => Math.max(a, b), most), 0));
    if (most === 0) return [];
    return heat.columns.flatMap(({ begin, end, first, counts }) => counts.flatMap((count, index) => count === 0 ? []
      : [{ begin, end, low: cellBegin(first + index), high: cellBegin(first + index + 1), dark: 0.08 + 0.92 * Math.log1p(count) / most }]));
  }
  function heatMap(u, heat) {
    clipped(u, (ctx) => {
      ctx.fillStyle = storeColour(heat.store);
      for (const { begin, end, low, high, dark } of cells(heat)) {
        const left = Math.floor(u.valToPos(begin, "x", true)), right = Math.ceil(u.valToPos(end, "x", true));
        const top = Math.floor(u.valToPos(high, "y", true)), bottom = Math.ceil(u.valToPos(low, "y", true));
        ctx.globalAlpha = dark;
        ctx.fillRect(left, top, Math.max(right - left, 1), bottom - top);
      }
    });
  }

  function faded(own, alpha) {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(own.slice(at, at + 2), 16));
    return `rgba(${r}, ${g}, ${b}, ${alpha})`;
  }
  function series(line) {
    const own = storeColour(line.store);
    const points = line.points || (line.x.length < 3 ? "filled" : null);
    return {
      label: line.name, stroke: own, width: scaled(line.width ?? 1.8), scale: "y", fill: line.fill ? faded(own, 0.12) : undefined,
      dash: DASHES[(line.dash ?? 0) % DASHES.length].map(scaled), alpha: line.alpha ?? 1, show: line.show ?? true,
      paths: line.points ? () => null : line.step ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
      points: points && points !== "none" ? { show: true, size: scaled(line.size ?? 7), width: scaled(1.5), space: 0, stroke: own,
        fill: points === "filled" ? own : colour("ground-chart") } : { show: false },
      value: (_, value) => value === undefined || value === null ? "–" : line.text(value),
    };
  }

  // Stores have points at times of their own: each shows the nearest.
  function nearest(u, index, at) {
    const values = u.data[index];
    for (let away = 0; away < 60; away++) {
      if (values[at - away] !== undefined) return at - away;
      if (values[at + away] !== undefined) return at + away;
    }
    return at;
  }

  function data(spec) {
    // uPlot cannot place what is not above 0 on a logarithmic axis.
    const drawn = (line) => spec.y.log ? line.y.map((v) => v > 0 ? v : null) : line.y;
    return spec.lines.length ? uPlot.join(spec.lines.map((line) => [line.x, drawn(line)])) : [[]];
  }

  // A chart of a stage is as high as its place; others say how high they are.
  const heightOf = (spec, element) => element.closest(".stage") ? Math.max(element.clientHeight, 120) : scaled(spec.height ?? 240);

  function options(spec, element) {
    return {
      width: Math.max(element.clientWidth, 120),
      height: heightOf(spec, element),
      scales: { x: scale(spec.x, spec.span && (() => chart(element.id).spec.span)), y: scale(spec.y) },
      axes: [axis(spec.x, spec.xTitle, true, spec.isBare), axis(spec.y, spec.yTitle, false, spec.isBare)],
      series: [{ label: spec.xName ?? "at", value: (_, at) => at === null || at === undefined ? "–" : spec.x.text(at) },
        ...spec.lines.map(series)],
      legend: { show: spec.legend ?? true,
        markers: { dash: (_, index) => ["solid", "dashed", "dotted", "dashed"][(spec.lines[index - 1]?.dash ?? 0) % 4] } },
      // A stretch that is dragged over is that of all charts over time.
      cursor: { drag: { x: true, y: false, setScale: !spec.span }, dataIdx: nearest, points: { size: scaled(6) },
        ...(spec.span ? { sync: { key: "time" }, bind: { dblclick: () => () => { chart(element.id).spec.look(null); return null; } } } : {}) },
      hooks: {
        setSelect: [(u) => {
          const { left, width } = u.select;
          if (!spec.span || width <= 0) return;
          const ends = [left, left + width].map((at) => u.posToVal(at, "x"));
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          chart(element.id).spec.look(ends);
        }],
        drawClear: [(u) => bands(u, chart(element.id).spec.marks || [])],
        draw: [(u) => {
          const now = chart(element.id).spec;
          if (now.heat) heatMap(u, now.heat);
          if (now.strokes) strokes(u, now.strokes);
          words(u, now.marks || []);
        }],
      },
    };
  }

  const chart = (id) => charts.get(id);

  // Lines of the legend are buttons, for those who use no mouse, too.
  function reachable(element, label) {
    const canvas = element.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", label);
    element.querySelector(".u-legend")?.setAttribute("role", "presentation");
    element.querySelectorAll(".u-legend .u-series th").forEach((name, index) => {
      if (index === 0) return;
      name.tabIndex = 0;
      name.setAttribute("role", "button");
      name.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        name.click();
      });
    });
  }

  // Charts whose scale somebody has changed from logarithmic to linear, or the other way round.
  const turned = new Set();
  const onScale = (id, spec) => turned.has(id) && spec.y.other ? { ...spec, y: spec.y.other } : spec;

  const panelsOf = (id, spec) => spec.lines.map((line, index) => [`${id}-panel-${index}`, line]);

  // Draws a chart, or brings it up to date: what was zoomed into or hidden stays so where its lines are the same. Lines of
  // many servers have a panel each, on one scale.
  function draw(id, told) {
    const element = document.getElementById(id), spec = onScale(id, told);
    if (!(spec.hasPanels && spec.lines.length > MOST_IN_ONE)) {
      if (charts.get(id)?.isGroup) remove(id);
      return drawOne(id, spec, told);
    }
    const form = JSON.stringify(spec.lines.map((line) => line.name));
    if (charts.get(id)?.form !== form) {
      remove(id);
      element.classList.add("panels");
      for (const [panel, line] of panelsOf(id, spec)) {
        const box = document.createElement("div"), name = document.createElement("p"), place = document.createElement("div");
        name.textContent = line.name;
        place.id = panel;
        place.className = "chart";
        box.append(name, place);
        element.append(box);
      }
    }
    charts.set(id, { spec, told, form, isGroup: true });
    described(element, spec);
    const high = spec.lines.reduce((most, line) => line.y.reduce((most, y) => Math.max(most, y ?? 0), most), 0);
    const y = { ...spec.y, range: (low) => spec.y.range(low, high) };
    for (const [panel, line] of panelsOf(id, spec)) {
      const one = { ...spec, y, lines: [{ ...line, dash: 0 }], legend: false, height: 110, isBare: true, marks: (spec.marks ?? []).map((mark) => ({ ...mark, text: "" })) };
      drawOne(panel, one, one);
    }
    tools(id);
  }

  function described(element, spec) {
    const points = spec.lines.reduce((sum, line) => sum + line.y.filter((y) => y !== null).length, 0);
    element.dataset.points = String(points);
    element.setAttribute("role", "group");
    element.setAttribute("aria-label", spec.lines.map((line) => line.name).join(", "));
  }

  function drawOne(id, spec, told) {
    const element = document.getElementById(id);
    const before = charts.get(id);
    const form = JSON.stringify([spec.lines.map((line) => [line.name, line.store, line.x.length < 3]), spec.yTitle, !!spec.y.log]);
    const isSame = before && before.form === form;
    // What removes the chart takes the number of its points along.
    if (!isSame) remove(id);
    described(element, spec);
    if (isSame) {
      [before.spec, before.told] = [spec, told];
      const times = before.plot.data[0], { min, max } = before.plot.scales.x;
      const isZoomed = !spec.span && times.length > 0 && (min > times[0] || max < times[times.length - 1]);
      before.plot.setData(data(spec), !isZoomed);
      if (isZoomed) before.plot.redraw();
      return;
    }
    charts.set(id, { spec, told, form, plot: null });
    make(id);
    tools(id);
  }

  function make(id) {
    const element = document.getElementById(id), known = charts.get(id);
    if (known.isGroup) return;
    if (known.plot) known.plot.destroy();
    known.plot = new uPlot(options(known.spec, element), data(known.spec), element);
    reachable(element, element.getAttribute("aria-label"));
  }

  function remove(id) {
    const known = charts.get(id);
    if (!known) return;
    const element = document.getElementById(id);
    charts.delete(id);
    delete element?.dataset.points;
    if (!known.isGroup) return known.plot.destroy();
    panelsOf(id, known.spec).forEach(([panel]) => remove(panel));
    element?.replaceChildren();
    element?.classList.remove("panels");
  }

  // The buttons beside a chart's name: its scale, and what of it can be kept.
  function tools(id) {
    const figure = document.getElementById(id).closest("figure"), caption = figure?.querySelector("figcaption");
    if (!caption || caption.querySelector(".tools")) return;
    const name = caption.textContent, box = document.createElement("span");
    box.className = "tools";
    const button = (text, title, done) => {
      const made = document.createElement("button");
      Object.assign(made, { type: "button", textContent: text, title: `${title}: ${name}`, onclick: done });
      made.setAttribute("aria-label", made.title);
      box.append(made);
      return made;
    };
    if (charts.get(id).told.y.other) {
      const log = button("log", "Logarithmic scale", () => {
        if (!turned.delete(id)) turned.add(id);
        log.setAttribute("aria-pressed", String(!!onScale(id, charts.get(id).told).y.log));
        draw(id, charts.get(id).told);
      });
      log.setAttribute("aria-pressed", String(!!charts.get(id).spec.y.log));
    }
    const file = (end) => name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") + end;
    button("SVG", "Save as SVG", () => Picture.save(file(".svg"), "image/svg+xml", Picture.svgText(name, charts.get(id).spec)));
    button("PNG", "Save as PNG", () => Picture.savePng(file(".png"), name, charts.get(id).spec));
    button("CSV", "Save the data as CSV", () => Picture.save(file(".csv"), "text/csv", Picture.csv(charts.get(id).spec)));
    caption.append(box);
  }

  const all = () => [...charts.keys()].forEach((id) => document.getElementById(id)?.offsetParent && make(id));

  let size = [document.documentElement.clientWidth, innerHeight];
  window.addEventListener("resize", () => {
    const now = [document.documentElement.clientWidth, innerHeight];
    if (size.join() === now.join()) return;
    size = now;
    fit();
  });
  // Gives every chart that is shown the size of its place.
  function fit() {
    for (const [id, { plot, spec }] of charts) {
      const element = document.getElementById(id);
      if (plot && element?.offsetParent) plot.setSize({ width: Math.max(element.clientWidth, 120), height: heightOf(spec, element) });
    }
  }
  const places = new ResizeObserver(fit);
  document.querySelectorAll(".stage").forEach((stage) => places.observe(stage));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  // What is folded has no size until it is opened.
  document.addEventListener("toggle", (event) => { if (event.target.open) fit(); }, true);

  return { AXES, DASHES, FONT, STEPS, draw, remove, fit, latencyText, shortText, cellBegin, cells, rows, logarithmic, colour,
    storeColour, count: () => charts.size, spec: (id) => charts.get(id)?.spec };
})();
