"use strict";
/* The page is complete without this. It adds: search, the cursor with the state at its time, arrows on demand, copying. */
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
  const seconds = (t) => `${t.toFixed(3)} s`;

  // ------------------------------------------------------------------------------------------------- light and dark
  const themes = { get: () => { try { return localStorage.getItem("schedspec-theme"); } catch { return null; } } };
  if (themes.get()) html.dataset.theme = themes.get();
  $(document, "#theme").addEventListener("click", () => {
    const dark = html.dataset.theme ? html.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    html.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("schedspec-theme", html.dataset.theme); } catch { /* a page from a file may not keep it */ }
  });

  // ------------------------------------------------------------------------------------------------------- overview
  const filters = $(document, "#filters");
  const entries = all(document, ".entry");
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
  filters.addEventListener("input", filter);
  filters.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !typing && !document.body.classList.contains("reading")) { event.preventDefault(); $(document, "#search").focus(); }
  });

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
      for (const it of all(section, ".said")) {
        const go = () => this.say(it);
        it.addEventListener("click", go);
        it.addEventListener("keydown", (event) => { if (event.key === "Enter") go(); });
      }
      for (const row of all(section, "tr[data-evict]")) row.addEventListener("click", () => this.choose(row.dataset.evict));
      section.addEventListener("keydown", (event) => { if (event.key === "Escape") this.choose(null); });
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
      for (const it of all(this.section, ".said")) {
        if (!it.classList.contains("skipped") && Number(it.dataset.at) <= t + 1e-6) chosen = it;
      }
      for (const it of all(this.section, ".said, .step")) it.classList.remove("chosen");
      if (chosen) {
        chosen.classList.add("chosen");
        $(this.svg, `.steplink[data-step="${chosen.dataset.step}"] .step`)?.classList.add("chosen");
      }
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.show(t), 30);
    }
    say(it) {
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
    swatch(queue) { return element("i", "", this.colours.get(queue) ?? "swatch"); }

    /* The state that the cluster had shown by that time. */
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
          if (it.change === "gone") live.delete(it.uid); else live.set(it.uid, it.state);
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
      this.list(now, "Waiting", waiting, 20, ([name, it]) => [element("strong", name), `: ${it.waits ?? "the scheduler has not said anything"}`]);
      this.list(now, "On nodes", placed, 40, ([name, it]) => [this.swatch(it.queue), `${name} `, element("small",
        `${it.evicted ? "evicted, leaving" : it.leaving ? "leaving" : it.phase ?? "Pending"} on ${it.node}`)], "pods");
      $(this.section, "h2 .when").textContent = `at ${seconds(t)}`;
    }
    amounts(given) {
      const rows = Object.entries(given ?? {}).filter(([name], _, them) => them.length === 1 || !["memory", "ephemeral-storage"].includes(name));
      return rows.map(([name, amount]) => `${amount} ${name.includes("/") ? "cards" : name}`).join(", ") || "–";
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
      if (!link) return this.choose(null);
      event.preventDefault();
      if (link.dataset.evict) this.choose(link.dataset.evict);
      else { const it = $(this.section, `.said[data-step="${link.dataset.step}"]`); this.say(it); it.scrollIntoView({ block: "nearest" }); }
    }
    /* One eviction: its arrow, its words; the rest steps back. */
    async choose(number) {
      if (number === this.chosen) number = null;
      this.chosen = number;
      for (const it of all(this.section, ".arrows, .evict, .pod, tr[data-evict]")) it.classList.remove("chosen", "involved");
      this.svg.classList.toggle("choosing", number !== null);
      this.callout.hidden = number === null;
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
          act.inferred ? " (inferred: it came to that node next)" : ""] : [""]), ".");
      const votes = Object.entries(act.votes ?? {}).map(([plugin, vote]) => `${plugin} ${vote}`).join(", ");
      this.callout.replaceChildren(close, title, element("p", `“${$(this.section, `tr[data-evict="${number}"] .words`).textContent}”`));
      if (act.tier || votes) this.callout.append(element("p", `${act.action}${act.tier ? `, decided by tier ${act.tier}` : ""}${votes ? `: ${votes}` : ""}`));
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
    const target = location.hash ? document.getElementById(location.hash.slice(1)) : null;
    const page = target?.closest(".page");
    for (const it of all(document, ".page.open")) it.classList.remove("open");
    page?.classList.add("open");
    document.body.classList.toggle("reading", Boolean(page));
    const section = target?.closest(".scenario");
    if (section && !pages.has(section.id)) pages.set(section.id, new Page(section));
    if (section === target) scrollTo(0, 0);
    document.title = section ? `${$(section, "h1").firstChild.textContent.trim()} · schedspec` : document.title;
    html.dataset.ready = "true";
  };
  addEventListener("hashchange", open);
  open();
})();
