// Keeps the page of a run up to date: what the server tells joins the charts, and the tables are asked for again when
// they have changed.
(function () {
  "use strict";
  const element = (id) => document.getElementById(id);
  const phasePicker = element("phase");
  document.body.classList.add("live");
  // The largest chart stands beside its figure.
  element("stage-throughput").append(element("throughput-figure"));

  // The newest phase is shown until its reader chooses another one: of those that measure, where there is one.
  let isFollowing = true;
  function newest() {
    const phases = Page.data().phases;
    const measured = phases.findLastIndex((phase) => !phase.prepares);
    return measured < 0 ? phases.length - 1 : measured;
  }
  phasePicker.addEventListener("change", () => { isFollowing = +phasePicker.value === newest(); });

  // Points that have joined: those before `from` stay (`used`: of each process).
  function extend(old, more, from, used) {
    for (const [name, value] of Object.entries(more)) {
      if (["kinds", "processes", "errors", "wrong"].includes(name)) {
        value.forEach((part, index) => extend(old[name][index], part, name === "processes" ? used[index] : from, used));
      } else if (Array.isArray(value) && !["marks", "agents"].includes(name)) {
        old[name].length = from;
        for (const point of value) old[name].push(point);
      } else if (value && typeof value === "object" && !Array.isArray(value) && !name.endsWith("_curve")) {
        // A series may have no latency before its first operation.
        if (old[name]) extend(old[name], value, from, used); else old[name] = value;
      } else old[name] = value;
    }
  }

  let asked = 0;
  async function tables() {
    const number = ++asked;
    const answer = await fetch(location.pathname, { cache: "no-store" });
    if (!answer.ok || number !== asked) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const old of document.querySelectorAll("[data-told]")) {
      const found = page.querySelector(`[data-told="${old.dataset.told}"]`);
      if (!found || found.innerHTML === old.innerHTML) continue;
      // What somebody has opened stays open.
      const open = [...old.querySelectorAll("details")].map((details) => details.open);
      found.querySelectorAll("details").forEach((details, index) => { details.open = open[index] ?? details.open; });
      old.replaceWith(found);
    }
  }

  // A text is written only where it has changed, and not while somebody has marked it to copy it.
  function isMarked(node) {
    const selection = getSelection();
    return !selection.isCollapsed && selection.containsNode(node, true);
  }
  function write(node, text) {
    if (node.textContent !== text && !isMarked(node)) node.textContent = text;
  }
  function dress(node, name) {
    if (node.className !== name) node.className = name;
  }
  const made = (tag) => document.createElement(tag);
  // So many children of this tag; those that are there stay.
  function children(holder, tag, count) {
    while (holder.children.length < count) holder.append(made(tag));
    while (holder.children.length > count) holder.lastElementChild.remove();
    return [...holder.children];
  }
  function list(holder, lines) {
    children(holder, "li", lines.length).forEach((item, index) => {
      write(item, lines[index][0]);
      dress(item, lines[index][1] ?? "");
    });
  }

  // A unit stays until its figure would have no digit in it, or more than four.
  const RATES = [[1, "/s"], [1e3, "k/s"], [1e6, "M/s"]], TIMES = [[1e-3, "ns"], [1, "µs"], [1e3, "ms"], [1e6, "s"]];
  const kept = {};
  function steady(name, value, units) {
    if (value === null || value === undefined) return ["–", ""];
    let at = kept[name] ?? units.findLastIndex(([by]) => value >= by);
    at = Math.max(at, 0);
    while (at + 1 < units.length && value / units[at][0] >= 9995) at++;
    while (at > 0 && value > 0 && value / units[at][0] < 0.1) at--;
    kept[name] = at;
    const size = value / units[at][0];
    return [size.toFixed(units[at][0] === 1 && units === RATES ? 0 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0), units[at][1]];
  }

  const seconds = (left) => left === null ? "" : left < 90 ? Math.ceil(left) + " s left" : Math.ceil(left / 60) + " min left";
  const count = (value) => Math.round(value).toLocaleString("en");

  // What somebody who passes by wants to know.
  function head(told) {
    const now = told.head;
    const [rate, rateUnit] = steady("rate", now.rate, RATES);
    write(element("head-rate"), rate);
    write(element("head-rate-unit"), rateUnit);
    write(element("head-asked"), now.asked === null ? "as fast as it goes" : "asked for " + steady("rate", now.asked, RATES).join(" ")
      + (told.backlog > 0 ? ", " + count(told.backlog) + " behind" : ""));
    const bound = now.at_least ? "≥ " : "";
    const [p99, unit] = steady("latency", now.latency?.[2], TIMES);
    write(element("head-bound"), p99 === "–" ? "" : bound);
    write(element("head-p99"), p99);
    write(element("head-p99-unit"), unit);
    write(element("head-clock"), "p99, " + (now.clock === "response" ? "from when due" : "from when sent"));
    const slo = now.slo;
    write(element("head-slo"), slo ? "objective " + slo.condition + (slo.holds === null ? "" : slo.holds ? ", kept so far" : ", missed so far") : "no objective is set");
    dress(element("rail-latency"), "rail" + (slo?.holds === false ? " trouble" : ""));
    const others = [["50 %", 0, 1], ["99 %", 2, 0], ["99.9 %", 3, 2], ["max", 4, 3]];
    const holder = element("head-latency");
    if (holder.children.length === 0) for (const [name, , dash] of others) {
      const [term, value] = [made("dt"), made("dd")];
      term.textContent = name;
      term.className = "dash-" + dash;
      holder.append(term, value);
    }
    others.forEach(([, at], index) => write(holder.children[2 * index + 1], now.latency?.[at] == null ? "–" : bound + steady("latency-" + at, now.latency[at], TIMES).join(" ")));
    write(element("head-errors"), count(now.errors));
    write(element("head-errors-now"), now.errors_now > 0 ? count(now.errors_now) + " in the last second" : "in this phase");
    dress(element("head-errors").parentElement, "big" + (now.errors_now > 0 ? " trouble" : ""));
    write(element("head-wrong"), now.judges ? count(now.wrong + now.lost) : "–");
    write(element("head-lost"), !now.judges ? "reads of this phase are not judged" : now.wrong + now.lost === 0 ? "reads are judged as they are made" : [now.wrong > 0 ? count(now.wrong) + " wrong" : "", now.lost > 0 ? count(now.lost) + " lost" : ""].filter(Boolean).join(", "));
    dress(element("head-wrong").parentElement, "big" + (now.wrong + now.lost > 0 ? " trouble" : ""));
  }

  // The title and the icon tell how far it is, and whether something is wrong.
  function sign(told) {
    const now = told.head, isWrong = now.wrong + now.lost > 0 || now.errors_now > 0 || now.slo?.holds === false || isLost;
    const done = told.is_running ? told.done ?? 0 : 1;
    const far = told.is_running ? Math.floor(100 * done) + " %" : "over";
    const title = [isWrong ? "▲ " + far : far, told.phase, now.suite, "kvdyno"].filter(Boolean).join(" · ");
    if (document.title !== title) document.title = title;
    const form = [Math.round(done * 16), isWrong, told.is_running].join();
    const icon = element("icon");
    if (icon.dataset.form === form) return;
    icon.dataset.form = form;
    const canvas = Object.assign(made("canvas"), { width: 32, height: 32 }), ctx = canvas.getContext("2d");
    const ring = (share, colour) => {
      ctx.beginPath();
      ctx.arc(16, 16, 12, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * share);
      Object.assign(ctx, { strokeStyle: colour, lineWidth: 7 });
      ctx.stroke();
    };
    ring(1, "#b9c2cd");
    ring(done, isWrong ? "#b4232a" : "#3f5a78");
    icon.href = canvas.toDataURL();
  }

  function now(told) {
    document.body.dataset.running = String(told.is_running);
    const where = [told.head.suite, [told.store, told.head.version].filter(Boolean).join(" "), told.head.trial && "trial " + told.head.trial, told.is_running ? told.phase : "", told.activity === "load" ? "" : told.activity];
    write(element("now-where"), where.filter(Boolean).join(" · "));
    write(element("now-left"), told.is_running ? seconds(told.left_s) : "");
    const bar = element("now-done");
    bar.hidden = !told.is_running || told.done === null;
    bar.value = told.done ?? 0;
    const shown = phasePicker.value;
    children(element("now-steps"), "li", told.steps.length).forEach((item, index) => {
      const step = told.steps[index], button = item.firstElementChild ?? item.appendChild(made("button"));
      write(button, step.name);
      button.type = "button";
      button.disabled = step.charts === null;
      button.onclick = () => {
        phasePicker.value = String(step.charts);
        phasePicker.dispatchEvent(new Event("change"));
      };
      button.setAttribute("aria-pressed", String(step.charts !== null && String(step.charts) === shown));
      dress(item, step.state);
      if (step.state === "now") item.setAttribute("aria-current", "step"); else item.removeAttribute("aria-current");
    });
    if (told.head.suite) head(told);
    element("live").classList.toggle("bare", told.steps.length === 0);
    sign(told);
    const rows = children(element("now-rows"), "tr", told.rows.length);
    told.rows.forEach((row, index) => {
      const bound = (value) => value === null ? "–" : (row.at_least ? "≥ " : "") + Charts.latencyText(value);
      const latency = (row.latency ?? [null, null, null, null, null]).map(bound);
      const cells = [row.scope + ", " + row.name, row.clock, count(row.rate), count(row.missed), count(row.failed), ...latency];
      dress(rows[index], row.scope === "last second" ? "phase" : "series");
      children(rows[index], "td", cells.length).forEach((cell, at) => write(cell, cells[at]));
    });
    element("now-table").hidden = told.rows.length === 0;
    list(element("now-claims"), told.claims.map((claim) => {
      const stands = claim.holds === null ? "" : claim.holds ? ", holds so far" : ", does not hold so far";
      return ["claim “" + claim.says + "”: " + claim.condition + ": " + claim.measured + stands, claim.holds === false ? "bad" : ""];
    }));
    const lines = told.uses.map((use) => [use.join(", ")]);
    if (told.backlog > 0) lines.push(["due and not started: " + count(told.backlog)]);
    (told.troubles ?? []).forEach((text) => lines.push([text, text.startsWith("sent") ? "" : "bad"]));
    told.faults.forEach((text) => lines.push(["done to the testbed: " + text]));
    told.anomalies.forEach((text) => lines.push(["wrong read: " + text, "bad"]));
    list(element("now-lines"), lines);
    list(element("now-faults"), told.faults.slice(-3).reverse().map((text) => [text]));
  }

  // What a picker offers; what was chosen stays. Whether anything has changed.
  function offer(picker, names) {
    if (JSON.stringify(names) === picker.dataset.names) return false;
    const before = picker.value;
    picker.replaceChildren(...names.map(([value, name]) => new Option(name, value)));
    if (names.some(([value]) => value === before)) picker.value = before;
    picker.dataset.names = JSON.stringify(names);
    return true;
  }

  // What may be done to the run by hand, if anything may.
  let faults = [];
  function steer(wheel) {
    element("control").hidden = !wheel;
    if (!wheel) return;
    element("harm").hidden = wheel.faults.length === 0;
    element("steer").hidden = wheel.groups.length === 0;
    element("steer-rate").disabled = wheel.groups.length === 0;
    offer(element("steer-group"), wheel.groups.map((group) => [String(group.number), group.name + " (" + group.rate + ")"]));
    faults = wheel.faults;
    offer(element("harm-node"), wheel.nodes.map((name) => [name, name]));
    if (offer(element("harm-fault"), faults.map((fault) => [fault.word, fault.word + ": " + fault.help]))) fields();
  }
  const fault = () => faults.find((fault) => fault.word === element("harm-fault").value);

  // What is said with the fault that is chosen.
  function fields() {
    element("harm-whom").hidden = !fault()?.aims;
    element("harm-fields").replaceChildren(...(fault()?.fields ?? []).map((field) => {
      const label = made("label"), input = made("input");
      label.textContent = field.key + " ";
      Object.assign(input, { name: field.key, size: 8, placeholder: field.example, title: field.help });
      label.append(input, " ");
      return label;
    }));
  }
  element("harm-fault").addEventListener("change", fields);
  async function order(what) {
    const answer = element("steer-answer");
    answer.textContent = "…";
    try {
      const told = await fetch("steer", { method: "POST", body: JSON.stringify(what) });
      answer.textContent = await told.text();
    } catch (error) { answer.textContent = "nobody answers: " + error.message; }
  }
  // What cannot be taken back is asked for once more.
  let meant = null;
  function sure(text, what) {
    meant = what;
    element("sure-text").textContent = text;
    element("sure").returnValue = "";
    element("sure").showModal();
  }
  element("sure").addEventListener("close", () => {
    if (element("sure").returnValue === "yes" && meant) order(meant);
    meant = null;
  });
  element("steer").addEventListener("submit", (event) => {
    event.preventDefault();
    order({ do: "rate", group: +element("steer-group").value, rate: element("steer-rate").value });
  });
  element("note").addEventListener("submit", (event) => {
    event.preventDefault();
    order({ do: "note", text: element("note-text").value });
    element("note-text").value = "";
  });
  // As a suite writes it.
  element("harm").addEventListener("submit", (event) => {
    event.preventDefault();
    const said = [["do", element("harm-fault").value]];
    if (fault()?.aims) said.push(["node", element("harm-node").value]);
    for (const input of element("harm-fields").querySelectorAll("input")) if (input.value) said.push([input.name, input.value]);
    const text = said.map(([key, value]) => key + " = " + JSON.stringify(value)).join("\n");
    sure(`Break the testbed: ${said.map(([, value]) => value).join(" ")}? What it destroys stays destroyed.`, { do: "fault", fault: text });
  });
  element("harm-repair").addEventListener("click", () => order({ do: "repair" }));
  element("steer-end").addEventListener("click", () => sure("End this phase now? It does not go on again.", { do: "end-phase" }));
  element("steer-stop").addEventListener("click", () => sure("Stop the whole run now? It does not go on again.", { do: "stop-run" }));

  // Finer points of a stretch, of each store; nothing if nobody answers.
  Page.whoHasFiner(async (phase, [from, to]) => {
    try {
      const answer = await fetch(`points?phase=${phase}&from=${from}&to=${to}`, { cache: "no-store" });
      return answer.ok ? await answer.json() : null;
    } catch (error) { return null; }
  });

  function trouble(text) {
    element("now-trouble").hidden = !text;
    element("now-trouble").textContent = text;
  }

  // Several messages that come at once are drawn once.
  let isDue = false;
  function drawSoon(isAll) {
    if (isAll) {
      element("capacity").hidden = Page.data().capacity.length === 0;
      // Who looks closer at a phase is not taken away from it.
      Page.drawAll(isFollowing && !Page.looksCloser() && newest() >= 0 ? newest() : undefined);
      return;
    }
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => { isDue = false; Page.show(); });
  }

  let isOver = false, isLost = false, lost = null;
  function opened() {
    lost = null;
    isLost = false;
    trouble("");
  }
  // The browser tries again, and each try that fails is an error.
  function failed() {
    if (isOver) return;
    lost ??= new Date();
    isLost = true;
    trouble("The connection is lost since " + lost.toLocaleTimeString() + "; shown is what was told before.");
  }
  function heard(text) {
    const told = JSON.parse(text);
    if (told.charts) Page.replace(told.charts);
    if (told.points) {
      const { phase, run, from, used_from, charts } = told.points;
      extend(Page.data().phases[phase].runs[run], charts, from, used_from);
    }
    if (told.charts || told.points) {
      drawSoon(!!told.charts);
      Page.refine();
    }
    if (told.now) { now(told.now); steer(told.now.steer); }
    if (told.tables) tables();
    document.body.dataset.told = String(+(document.body.dataset.told ?? 0) + 1);
    isOver = !told.now.is_running;
  }

  // All pages of a browser share one stream; where a browser cannot share, each page has its own.
  if (typeof SharedWorker === "function") {
    const { port } = new SharedWorker("stream.js");
    port.onmessage = ({ data }) => ({ open: opened, error: failed, told: heard })[data.is](data.text);
    port.start();
    addEventListener("pagehide", () => port.postMessage("leaves"));
  } else {
    const events = new EventSource("events");
    events.onopen = opened;
    events.onerror = () => { failed(); if (isOver) events.close(); };
    events.onmessage = (event) => heard(event.data);
  }
})();
