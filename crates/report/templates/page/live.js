// Keeps the page of a run up to date: what the server tells joins the charts, and the tables are asked for again when
// they have changed.
(function () {
  "use strict";
  const element = (id) => document.getElementById(id);
  const phasePicker = element("phase");
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
      if (found) old.replaceWith(found);
    }
  }

  function line(tag, text, name) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (name) made.className = name;
    return made;
  }

  const seconds = (left) => left === null ? "" : left < 90 ? Math.ceil(left) + " s left" : Math.ceil(left / 60) + " min left";
  const count = (value) => Math.round(value).toLocaleString("en");

  function now(told) {
    document.body.dataset.running = String(told.is_running);
    const where = told.is_running ? [told.store, told.phase, told.activity] : [told.activity];
    element("now-where").textContent = where.filter(Boolean).join(" · ");
    element("now-left").textContent = told.is_running ? seconds(told.left_s) : "";
    const bar = element("now-done");
    bar.hidden = !told.is_running || told.done === null;
    bar.value = told.done ?? 0;
    element("now-steps").replaceChildren(...told.steps.map((step) => {
      const made = line("li", step.name, step.state);
      if (step.state === "now") made.setAttribute("aria-current", "step");
      return made;
    }));
    element("now-rows").replaceChildren(...told.rows.map((row) => {
      const bound = (value) => value === null ? "–" : (row.at_least ? "≥ " : "") + Charts.latencyText(value);
      const latency = (row.latency ?? [null, null, null, null, null]).map(bound);
      const cells = [row.scope + ", " + row.name, row.clock, count(row.rate), count(row.missed), count(row.failed), ...latency];
      const made = document.createElement("tr");
      made.className = row.scope === "last second" ? "phase" : "series";
      made.append(...cells.map((cell) => line("td", cell)));
      return made;
    }));
    element("now-table").hidden = told.rows.length === 0;
    element("now-claims").replaceChildren(...told.claims.map((claim) => {
      const stands = claim.holds === null ? "" : claim.holds ? ", holds so far" : ", does not hold so far";
      return line("li", "claim “" + claim.says + "”: " + claim.condition + ": " + claim.measured + stands, claim.holds === false ? "bad" : "");
    }));
    const lines = told.uses.map((use) => line("li", use.join(", ")));
    if (told.backlog > 0) lines.push(line("li", "due and not started: " + count(told.backlog), "bad"));
    (told.troubles ?? []).forEach((text) => lines.push(line("li", text, text.startsWith("sent") ? "" : "bad")));
    told.faults.forEach((text) => lines.push(line("li", "done to the testbed: " + text)));
    told.anomalies.forEach((text) => lines.push(line("li", "wrong read: " + text, "bad")));
    element("now-lines").replaceChildren(...lines);
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
    element("steer").hidden = !wheel;
    element("harm").hidden = !wheel || wheel.faults.length === 0;
    if (!wheel) return;
    element("steer-rates").hidden = wheel.groups.length === 0;
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
      const label = line("label", field.key + " ");
      const input = document.createElement("input");
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
  element("steer").addEventListener("submit", (event) => {
    event.preventDefault();
    order({ do: "rate", group: +element("steer-group").value, rate: element("steer-rate").value });
  });
  // As a suite writes it.
  element("harm").addEventListener("submit", (event) => {
    event.preventDefault();
    const said = [["do", element("harm-fault").value]];
    if (fault()?.aims) said.push(["node", element("harm-node").value]);
    for (const input of element("harm-fields").querySelectorAll("input")) if (input.value) said.push([input.name, input.value]);
    order({ do: "fault", fault: said.map(([key, value]) => key + " = " + JSON.stringify(value)).join("\n") });
  });
  element("harm-repair").addEventListener("click", () => order({ do: "repair" }));
  element("steer-end").addEventListener("click", () => order({ do: "end-phase" }));
  element("steer-stop").addEventListener("click", () => order({ do: "stop-run" }));

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
      // Who looks closer at a phase is not taken away from it.
      Page.drawAll(isFollowing && !Page.looksCloser() && newest() >= 0 ? newest() : undefined);
      element("capacity").hidden = Page.data().capacity.length === 0;
      return;
    }
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => { isDue = false; Page.show(); });
  }

  const events = new EventSource("events");
  let isOver = false, lost = null;
  events.onopen = () => { lost = null; trouble(""); };
  // The browser tries again, and each try that fails is an error.
  events.onerror = () => {
    if (isOver) return events.close();
    lost ??= new Date();
    trouble("The connection is lost since " + lost.toLocaleTimeString() + "; shown is what was told before.");
  };
  events.onmessage = (event) => {
    const told = JSON.parse(event.data);
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
  };
})();
