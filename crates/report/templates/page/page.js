// The page's charts, from the JSON beside them. No network, no state beyond the pickers. The same code draws the report of
// a run that is over and the page of one that goes on (live.js).
const Page = (function () {
  "use strict";
  const { AXES, draw, remove, latencyText, shortText, cellBegin } = Charts;
  // What hangs on a wall is larger from the first chart on.
  if (document.getElementById("live")) document.documentElement.classList.toggle("wall", new URLSearchParams(location.search).has("wall"));
  let data = JSON.parse(document.getElementById("data").textContent);
  // The median is the line that is not broken.
  const BANDS = [
    { key: "p50", name: "50 %", dash: 0, width: 2.2 },
    { key: "p90", name: "90 %", dash: 4, width: 1.3 },
    { key: "p99", name: "99 %", dash: 1, width: 1.7 },
    { key: "p99_9", name: "99.9 %", dash: 2, width: 1.5 },
    { key: "max", name: "max", dash: 3, width: 1, alpha: 0.7 },
  ];
  const element = (id) => document.getElementById(id);
  const phasePicker = element("phase");
  const kindPicker = element("kind");
  const several = () => data.stores.length > 1;
  const whole = (value) => value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 });

  function part(tag, name, text) {
    const made = document.createElement(tag);
    made.className = name;
    made.textContent = text;
    return made;
  }

  // A bar for each store and phase. Where a phase is dozens of times faster than another, only a logarithmic length
  // shows both.
  function overview() {
    const phases = data.phases.filter((phase) => !phase.prepares && phase.runs.some((run) => run.rate > 0));
    element("overview-figure").hidden = phases.length === 0 || (phases.length === 1 && !several());
    if (element("overview-figure").hidden) return;
    const rates = phases.flatMap((phase) => phase.runs.map((run) => run.rate)).filter((rate) => rate > 0);
    const least = Math.min(...rates), most = Math.max(...rates);
    const isWide = most / least > 30;
    const length = (rate) => isWide ? Math.log(rate / least * 3) / Math.log(most / least * 3) : rate / most;
    element("overview-title").textContent = "Throughput by phase, operations/s" + (isWide ? "; lengths are logarithmic" : "");
    const rows = phases.flatMap((phase) => phase.runs.filter((run) => run.rate > 0).map((run, index) => {
      const row = part("div", "bar", "");
      const bar = part("span", "bar-length", "");
      bar.style.width = (100 * length(run.rate)).toFixed(1) + "%";
      bar.style.background = "var(--store-" + (run.store % 7) + ")";
      const track = part("span", "bar-track", "");
      track.append(bar);
      row.append(part("span", "bar-phase", index === 0 ? phase.title : ""));
      if (several()) row.append(part("span", "bar-store", data.stores[run.store]));
      row.append(track, part("span", "bar-rate", whole(run.rate)));
      return row;
    }));
    element("overview").replaceChildren(...rows);
    element("overview").dataset.points = String(rows.length);
  }

  // What searches for the highest rate found: every probe is a point.
  function capacity() {
    if (data.capacity.length === 0 || !element("capacity-latency") || element("capacity").hidden) return;
    const label = (found) => (several() ? data.stores[found.store] + " " : "") + found.title;
    const latency = [], strokes = [], scaling = [], laws = [];
    const add = (found, name, probes, key, form) => {
      const seen = probes.filter((probe) => probe.rate > 0 && probe[key] > 0).sort((a, b) => a.rate - b.rate);
      // Two probes at one rate are two points.
      const x = seen.map((probe, index) => probe.rate * (1 + index * 1e-9));
      if (seen.length === 0) return;
      latency.push({ name, store: found.store, x, y: seen.map((probe) => probe[key]), text: latencyText, ...form });
    };
    for (const found of data.capacity) {
      for (const [key, name, dash] of [["p50", "50 %", 0], ["p99", "99 %", 1]]) {
        const open = label(found) + ", open, " + name;
        add(found, open + ", met", found.open.filter((p) => p.met), key, { points: "filled", size: 9 });
        add(found, open + ", missed", found.open.filter((p) => !p.met), key, { points: "empty", size: 9 });
        add(found, label(found) + ", closed, " + name, found.sweep, key, { points: "empty", size: 5 });
        for (const [probes, form, width] of [[found.open, dash, 1.6], [found.sweep, 2, 0.9]]) {
          const points = probes.filter((p) => p.rate > 0 && p[key] > 0).map((p) => [p.rate, p[key]]);
          strokes.push({ store: found.store, dash: form, width, points });
        }
      }
      scaling.push({ name: label(found), store: found.store, x: found.sweep.map((p) => p.clients),
        y: found.sweep.map((p) => p.rate), points: "filled", size: 9, text: (rate) => whole(rate) + "/s" });
      const law = found.law.filter((point) => point[1] !== null);
      if (law.length) laws.push({ name: label(found) + ", law", store: found.store, x: law.map((p) => p[0]),
        y: law.map((p) => p[1]), text: (rate) => whole(rate) + "/s" });
    }
    draw("capacity-latency", { x: AXES.plain, xTitle: "operations/s", xName: "rate", y: AXES.latency, lines: latency,
      strokes, height: 320 });
    draw("capacity-scaling", { x: AXES.plain, xTitle: "clients", xName: "clients", y: AXES.amount,
      yTitle: "operations/s", lines: [...scaling, ...laws], height: 300 });
  }

  const kindOf = (run) => run.kinds.find((kind) => kind.name === kindPicker.value) ?? (kindPicker.value ? undefined : run.kinds[0]);
  // What was done and what happened, and between a server's end and its new begin that it was down.
  const BEGINS_AGAIN = "start again ";
  function down(marks) {
    const faults = marks.filter((mark) => mark.kind === "fault");
    return faults.filter((mark) => mark.text.startsWith(BEGINS_AGAIN)).flatMap((mark) => {
      const node = mark.text.slice(BEGINS_AGAIN.length).split(",")[0];
      const ended = faults.findLast((other) => other.begin < mark.begin && other.text.split(",")[0].endsWith(" " + node));
      return ended && !ended.text.startsWith(BEGINS_AGAIN) ? [{ kind: "fault", text: "", begin: ended.begin, end: mark.begin, isDown: true }] : [];
    });
  }
  // What was done by hand to the testbed is a fault, too, and is drawn once.
  const BY_HAND = ", by hand";
  const isTwice = (marks) => (mark) => mark.kind === "event" && mark.text.endsWith(BY_HAND)
    && marks.some((other) => other.kind === "fault" && other.text === mark.text.slice(0, -BY_HAND.length));
  const marksOf = (phase) => phase.runs.flatMap((run) => [...down(run.marks), ...run.marks.filter((mark) => !isTwice(run.marks)(mark))]);
  const hide = (id, is) => {
    const figure = element(id + "-figure") || element(id).closest("figure");
    figure.hidden = is;
    if (is) remove(id);
  };

  // Where time begins: with each phase, or with the first fault of each run, so that faults lie over each other.
  const zeroPicker = element("zero");
  const faultOf = (run) => run.marks.find((mark) => mark.kind === "fault")?.begin;
  function shifted(run) {
    const by = zeroPicker?.value === "fault" ? faultOf(run) ?? 0 : 0;
    if (!by) return run;
    const all = (times) => times.map((at) => at - by);
    return { ...run, start: all(run.start), marks: run.marks.map((mark) => ({ ...mark, begin: mark.begin - by, end: mark.end === null ? null : mark.end - by })),
      processes: run.processes.map((process) => ({ ...process, start: all(process.start) })),
      agents: (run.agents ?? []).map((agent) => ({ ...agent, x: all(agent.x) })) };
  }

  // A point stands for a stretch of time: its value holds until the stretch ends.
  function stepped(run) {
    const last = run.start.length - 1;
    return last < 0 ? [] : run.start.concat(run.start[last] + run.length[last]);
  }
  const held = (values) => (values.length ? values.concat(values[values.length - 1]) : []);

  // Charts over time show all of the phase, as long as its longest run, or a stretch that its reader has chosen: of that
  // there may be finer points (`runs`), which the server is asked for (live.js).
  let stretch = null;
  let finer = null;
  const spanOf = (phase) => Math.max(0.001, ...phase.runs.flatMap((run) => stepped(run).slice(-1)));
  const beginOf = (phase) => Math.min(0, ...phase.runs.flatMap((run) => run.start.slice(0, 1)));
  const overTime = (phase, extra) => ({ x: AXES.seconds, xTitle: zeroPicker?.value === "fault" ? "since the first fault" : "since the phase began",
    xName: "time", marks: marksOf(phase), span: stretch ? stretch.ends : [beginOf(phase), spanOf(phase)], look, ...extra });

  // The phase of this number, with its times from where they are to begin.
  const told = (number) => ({ ...data.phases[number], runs: data.phases[number].runs.map(shifted) });

  function look(ends) {
    const number = +phasePicker.value, phase = data.phases[number] && told(number);
    const [first, longest] = phase ? [beginOf(phase), spanOf(phase)] : [0, 0];
    const [from, to] = (ends ?? [first, longest]).map((at) => Math.min(Math.max(at, first), longest));
    stretch = to > from && to - from < longest - first ? { phase: number, ends: [from, to], runs: null, isAsking: false } : null;
    show();
    refine();
  }

  // Asks for finer points unless those that are there reach to the end of the stretch, or as far as there are any.
  async function refine() {
    const asked = stretch, end = (run) => Math.min(stepped(run).pop() ?? 0, asked.ends[1]);
    if (!finer || !asked || asked.isAsking || zeroPicker?.value === "fault") return;
    const known = data.phases[asked.phase]?.runs ?? [];
    if (asked.runs && asked.runs.every((run, index) => !known[index] || end(run) >= end(known[index]))) return;
    asked.isAsking = true;
    const runs = await finer(asked.phase, asked.ends);
    asked.isAsking = false;
    if (!runs || asked !== stretch) return;
    asked.runs = runs;
    show();
  }

  // The phase with the finer points of the stretch in place of all. What is about the whole phase stays.
  function seen(phase) {
    if (!stretch?.runs) return phase;
    const runs = phase.runs.map((run) => {
      const fine = stretch.runs.find((fine) => fine.store === run.store);
      if (!fine || fine.start.length === 0) return run;
      const { start, length, backlog, due, latest_send, errors, wrong, kinds, heat, processes } = fine;
      return { ...run, start, length, backlog, due, latest_send, errors, wrong, kinds, heat, processes };
    });
    return { ...phase, runs };
  }

  function tellStretch(phase) {
    const [from, to] = stretch ? stretch.ends : [beginOf(phase), spanOf(phase)];
    for (const [id, value] of [["from", from], ["to", to]]) {
      if (document.activeElement !== element(id)) element(id).value = String(+value.toFixed(3));
    }
    element("whole").disabled = !stretch;
    element("stretch").hidden = phase.runs.every((run) => run.start.length === 0);
    const part = stretch ? ", " + element("from").value + " to " + element("to").value + " s" : "";
    element("phase-title").textContent = "Phase: " + phase.title + part;
  }

  const isFilled = (phase, id) => id === "throughput" && phase.runs.length === 1;
  function amounts(id, phase, title, values, isNeeded, asked, extra) {
    const lines = phase.runs.filter(kindOf).map((run) => ({ name: data.stores[run.store], store: run.store,
      x: stepped(run), y: held(values(run)), step: true, fill: isFilled(phase, id), text: whole }));
    if (asked) for (const run of phase.runs) lines.push({ name: several() ? data.stores[run.store] + " asked" : "asked",
      store: run.store, dash: 2, width: 1.2, x: stepped(run), y: held(run.due), step: true, text: whole });
    const isSeen = isNeeded || lines.some((line) => line.y.some((value) => value > 0));
    hide(id, !isSeen);
    if (isSeen) draw(id, overTime(phase, { y: AXES.amount, yTitle: title, lines, ...extra }));
  }

  // What each process used: the store's colour, one dash for each process.
  function uses(id, phase, title, values, text) {
    const lines = [];
    for (const run of phase.runs) run.processes.forEach((process, index) => {
      const y = values(process);
      if (!y.some((value) => value > 0)) return;
      const name = several() ? data.stores[run.store] + " " + process.name : process.name;
      lines.push({ name, store: run.store, dash: index, x: stepped(process), y: held(y), step: true, text });
    });
    hide(id, lines.length === 0);
    if (lines.length) draw(id, overTime(phase, { y: AXES.amount, yTitle: title, lines, hasPanels: true }));
  }

  // What is counted by name: the store's colour, one dash for each name.
  function counts(id, phase, title, named) {
    const lines = phase.runs.flatMap((run) => (named(run) || []).map((counted, index) => ({
      name: several() ? data.stores[run.store] + " " + counted.name : counted.name, store: run.store, dash: index,
      x: stepped(run), y: held(counted.rate), step: true, text: whole })));
    hide(id, lines.length === 0);
    if (lines.length) draw(id, overTime(phase, { y: AXES.amount, yTitle: title, lines }));
  }

  // How late requests left although a client was free: kvdyno's own lateness.
  function lateness(phase) {
    const lines = phase.runs.filter((run) => (run.latest_send || []).some((late) => late > 0)).map((run) => ({
      name: data.stores[run.store], store: run.store, x: run.start.map((at, i) => at + run.length[i] / 2),
      y: run.latest_send, text: latencyText }));
    hide("late", lines.length === 0);
    if (lines.length) draw("late", overTime(phase, { y: AXES.latency, lines }));
  }

  function latencies(id, phase, clock) {
    const lines = [];
    for (const run of phase.runs) {
      const bands = (kindOf(run) || {})[clock];
      if (!bands) continue;
      for (const band of BANDS) {
        const name = several() ? data.stores[run.store] + " " + band.name : band.name;
        lines.push({ ...band, name, store: run.store, x: run.start.map((at, i) => at + run.length[i] / 2),
          y: bands[band.key], text: latencyText, show: !several() || band.key !== "p90" });
      }
    }
    hide(id, lines.length === 0);
    if (lines.length) draw(id, overTime(phase, { y: AXES.latency, lines }));
  }

  // Latency as the head of a live page shows it: the p99 is what is looked at.
  const HEAD = [{ key: "max", name: "max", dash: 3, width: 0.9, alpha: 0.55 }, { key: "p99_9", name: "99.9 %", dash: 2, width: 1.2 },
    { key: "p99", name: "99 %", dash: 0, width: 2.4 }, { key: "p50", name: "50 %", dash: 1, width: 1.4 }];
  function head(phase) {
    if (!element("latency")) return;
    const clock = phase.open ? "response" : "service";
    const lines = phase.runs.flatMap((run) => HEAD.flatMap((band) => {
      const bands = (kindOf(run) ?? {})[clock];
      if (!bands || (several() && phase.runs.length > 1 && band.key !== "p99")) return [];
      const name = several() && phase.runs.length > 1 ? data.stores[run.store] : band.name;
      return [{ ...band, name, store: run.store, x: run.start.map((at, i) => at + run.length[i] / 2), y: bands[band.key], text: latencyText }];
    }));
    if (lines.length) draw("latency", overTime(phase, { y: AXES.latency, lines, legend: false, xTitle: undefined }));
    else remove("latency");
  }

  function agents(phase) {
    const lines = phase.runs.flatMap((run) => (run.agents || []).map((agent, index) => ({
      name: several() ? data.stores[run.store] + " " + agent.name : agent.name, store: run.store + index, dash: index,
      x: agent.x, y: agent.y, text: latencyText })));
    hide("agents", lines.length === 0);
    if (lines.length) draw("agents", overTime(phase, { y: AXES.latency, lines }));
  }

  function curves(phase) {
    const lines = [];
    for (const run of phase.runs) {
      for (const [clock, dash] of [["response", 0], ["service", phase.open ? 2 : 0]]) {
        const curve = run[clock + "_curve"];
        if (!curve || curve.x.length === 0) continue;
        const name = [several() ? data.stores[run.store] : "", clock].filter(Boolean).join(" ");
        lines.push({ name, store: run.store, dash, x: curve.x, y: curve.y, text: latencyText });
      }
    }
    hide("curve", lines.length === 0);
    if (lines.length) draw("curve", { x: AXES.percentile, xTitle: "percentile", xName: "percentile", y: AXES.latency, lines });
  }

  // The columns of a heat map with their times: so many points make one.
  function columns(run) {
    return run.heat.columns.map(([first, ...counts], index) => {
      const from = index * run.heat.every;
      const last = Math.min(from + run.heat.every, run.start.length) - 1;
      return { begin: run.start[from], end: run.start[last] + run.length[last], first, counts };
    }).filter((column) => column.counts.length > 0);
  }

  function heatMaps(phase) {
    const runs = phase.runs.filter((run) => run.heat && run.heat.columns.some((column) => column.length > 1));
    const holder = element("heat");
    hide("heat", runs.length === 0);
    const ids = runs.map((run) => "heat-" + run.store);
    [...holder.children].filter((child) => !ids.includes(child.dataset.of)).forEach((child) => {
      remove(child.dataset.of);
      child.remove();
    });
    for (const run of runs) {
      const id = "heat-" + run.store;
      if (!element(id)) {
        const box = part("div", "", "");
        box.dataset.of = id;
        box.append(part("p", "heat-store", several() ? data.stores[run.store] : ""), part("div", "chart", ""));
        box.lastChild.id = id;
        holder.append(box);
      }
      const heat = { store: run.store, columns: columns(run) };
      const low = cellBegin(Math.min(...heat.columns.map((column) => column.first)));
      const high = cellBegin(Math.max(...heat.columns.map((column) => column.first + column.counts.length)));
      // A line that is not drawn gives the map its span.
      const line = { name: "latency", store: run.store, x: [0, heat.columns[heat.columns.length - 1].end], y: [low, high],
        points: "none", size: 0, text: latencyText };
      draw(id, overTime(phase, { y: AXES.latency, lines: [line], heat, legend: false, height: 220 }));
    }
  }

  function show() {
    const number = +phasePicker.value;
    if (!data.phases[number]) return;
    if (stretch && stretch.phase !== number) stretch = null;
    const phase = seen(told(number));
    tellStretch(phase);
    head(phase);
    amounts("throughput", phase, "operations/s", (run) => kindOf(run).rate, true,
      phase.open && kindPicker.selectedIndex <= 0, element("latency") ? { legend: false, xTitle: undefined, yTitle: undefined } : {});
    curves(phase);
    latencies("response", phase, "response");
    latencies("service", phase, "service");
    heatMaps(phase);
    agents(phase);
    amounts("failed", phase, "failed/s", (run) => kindOf(run).failed);
    counts("errors", phase, "errors/s", (run) => run.errors);
    counts("wrong", phase, "wrong reads/s", (run) => run.wrong);
    lateness(phase);
    amounts("missed", phase, "found nothing/s", (run) => kindOf(run).missed);
    amounts("backlog", phase, "operations", (run) => run.backlog);
    uses("processors", phase, "processors", (process) => process.processors, (value) => value.toFixed(2));
    uses("memory", phase, "MB", (process) => process.memory, (value) => whole(value) + " MB");
    uses("written", phase, "bytes/s", (process) => process.written, (value) => shortText(value) + "B/s");
    uses("network", phase, "bytes/s", (process) => process.network, (value) => shortText(value) + "B/s");
  }

  function offer(picker, names, wanted) {
    const before = wanted ?? picker.value;
    picker.replaceChildren(...names.map(([value, name]) => new Option(name, value)));
    if (names.some(([value]) => value === before)) picker.value = before;
  }

  function offerKinds() {
    const phase = data.phases[+phasePicker.value];
    const names = new Set(phase ? phase.runs.flatMap((run) => run.kinds.map((kind) => kind.name)) : []);
    offer(kindPicker, [...names].map((name) => [name, name]));
    element("kind-label").hidden = names.size < 2;
  }

  function offerZero() {
    const phase = data.phases[+phasePicker.value];
    if (!zeroPicker) return;
    const faults = phase ? phase.runs.filter((run) => faultOf(run) !== undefined).length : 0;
    element("zero-label").hidden = faults < 2;
    if (faults < 2) zeroPicker.value = "phase";
  }

  // Charts of every phase that measures, for paper: throughput and latency beside each other, as lines of SVG.
  function paper() {
    const holder = element("paper");
    if (!holder) return;
    const measured = data.phases.filter((phase) => !phase.prepares && phase.runs.some((run) => run.start.length > 1));
    const all = (phase) => (run) => run.kinds[0];
    holder.replaceChildren(...measured.slice(0, 12).map((phase) => {
      const time = (extra) => ({ ...overTime(phase, extra), span: [0, spanOf(phase)], xTitle: undefined });
      const named = (run, name) => (several() ? data.stores[run.store] : name);
      const rates = phase.runs.filter(all(phase)).flatMap((run) => [{ name: named(run, "operations/s"), store: run.store, x: stepped(run), y: held(all(phase)(run).rate), step: true, text: whole },
        ...(phase.open && !several() ? [{ name: "asked", store: run.store, dash: 2, width: 1, x: stepped(run), y: held(run.due), step: true, text: whole }] : [])]);
      const clock = phase.open ? "response" : "service";
      const bands = several() ? HEAD.filter((band) => band.key === "p99") : HEAD;
      const latencies = phase.runs.filter((run) => all(phase)(run)?.[clock]).flatMap((run) => bands.map((band) => ({ ...band, name: named(run, band.name), store: run.store,
        x: run.start.map((at, i) => at + run.length[i] / 2), y: all(phase)(run)[clock][band.key], text: latencyText })));
      const figure = part("figure", "paper-phase", "");
      figure.append(part("figcaption", "", phase.title + ": operations/s, and " + clock + " time" + (several() ? " (99 %)" : "")));
      for (const spec of [time({ y: AXES.amount, lines: rates, marks: marksOf(phase) }), time({ y: AXES.latency, lines: latencies, marks: [] })]) {
        figure.append(Picture.svg({ ...spec, marks: spec.lines === rates ? spec.marks : marksOf(phase).map((mark) => ({ ...mark, text: "" })) }, 344, 132, 8.5));
      }
      return figure;
    }));
  }
  window.addEventListener("beforeprint", paper);

  // Draws everything; `wanted` is the number of the phase to show, else the one that is shown stays.
  function drawAll(wanted) {
    const named = data.phases.map((phase, index) => [String(index), phase.title + (phase.prepares ? " (not measured)" : "")]);
    offer(phasePicker, named, wanted === undefined ? undefined : String(wanted));
    offerKinds();
    offerZero();
    overview();
    capacity();
    show();
    document.body.dataset.charts = String(Charts.count());
  }

  phasePicker.addEventListener("change", () => { offerKinds(); offerZero(); show(); });
  zeroPicker?.addEventListener("change", () => { stretch = null; show(); });
  kindPicker.addEventListener("change", show);
  for (const id of ["from", "to"]) element(id).addEventListener("change", () => look([+element("from").value, +element("to").value]));
  element("whole").addEventListener("click", () => look(null));
  drawAll(Math.max(data.phases.findIndex((phase) => !phase.prepares), 0));
  return { drawAll, show, refine, replace: (next) => { data = next; }, data: () => data, looksCloser: () => stretch !== null,
    whoHasFiner: (asked) => { finer = asked; } };
})();
