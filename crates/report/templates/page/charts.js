// One chart of the page: lines over time, curves, points, a heat map. What is drawn comes from page.js; how, from
// here. Colours are those of the style sheet, so that dark and printed pages have their own.
const Charts = (function () {
  "use strict";
  const DASHES = [[], [9, 4], [2, 3], [9, 3, 2, 3], [16, 4], [1, 6]];
  const FONT = "system-ui, 'Liberation Sans', Arial, sans-serif";
  const charts = new Map();
  // On paper everything is drawn twice as large and shown at half the size, so that it is sharp.
  let isPaper = false;

  function colour(name) {
    const from = isPaper ? document.querySelector(".paper") : document.documentElement;
    return getComputedStyle(from).getPropertyValue("--" + name).trim();
  }
  const storeColour = (store) => colour("store-" + (store % 7));
  const scaled = (size) => size * (isPaper ? 2 : 1);
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

  // Ticks at 1, 10, 100 … and between them where the span is small.
  function logarithmic(low, high) {
    const steps = high / low > 300 ? [1] : high / low > 8 ? [1, 3] : [1, 1.5, 2, 3, 5, 7];
    const ticks = [];
    for (let power = -3; power <= 12; power++) for (const step of steps) ticks.push(+(step * 10 ** power).toPrecision(3));
    return ticks.filter((tick) => tick >= low && tick <= high);
  }

  const plainAxis = { range: (low, high) => [low, high > low ? high : low + 1], text: shortText };
  const AXES = {
    latency: { log: true, text: latencyText, range: (low, high) => [low / 1.15, high * 1.25] },
    amount: { text: shortText, range: (low, high) => [0, high > 0 ? high * 1.08 : 1] },
    logAmount: { log: true, text: shortText, range: (low, high) => [low / 1.15, high * 1.25] },
    // One in so many operations is slower: 1 / (1 − percentile).
    percentile: { log: true, range: (low, high) => [low, high],
      splits: (low, high) => [2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].filter((at) => at >= low && at <= high),
      text: (at) => at <= 1 ? "0 %" : at === 2 ? "50 %" : 100 - +(100 / at).toPrecision(2) + " %" },
    seconds: { text: (at) => +at.toFixed(at < 10 ? 1 : 0) + " s", range: plainAxis.range },
    plain: plainAxis,
  };

  // An axis of uPlot's for one of ours.
  function axis(kind, title, isX) {
    return {
      stroke: colour("soft"), font: font(11), labelFont: font(11), label: title, labelSize: scaled(18),
      size: scaled(isX ? 32 : 62), gap: scaled(4),
      grid: { stroke: colour("line"), width: scaled(1) }, ticks: { stroke: colour("line"), width: scaled(1), size: scaled(5) },
      values: (_, at) => at.map((value) => value === null ? "" : kind.text(value)),
      ...(kind.log ? { splits: (_u, _i, low, high) => (kind.splits || logarithmic)(low, high), filter: (_, at) => at } : {}),
      ...(isX ? { space: scaled(60) } : { space: scaled(34) }),
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
      const left = u.valToPos(mark.begin, "x", true), right = u.valToPos(mark.end ?? mark.begin, "x", true);
      ctx.fillStyle = colour(mark.kind);
      ctx.globalAlpha = mark.kind === "excursion" ? 0.16 : 0.22;
      ctx.fillRect(left, u.bbox.top, Math.max(right - left, 2 * devicePixelRatio), u.bbox.height);
      ctx.globalAlpha = 1;
      ctx.fillRect(left, u.bbox.top, scaled(devicePixelRatio), u.bbox.height);
    }));
  }

  function words(u, marks) {
    clipped(u, (ctx) => {
      const size = scaled(10) * devicePixelRatio;
      ctx.font = size + "px " + FONT;
      ctx.textBaseline = "top";
      marks.filter((mark) => mark.text).forEach((mark, index) => {
        ctx.fillStyle = colour(mark.kind);
        const left = u.valToPos(mark.begin, "x", true) + 3 * devicePixelRatio;
        const width = ctx.measureText(mark.text).width;
        ctx.textAlign = left + width > u.bbox.left + u.bbox.width ? "right" : "left";
        ctx.fillText(mark.text, left - (ctx.textAlign === "right" ? 5 * devicePixelRatio : 0),
          u.bbox.top + (1.2 * (index % 4) + 0.2) * size);
      });
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

  // A column for each stretch of time, a cell for each tenth of a power of ten: the darker, the more operations.
  function cells(u, heat) {
    const most = Math.log1p(heat.columns.reduce((most, column) => column.counts.reduce((a, b) => Math.max(a, b), most), 0));
    if (most === 0) return;
    clipped(u, (ctx) => {
      ctx.fillStyle = storeColour(heat.store);
      for (const { begin, end, first, counts } of heat.columns) {
        const left = Math.floor(u.valToPos(begin, "x", true)), right = Math.ceil(u.valToPos(end, "x", true));
        counts.forEach((count, index) => {
          if (count === 0) return;
          const top = u.valToPos(cellBegin(first + index + 1), "y", true);
          const bottom = u.valToPos(cellBegin(first + index), "y", true);
          ctx.globalAlpha = 0.08 + 0.92 * Math.log1p(count) / most;
          ctx.fillRect(left, Math.floor(top), Math.max(right - left, 1), Math.ceil(bottom) - Math.floor(top));
        });
      }
    });
  }
  // Where a cell of the heat map begins, µs.
  const cellBegin = (cell) => 10 ** (cell / 10 - 3);

  function series(line) {
    const own = storeColour(line.store);
    const points = line.points || (line.x.length < 3 ? "filled" : null);
    return {
      label: line.name, stroke: own, width: scaled(line.width ?? 1.8), scale: "y",
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

  function options(spec, element) {
    const isWide = !element.closest(".charts") || element.closest(".wide");
    return {
      width: isPaper ? scaled(isWide ? 680 : 334) : Math.max(element.clientWidth, 120),
      height: scaled(isPaper ? 190 : spec.height ?? 260),
      scales: { x: scale(spec.x, spec.span && (() => chart(element.id).spec.span)), y: scale(spec.y) },
      axes: [axis(spec.x, spec.xTitle, true), axis(spec.y, spec.yTitle, false)],
      series: [{ label: spec.xName ?? "at", value: (_, at) => at === null || at === undefined ? "–" : spec.x.text(at) },
        ...spec.lines.map(series)],
      legend: { show: spec.legend ?? true,
        markers: { dash: (_, index) => ["solid", "dashed", "dotted", "dashed"][(spec.lines[index - 1]?.dash ?? 0) % 4] } },
      // A stretch that is dragged over is that of all charts over time.
      cursor: { drag: { x: true, y: false, setScale: !spec.span }, dataIdx: nearest, points: { size: 6 },
        ...(spec.span ? { bind: { dblclick: () => () => { chart(element.id).spec.look(null); return null; } } } : {}) },
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
          if (now.heat) cells(u, now.heat);
          if (now.strokes) strokes(u, now.strokes);
          words(u, now.marks || []);
        }],
      },
    };
  }

  const chart = (id) => charts.get(id);

  // Lines of the legend are buttons, for those who use no mouse, too.
  function reachable(element) {
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

  // Draws a chart, or brings it up to date: what was zoomed into or hidden stays so where its lines are the same.
  function draw(id, spec) {
    const element = document.getElementById(id);
    const before = charts.get(id);
    const form = JSON.stringify([spec.lines.map((line) => [line.name, line.store, line.x.length < 3]), spec.yTitle]);
    const points = spec.lines.reduce((sum, line) => sum + line.y.filter((y) => y !== null).length, 0);
    const isSame = before && before.form === form;
    // What removes the chart takes the number of its points along.
    if (!isSame) remove(id);
    element.dataset.points = String(points);
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", spec.lines.map((line) => line.name).join(", "));
    if (isSame) {
      before.spec = spec;
      const times = before.plot.data[0], { min, max } = before.plot.scales.x;
      const isZoomed = !spec.span && times.length > 0 && (min > times[0] || max < times[times.length - 1]);
      before.plot.setData(data(spec), !isZoomed);
      if (isZoomed) before.plot.redraw();
      return;
    }
    charts.set(id, { spec, form, plot: null });
    make(id);
  }

  function make(id) {
    const element = document.getElementById(id), known = charts.get(id);
    if (known.plot) known.plot.destroy();
    known.plot = new uPlot(options(known.spec, element), data(known.spec), element);
    reachable(element);
  }

  function remove(id) {
    const known = charts.get(id);
    if (!known) return;
    known.plot.destroy();
    charts.delete(id);
    delete document.getElementById(id)?.dataset.points;
  }

  const all = () => [...charts.keys()].forEach((id) => document.getElementById(id)?.offsetParent && make(id));

  function paper(is) {
    isPaper = is;
    all();
  }

  let width = document.documentElement.clientWidth;
  window.addEventListener("resize", () => {
    if (isPaper || width === document.documentElement.clientWidth) return;
    width = document.documentElement.clientWidth;
    for (const [id, { plot, spec }] of charts) {
      const element = document.getElementById(id);
      if (element.offsetParent) plot.setSize({ width: element.clientWidth, height: spec.height ?? 260 });
    }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
    paper(true);
  });
  window.addEventListener("afterprint", () => paper(false));

  return { AXES, draw, remove, latencyText, shortText, cellBegin, count: () => charts.size };
})();
