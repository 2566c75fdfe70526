// The histories of a store: a chart is drawn when its section is opened.
(function () {
  "use strict";
  const histories = JSON.parse(document.getElementById("data").textContent);
  const short = (name) => name.split(",")[0];
  function spec(chart) {
    const axis = Charts.AXES[chart.axis];
    const own = (name, keep, points, colour, more) => ({ name, store: colour, points, text: axis.text,
      x: chart.values.map((_, at) => at), y: chart.values.map((value, at) => keep(at) ? value : null), ...more });
    const interval = (at) => chart.low[at] === null ? [] : [{ store: chart.valid[at] ? 0 : 6, width: 1, dash: 0,
      points: [[at, chart.low[at]], [at, chart.high[at]]] }];
    const level = ([from, to, height]) => ({ store: 1, width: 1.5, dash: 1, points: [[from - 0.4, height], [to - 0.6, height]] });
    const last = Math.max(chart.values.length - 1, 1);
    return {
      // What may be bent is drawn hollow and faint.
      lines: [own("valid", (at) => chart.valid[at], "filled", 0, { size: 6 }),
        own("suspect or invalid", (at) => !chart.valid[at], "hollow", 6, { size: 6, alpha: 0.45 })]
        .filter((line) => line.y.some((value) => value !== null)),
      x: { range: () => [-0.5, last + 0.5], text: (at) => Number.isInteger(at) && chart.names[at] ? short(chart.names[at]) : "" },
      y: axis, xTitle: "results, oldest first", xName: "result", yTitle: chart.title, height: 240,
      marks: chart.levels.slice(1).map(([from]) => ({ kind: "fault", text: "step", begin: from - 0.5, end: from - 0.5 })),
      strokes: [...chart.values.flatMap((_, at) => interval(at)), ...chart.levels.map(level)],
    };
  }
  function open(section) {
    const number = +section.dataset.history;
    histories[number].forEach((chart, at) => Charts.draw(`history-${number}-${at}`, spec(chart)));
    document.body.dataset.charts = String(Charts.count());
  }
  for (const section of document.querySelectorAll("details[data-history]")) {
    section.addEventListener("toggle", () => { if (section.open) open(section); });
    if (section.open) open(section);
  }
})();
