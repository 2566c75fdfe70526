// A chart as a picture that needs no screen: SVG for paper and for those who keep one, PNG made from it, and its data as
// CSV. It draws what charts.js draws, from the same description.
const Picture = (function () {
  "use strict";
  const NAMESPACE = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;
  const INK = { line: "#d9dee5", soft: "#4d5866", ink: "#1c2430" };

  function part(tag, attributes, text) {
    const made = document.createElementNS(NAMESPACE, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, typeof value === "number" ? +value.toFixed(2) : value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // What a scale spans, and where a value stands on it.
  function placed(kind, [low, high], from, to) {
    const of = kind.log ? Math.log10 : (value) => value;
    const [a, b] = [of(low), of(high)];
    return (value) => from + (to - from) * (of(value) - a) / (b - a || 1);
  }
  function ticks(kind, [low, high], most) {
    if (kind.log) return (kind.splits ?? Charts.logarithmic)(low, high).map((at) => [at, kind.text(at)]);
    const step = (kind.steps ?? Charts.STEPS).find((step) => (high - low) / step <= most) ?? (high - low);
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9), all = [];
    for (let at = first; at <= last; at++) all.push([+(at * step).toPrecision(12), (kind.tick ?? kind.text)(+(at * step).toPrecision(12), step)]);
    return all;
  }
  function span(kind, values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) if (value !== null && value !== undefined && (!kind.log || value > 0)) { low = Math.min(low, value); high = Math.max(high, value); }
    return low > high ? (kind.log ? [1, 10] : [0, 1]) : kind.range(low, high);
  }

  // The way of a line; where it has no value it breaks.
  function way(line, x, y, isLog) {
    let text = "", isOpen = false;
    line.x.forEach((at, index) => {
      const value = line.y[index];
      if (value === null || value === undefined || (isLog && value <= 0)) { isOpen = false; return; }
      const [left, top] = [x(at).toFixed(1), y(value).toFixed(1)];
      text += !isOpen ? `M${left} ${top}` : line.step ? `H${left}V${top}` : `L${left} ${top}`;
      isOpen = true;
    });
    return text;
  }

  // Draws a chart of this size into an element of SVG.
  function svg(spec, width, height, size = 11) {
    const root = part("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "font-family": Charts.FONT, "font-size": size, role: "img",
      "aria-label": spec.lines.map((line) => line.name).join(", ") });
    const shown = spec.lines.filter((line) => line.show !== false);
    const xs = spec.span ?? span(spec.x, shown.flatMap((line) => line.x));
    const ys = span(spec.y, shown.flatMap((line) => line.y.filter((_, at) => line.x[at] >= xs[0] && line.x[at] <= xs[1])));
    const names = spec.legend === false ? [] : shown;
    const left = size * 5.2, right = width - 8, top = names.length ? size * 1.9 : 6, bottom = height - size * 1.7;
    const x = placed(spec.x, xs, left, right), y = placed(spec.y, ys, bottom, top);
    const clip = `clip-${Math.random().toString(36).slice(2)}`, box = part("clipPath", { id: clip });
    box.append(part("rect", { x: left, y: top - 1, width: right - left, height: bottom - top + 2 }));
    const inside = part("g", { "clip-path": ["url", `(#${clip})`].join("") });
    root.append(box);
    const marks = (spec.marks ?? []).filter((mark) => (mark.end ?? xs[1]) >= xs[0] && mark.begin <= xs[1]);
    for (const mark of marks) {
      const from = x(mark.begin), fill = Charts.colour(mark.kind, true);
      if (mark.kind === "excursion") {
        inside.append(part("rect", { x: from, y: bottom - size / 4, width: Math.max(x(mark.end ?? xs[1]) - from, 1), height: size / 4, fill }));
        continue;
      }
      inside.append(part("rect", { x: from, y: top, width: Math.max(x(mark.end ?? xs[1]) - from, 1), height: bottom - top, fill, "fill-opacity": mark.isDown ? 0.07 : 0.13 }),
        part("rect", { x: from, y: top, width: 0.8, height: bottom - top, fill }));
    }
    const least = Math.max(2, Math.floor((bottom - top) / (size * 2.4)));
    for (const [at, text] of ticks(spec.y, ys, least)) {
      root.append(part("line", { x1: left, x2: right, y1: y(at), y2: y(at), stroke: INK.line, "stroke-width": 0.7 }),
        part("text", { x: left - 5, y: y(at) + size * 0.35, "text-anchor": "end", fill: INK.soft }, text));
    }
    for (const [at, text] of ticks(spec.x, xs, Math.max(2, Math.floor((right - left) / (size * 6))))) {
      root.append(part("text", { x: x(at), y: height - size * 0.4, "text-anchor": "middle", fill: INK.soft }, text));
    }
    for (const cell of spec.heat ? Charts.cells(spec.heat) : []) {
      inside.append(part("rect", { x: x(cell.begin), y: y(cell.high), width: x(cell.end) - x(cell.begin), height: y(cell.low) - y(cell.high),
        fill: Charts.storeColour(spec.heat.store, true), "fill-opacity": cell.dark }));
    }
    for (const line of spec.strokes ?? []) {
      const points = line.points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ");
      inside.append(part("polyline", { points, fill: "none", stroke: Charts.storeColour(line.store, true), "stroke-width": line.width,
        "stroke-dasharray": Charts.DASHES[line.dash].join(" ") }));
    }
    for (const line of shown) {
      const stroke = Charts.storeColour(line.store, true);
      if (!line.points) inside.append(part("path", { d: way(line, x, y, spec.y.log), fill: "none", stroke, "stroke-width": (line.width ?? 1.8) * size / 13,
        "stroke-opacity": line.alpha ?? 1, "stroke-dasharray": Charts.DASHES[(line.dash ?? 0) % 6].map((length) => length * size / 13).join(" ") }));
      const isDotted = line.points !== "none" && (line.points || line.x.length < 3);
      line.x.forEach((at, index) => isDotted && line.y[index] !== null && inside.append(part("circle", { cx: x(at), cy: y(line.y[index]), r: (line.size ?? 6) / 2,
        stroke, fill: line.points === "empty" || line.points === "hollow" ? "#fff" : stroke })));
    }
    root.append(inside);
    const place = (at) => x(at) + 3;
    const rest = marks.filter((mark) => mark.begin >= xs[0] && x(mark.begin) + 12 < right);
    for (const { mark, row, left: at } of Charts.rows(rest, (text) => text.length * size * 0.48, place, [left, right], 3)) {
      root.append(part("text", { x: at, y: top + size * (row * 1.15 + 0.9), "font-size": size * 0.85, fill: Charts.colour(mark.kind, true) }, mark.text));
    }
    let at = left;
    for (const line of names) {
      if (at > right - size * 3) break;
      root.append(part("line", { x1: at, x2: at + size * 1.6, y1: size * 0.7, y2: size * 0.7, stroke: Charts.storeColour(line.store, true), "stroke-width": (line.width ?? 1.8) * size / 13,
        "stroke-dasharray": Charts.DASHES[(line.dash ?? 0) % 6].map((length) => length * size / 18).join(" ") }),
      part("text", { x: at + size * 2, y: size, fill: INK.ink }, line.name));
      at += size * (2.9 + line.name.length * 0.55);
    }
    return root;
  }

  // The chart with its name, as a file of its own.
  function whole(name, spec) {
    const [width, height] = [960, spec.height ? spec.height + 140 : 400];
    const root = part("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "font-family": Charts.FONT });
    const inside = svg(spec, width - 24, height - 52, 13);
    inside.setAttribute("x", "12");
    inside.setAttribute("y", "40");
    root.append(part("rect", { width, height, fill: "#fff" }), part("text", { x: 12, y: 26, "font-size": 17, "font-weight": 600, fill: INK.ink },
      [name, document.title].join(" · ")), inside);
    return root;
  }
  const svgText = (name, spec) => new XMLSerializer().serializeToString(whole(name, spec));

  const cell = (text) => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  // A row for each place on the axis, a column for each line.
  function csv(spec) {
    const unit = (axis, name) => axis.unit ? `${name} (${axis.unit})` : name;
    const head = [unit(spec.x, spec.xName ?? spec.xTitle ?? "at"), ...spec.lines.map((line) => unit(spec.y, line.name))];
    const values = spec.lines.map((line) => new Map(line.x.map((at, index) => [at, line.y[index]])));
    const places = [...new Set(spec.lines.flatMap((line) => line.x))].sort((a, b) => a - b);
    const rows = places.map((at) => [at, ...values.map((value) => value.get(at) ?? "")].join(","));
    return [head.map(cell).join(","), ...rows].join("\n") + "\n";
  }

  function saveBlob(name, blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  const save = (name, type, text) => saveBlob(name, new Blob([text], { type }));

  // Twice as large as it is shown, so that it is sharp.
  async function png(name, spec) {
    const image = new Image();
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svgText(name, spec));
    await image.decode();
    const canvas = new OffscreenCanvas(image.width * 2, image.height * 2);
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.convertToBlob({ type: "image/png" });
  }
  const savePng = async (file, name, spec) => saveBlob(file, await png(name, spec));

  return { svg, svgText, csv, png, save, savePng };
})();
