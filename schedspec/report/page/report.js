"use strict";
/* The page is complete without this script. The script adds: search, a cursor with the state at its time, arrows on
   demand, a drawer for each pod, keys (/ search, n next failure, p previous failure), copying. The address contains the
   reader's choices: #overview?verdict=failed&q=words, #scenario?t=1.25&pod=uid. */
(() => {
  const $ = (root, what) => root.querySelector(what);
  const all = (root, what) => [...root.querySelectorAll(what)];
  const html = document.documentElement;
  html.classList.add("scripted");

  const element = (name, text = "", cls = "") => {
    const it = document.createElement(name);
    if (text) it.textContent = text;
    if (cls) it.className = cls;
    return it;
  };
  /* Format an amount as the templates do: 8 gpus, 500m cpu, 8Gi memory. */
  const spoken = (name, amount) => {
    if (name === "nvidia.com/gpu") return `${amount} gpu${amount === 1 ? "" : "s"}`;
    if (name === "cpu" && amount && (amount < 1 || !Number.isInteger(amount * 100))) return `${amount * 1000}m cpu`;
    const units = [["Ei", 60], ["Pi", 50], ["Ti", 40], ["Gi", 30], ["Mi", 20], ["Ki", 10]];
    const unit = /memory|storage|hugepages/.test(name) && amount ? units.find(([, power]) => amount % 2 ** power === 0) : null;
    return `${unit ? amount / 2 ** unit[1] + unit[0] : amount} ${name}`;
  };
  const seconds = (t) => `${t.toFixed(3)} s`;

  // ------------------------------------------------------------------------------------------------- light and dark
  const themes = { get: () => { try { return localStorage.getItem("schedspec-theme"); } catch { return null; } } };
  if (themes.get()) html.dataset.theme = themes.get();
  $(document, "#theme").addEventListener("click", () => {
    const dark = html.dataset.theme ? html.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    html.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("schedspec-theme", html.dataset.theme); } catch { /* a page opened from a file may have no storage */ }
  });

  // ------------------------------------------------------------------------------------------------- place and address
  const address = () => {
    const [id, query = ""] = location.hash.slice(1).split("?");
    return { id: decodeURIComponent(id), chosen: new URLSearchParams(query) };
  };
  /* Write the reader's choices into the address, without a new entry in the browser's history. */
  let writing = 0;
  const keep = (id, chosen) => {
    const query = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value)).toString();
    clearTimeout(writing);
    writing = setTimeout(() => history.replaceState(null, "", `#${id}${query ? `?${query}` : ""}`), 150);
  };

  // ------------------------------------------------------------------------------------------------------- overview
  const filters = $(document, "#filters");
  const entries = all(document, ".entry");
  const controls = { q: "#search", verdict: "#by-verdict", feature: "#by-feature", tag: "#by-tag", least: "#by-seconds" };
  const filter = () => {
    const value = (id) => $(document, id)?.value ?? "";
    const words = value("#search").toLowerCase().split(/\s+/).filter(Boolean);
    const [verdict, file, tag, least] = [value("#by-verdict"), value("#by-feature"), value("#by-tag"), Number(value("#by-seconds"))];
    let shown = 0;
    for (const it of entries) {
      const d = it.dataset;
      it.hidden = !(words.every((word) => d.text.includes(word)) && (!verdict || d.verdict === verdict) &&
        (!file || it.closest(".feature").dataset.file === file) && (!tag || d.tags.split(" ").includes(tag)) && Number(d.seconds) >= least);
      it.style.display = it.hidden ? "none" : "";
      shown += !it.hidden;
    }
    for (const group of all(document, ".rule, .feature")) group.style.display = all(group, ".entry").some((it) => !it.hidden) ? "" : "none";
    $(document, "#found").textContent = shown === entries.length ? "" : `${shown} of ${entries.length}`;
  };
  filters.addEventListener("input", () => {
    filter();
    keep("overview", Object.fromEntries(Object.entries(controls).map(([name, id]) => [name, ($(document, id)?.value ?? "").replace(/^0$/, "")])));
  });
  const filterAsAddressed = () => {
    const { id, chosen } = address();
    if (id !== "overview") return;
    for (const [name, control] of Object.entries(controls)) { const it = $(document, control); if (it) it.value = chosen.get(name) ?? (name === "least" ? "0" : ""); }
    filter();
  };
  filters.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !typing && !document.body.classList.contains("reading")) { event.preventDefault(); $(document, "#search").focus(); }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "n" || event.key === "p") toFailure(event.key === "n" ? 1 : -1);
  });

  /* Open the next (1) or previous (-1) failure after the open page; wrap around at both ends. */
  const toFailure = (step) => {
    const failed = entries.filter((it) => it.dataset.verdict === "failed").map((it) => $(it, "a").getAttribute("href"));
    if (!failed.length) return;
    const places = entries.map((it) => $(it, "a").getAttribute("href"));
    const here = places.indexOf(`#${$(document, ".scenario.open")?.id}`);
    const later = failed.filter((it) => (places.indexOf(it) - here) * step > 0);
    location.hash = here < 0 ? failed.at(step > 0 ? 0 : -1) : (step > 0 ? later[0] ?? failed[0] : later.at(-1) ?? failed.at(-1));
  };
  for (const it of all(document, ".to-failure")) it.addEventListener("click", () => toFailure(Number(it.dataset.step)));

  /* Return the lines of YAML for a JSON value. */
  const yaml = (value, indent = "") => {
    const flat = (it) => it === null || typeof it !== "object" || !Object.keys(it).length;
    const scalar = (it) => typeof it === "string" && /^[A-Za-z][\w./ -]*$/.test(it) && !/^(true|false|null|yes|no)$/i.test(it) && !it.endsWith(" ") ? it : JSON.stringify(it);
    if (flat(value)) return [indent + scalar(value)];
    if (Array.isArray(value)) {
      return value.flatMap((it) => { const lines = yaml(it, `${indent}  `); return [`${indent}- ${lines[0].trimStart()}`, ...lines.slice(1)]; });
    }
    return Object.entries(value).flatMap(([key, it]) => flat(it) ? [`${indent}${scalar(key)}: ${scalar(it)}`] : [`${indent}${scalar(key)}:`, ...yaml(it, `${indent}  `)]);
  };

  // ------------------------------------------------------------------------------------------------------ a scenario
  class Page {
    constructor(section) {
      this.section = section;
      this.svg = $(section, ".picture");
      this.end = Number(section.dataset.end);
      this.copies();
      this.more();
      if (!this.svg) return;
      this.points = this.svg.dataset.points.trim().split(/\s+/).map((it) => it.split(",").map(Number));
      this.slider = $(section, ".slider");
      this.callout = $(section, ".callout");
      this.cursor = $(this.svg, ".cursors");
      this.finalState = $(section, ".state").innerHTML;
      this.finalWhen = $(section, "h2 .when").textContent;
      this.colours = new Map(all(section, ".queues tbody th").map((th) => [th.textContent, $(th, ".swatch").className]));
      this.slider.addEventListener("input", () => this.move(this.time(Number(this.slider.value) / 1000 * (this.right - this.left) + this.left)));
      this.svg.addEventListener("pointermove", (event) => this.move(this.time(this.where(event))));
      this.svg.addEventListener("click", (event) => this.clicked(event));
      for (const it of all(section, ".sentence")) {
        const choose = () => this.chooseSentence(it);
        it.addEventListener("click", choose);
        it.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
      }
      for (const row of all(section, "tr[data-evict]")) row.addEventListener("click", () => this.choose(row.dataset.evict));
      this.pod = null;
      this.side = $(section, ".drawer");
      section.addEventListener("click", (event) => { const it = event.target.closest(".podlink"); if (it) this.drawer(it.dataset.uid); });
      section.addEventListener("keydown", (event) => {
        if (event.key === "Escape") { this.choose(null); this.drawer(null); }
      });
    }
    get left() { return this.points[0][1]; }
    get right() { return this.points.at(-1)[1]; }
    where(event) {
      const box = this.svg.getBoundingClientRect();
      return (event.clientX - box.left) / box.width * this.svg.viewBox.baseVal.width;
    }
    map(value, from, to) {
      const p = this.points;
      let n = 1;
      while (n < p.length - 1 && p[n][from] < value) n++;
      const [a, b] = [p[n - 1] ?? p[0], p[n] ?? p[0]];
      const part = b[from] > a[from] ? Math.min(1, Math.max(0, (value - a[from]) / (b[from] - a[from]))) : 0;
      return a[to] + part * (b[to] - a[to]);
    }
    time(x) { return this.map(x, 1, 0); }
    x(t) { return this.map(t, 0, 1); }

    move(t) {
      this.t = t;
      const x = this.x(t);
      $(this.cursor, "path").setAttribute("transform", `translate(${x.toFixed(1)} 0)`);
      const text = $(this.cursor, "text");
      text.setAttribute("x", Math.max(this.left + 22, Math.min(this.right - 22, x)).toFixed(1));
      text.textContent = seconds(t);
      this.cursor.setAttribute("visibility", "visible");
      this.slider.value = Math.round((x - this.left) / (this.right - this.left) * 1000);
      this.slider.setAttribute("aria-valuetext", seconds(t));
      $(this.section, ".cursorbar output").textContent = seconds(t);
      let chosen = null;
      for (const it of all(this.section, ".sentence")) {
        if (!it.classList.contains("skipped") && Number(it.dataset.at) <= t + 1e-6) chosen = it;
      }
      for (const it of all(this.section, ".sentence, .step")) it.classList.remove("chosen");
      if (chosen) {
        chosen.classList.add("chosen");
        $(this.svg, `.steplink[data-step="${chosen.dataset.step}"] .step`)?.classList.add("chosen");
      }
      this.remember();
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.show(t), 30);
    }
    remember() { keep(this.section.id, { t: this.t === undefined ? "" : this.t.toFixed(3), evict: this.chosen ?? "", pod: this.pod ?? "" }); }
    /* Restore the choices that an address contains. */
    async restore(chosen) {
      if (!this.svg) return;
      if (chosen.get("evict") && chosen.get("evict") !== this.chosen) await this.choose(chosen.get("evict"));
      if (chosen.get("t")) this.move(Number(chosen.get("t")));
      if (chosen.get("pod")) await this.drawer(chosen.get("pod"));
    }
    chooseSentence(it) {
      if (it.classList.contains("skipped")) return;
      const last = it.nextElementSibling && Number(it.nextElementSibling.dataset.at);
      const until = Number(it.dataset.until);
      this.move(Math.max(Number(it.dataset.at), Math.min(until, (last || this.end) - 1e-4)));
    }

    async record() {
      if (!this.loaded) {
        const bytes = Uint8Array.from(atob($(this.section, ".record").textContent), (c) => c.charCodeAt(0));
        this.loaded = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
      }
      return this.loaded;
    }
    link(name, uid) {
      const it = element("button", name, "podlink");
      it.type = "button";
      it.dataset.uid = uid;
      return it;
    }
    swatch(queue) { return element("i", "", this.colours.get(queue) ?? "swatch"); }

    /* Show the state of the cluster at a time. */
    async show(t) {
      const record = await this.record();
      if (t !== this.t) return;
      const queues = new Map();
      for (const it of record.queues ?? []) { if (it.at <= t) queues.set(it.queue, it); }
      const waiting = [], placed = [];
      for (const story of record.objects ?? []) {
        if (story.kind !== "pod") continue;
        const live = new Map();
        for (const it of story.moments) {
          if (it.at > t || it.cleanup) break;
          if (it.change === "gone") live.delete(it.uid); else live.set(it.uid, { ...it.state, uid: it.uid });
        }
        for (const state of live.values()) (state.node ? placed : waiting).push([story.name, state]);
      }
      const state = $(this.section, ".state");
      const table = $(state, ".queues");
      for (const row of all(table, "tbody tr")) {
        const it = queues.get($(row, "th").textContent) ?? {};
        const cells = [it.held, it.deserved, it.guarantee, it.capability, it.card_quota];
        all(row, "td").forEach((cell, n) => { cell.textContent = this.amounts(cells[n]); });
      }
      const now = $(state, ".now");
      now.replaceChildren();
      this.list(now, "Waiting", waiting, 20, ([name, it]) => [this.link(name, it.uid), `: ${it.waits ?? "the scheduler has published no reason"}`]);
      this.list(now, "On nodes", placed, 40, ([name, it]) => [this.swatch(it.queue), this.link(name, it.uid), " ", element("small",
        `${it.evicted ? "evicted, leaving" : it.leaving ? "leaving" : it.phase ?? "Pending"} on ${it.node}`)], "pods");
      $(this.section, "h2 .when").textContent = `at ${seconds(t)}`;
    }
    amounts(values) {
      const rows = Object.entries(values ?? {}).filter(([name], _, pairs) => pairs.length === 1 || !["memory", "ephemeral-storage"].includes(name));
      return rows.map(([name, amount]) => spoken(name, Number(amount))).join(", ") || "–";
    }
    list(into, title, rows, most, render, cls = "") {
      if (!rows.length) return;
      const ul = element("ul", "", cls);
      for (const row of rows.slice(0, most)) { const li = element("li"); li.append(...render(row)); ul.append(li); }
      if (rows.length > most) ul.append(element("li", `and ${rows.length - most} more`));
      into.append(element("h3", `${title} (${rows.length})`), ul);
    }

    clicked(event) {
      const link = event.target.closest("a");
      const pod = event.target.closest(".pod");
      if (!link && pod) return this.drawer(pod.dataset.uid);
      if (!link) return this.choose(null);
      event.preventDefault();
      if (link.dataset.evict) this.choose(link.dataset.evict);
      else { const it = $(this.section, `.sentence[data-step="${link.dataset.step}"]`); this.chooseSentence(it); it.scrollIntoView({ block: "nearest" }); }
    }
    /* Show one eviction: its arrow and its message; dim the rest. Null shows none. */
    async choose(number) {
      if (number === this.chosen) number = null;
      this.chosen = number;
      for (const it of all(this.section, ".arrows, .evict, .pod, tr[data-evict]")) it.classList.remove("chosen", "involved");
      this.svg.classList.toggle("choosing", number !== null);
      this.callout.hidden = number === null;
      this.remember();
      if (number === null) return;
      for (const it of all(this.section, `[data-evict="${number}"]`)) it.classList.add("chosen");
      const record = await this.record();
      const act = record.acts.filter((it) => it.act === "evict")[number - 1];
      for (const pod of all(this.svg, ".pod")) {
        if ([act.uid, act.preemptor_uid].includes(pod.dataset.uid)) pod.classList.add("involved");
      }
      this.move(act.at);
      const close = element("button", "×", "close");
      close.type = "button";
      close.setAttribute("aria-label", "Close");
      close.addEventListener("click", () => this.choose(null));
      const title = element("p");
      title.append(element("span", number, "badge"), " ", element("strong", act.pod), ` of queue ${act.queue || "(none)"} was evicted at ${seconds(act.at)}`,
        ...(act.preemptor ? [" to make room for ", element("strong", act.preemptor), act.preemptor_queue ? ` of queue ${act.preemptor_queue}` : "",
          act.evidence ? ` (${act.evidence})` : act.inferred ? " (inferred: the next pod bound to that node)" : ""] : [""]), ".");
      const votes = Object.entries(act.votes ?? {}).map(([plugin, vote]) => `${plugin} ${vote}`).join(", ");
      this.callout.replaceChildren(close, title, element("p", `“${$(this.section, `tr[data-evict="${number}"] .words`).textContent}”`));
      if (act.tier || votes) this.callout.append(element("p", `${act.action}${act.tier ? `, decided by tier ${act.tier}` : ""}${votes ? `: ${votes}` : ""}`));
    }

    /* Show one pod: the reasons for which it waited, its events, its versions, its log. */
    async drawer(uid) {
      this.pod = uid === this.pod ? null : uid;
      this.side.hidden = this.pod === null;
      this.remember();
      if (this.pod === null) return;
      const record = await this.record();
      const plain = (text) => (record.namespace ? String(text).replaceAll(`${record.namespace}/`, "") : String(text));
      const story = (record.objects ?? []).find((it) => it.kind === "pod" && it.moments.some((moment) => moment.uid === uid));
      if (!story) { this.side.hidden = true; return; }
      const moments = story.moments.filter((it) => it.uid === uid && !it.cleanup);
      const last = moments.at(-1).state;
      const close = element("button", "×", "close");
      close.type = "button";
      close.setAttribute("aria-label", "Close");
      close.addEventListener("click", () => this.drawer(null));
      const amounts = Object.entries(last.requests ?? {}).map(([name, it]) => spoken(name, Number(it))).join(", ");
      const head = element("h2", `Pod ${story.name}`);
      const facts = element("p", [last.queue && `queue ${last.queue}`, last.node && `on ${last.node}`, last.priority && `priority ${last.priority}`, amounts].filter(Boolean).join(" · "), "facts");
      this.side.replaceChildren(close, head, facts);
      let previous = "";
      const reasons = moments.filter((it) => { const why = it.state.waits ?? ""; const isNew = why && why !== previous; previous = why; return isNew; });
      this.rows("Why it waited", reasons.map((it) => [it.at, plain(it.state.waits)]));
      const events = (record.objects ?? []).filter((it) => it.kind === "event").flatMap((it) => it.moments)
        .filter((it) => !it.cleanup && it.change !== "gone" && (it.state.uid ? it.state.uid === uid : it.state.about === `Pod ${story.name}`)).sort((a, b) => a.at - b.at);
      this.rows("Events", events.map((it) => [it.at, plain(`${it.state.reason}: ${it.state.message}`)]));
      const list = element("div", "", "versions");
      for (const it of moments) {
        const one = element("details");
        const state = it.change === "gone" ? "gone" : [it.state.phase, it.state.node && `on ${it.state.node}`, it.state.evicted && "evicted", it.state.leaving && "leaving"].filter(Boolean).join(", ");
        one.append(element("summary", `${seconds(it.at)} ${it.change}: ${state || "–"}`));
        one.addEventListener("toggle", () => { if (one.open && !$(one, "pre")) one.append(element("pre", yaml(it.object ?? it.state).join("\n"))); });
        list.append(one);
      }
      this.side.append(element("h3", `Versions (${moments.length})`), list);
      const log = (record.logs ?? {})[story.name];
      if (log) this.side.append(element("h3", "Log"), element("pre", log));
      this.side.focus();
    }
    rows(title, found) {
      if (!found.length) return;
      const rows = element("table");
      for (const [at, text] of found) { const row = element("tr"); row.append(element("td", seconds(at), "num"), element("td", text, "words")); rows.append(row); }
      this.side.append(element("h3", title), rows);
    }

    more() {
      const rows = all(this.section, "tr.more");
      if (!rows.length) return;
      const button = element("button", `Show all ${rows.length + 30} evictions`, "showall");
      button.type = "button";
      button.addEventListener("click", () => { rows[0].closest("table").classList.add("all"); button.remove(); });
      $(this.section, ".evictions").parentElement.after(button);
    }
    copies() {
      for (const code of all(this.section, ".commands code")) {
        const button = element("button", "Copy", "copy");
        button.type = "button";
        button.setAttribute("aria-label", `Copy: ${code.textContent}`);
        button.addEventListener("click", async () => {
          try { await navigator.clipboard.writeText(code.textContent); } catch {
            const range = document.createRange(); range.selectNodeContents(code);
            getSelection().removeAllRanges(); getSelection().addRange(range); document.execCommand("copy");
          }
          button.textContent = "Copied";
          setTimeout(() => { button.textContent = "Copy"; }, 1500);
        });
        code.after(button);
      }
    }
  }

  const pages = new Map();
  const open = () => {
    const { id, chosen } = address();
    const target = document.getElementById(id || document.body.dataset.start || "overview");
    const page = target?.closest(".page");
    for (const it of all(document, ".page.open")) it.classList.remove("open");
    page?.classList.add("open");
    document.body.classList.toggle("reading", Boolean(page));
    const section = target?.closest(".scenario");
    if (section && !pages.has(section.id)) pages.set(section.id, new Page(section));
    if (section) pages.get(section.id).restore(chosen);
    filterAsAddressed();
    if (page === target) scrollTo(0, 0);
    document.title = section ? `${$(section, "h1").firstChild.textContent.trim()} · schedspec` : document.title;
    html.dataset.ready = "true";
  };
  for (const box of all(document, ".differences input")) {
    const show = () => box.closest(".view").classList.toggle("only-differences", box.checked);
    box.addEventListener("change", show);
    show();
  }
  addEventListener("hashchange", open);
  open();
})();
