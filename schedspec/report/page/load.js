"use strict";
/* The page is complete without this script. The script adds zooming, from months to seconds: it draws the charts again
   with the exact amounts of the visible time. It also shows the amounts at the pointer. */
(() => {
  const root = document.getElementById("load");
  const html = document.documentElement;
  html.classList.add("scripted");
  const all = (from, what) => [...from.querySelectorAll(what)];

  // ------------------------------------------------------------------------------------------------- light and dark
  const themes = { get: () => { try { return localStorage.getItem("schedspec-theme"); } catch { return null; } } };
  const button = document.getElementById("theme");
  if (button && !button.dataset.bound) {
    if (themes.get()) html.dataset.theme = themes.get();
    button.addEventListener("click", () => {
      const dark = html.dataset.theme ? html.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      html.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem("schedspec-theme", html.dataset.theme); } catch { /* a page opened from a file may have no storage */ }
    });
  }

  // -------------------------------------------------------------------------------------------------------- amounts
  class Steps {
    constructor({ t, v }) {
      let time = 0, value = 0, area = 0;
      this.t = new Float64Array(t.length);
      this.v = new Float64Array(t.length);
      this.area = new Float64Array(t.length); // up to each time
      t.forEach((gap, i) => {
        area += value * (gap / 1000);
        time += gap / 1000;
        value += v[i] / 1000;
        this.t[i] = time; this.v[i] = value; this.area[i] = area;
      });
    }
    index(at) { // the last step that began by then
      let low = 0, high = this.t.length;
      while (low < high) { const mid = (low + high) >> 1; if (this.t[mid] <= at) low = mid + 1; else high = mid; }
      return low - 1;
    }
    at(time) { const i = this.index(time); return i < 0 ? 0 : this.v[i]; }
    upTo(time) { const i = this.index(time); return i < 0 ? 0 : this.area[i] + this.v[i] * (time - this.t[i]); }
    means(from, to, columns) {
      const found = new Float64Array(columns), width = (to - from) / columns;
      let before = this.upTo(from);
      for (let i = 0; i < columns; i++) {
        const now = this.upTo(from + (i + 1) * width);
        found[i] = (now - before) / width;
        before = now;
      }
      return found;
    }
  }

  // ----------------------------------------------------------------------------------------------------------- time
  const STEPS = [0.01, 0.1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 345600, 604800, 1209600, 2592000, 5184000, 7776000, 15552000, 31536000];
  const two = (n) => String(n).padStart(2, "0");
  const moment = (start, t, step) => {
    const at = start + t, part = step < 1 ? (Math.round(at * 100) % 100 / 100).toFixed(2).slice(1) : "";
    if (start < 315532800) {
      const rest = Math.floor(t % 86400 + 1e-6), days = Math.floor(t / 86400 + 1e-9);
      const clock = `${two(Math.floor(rest / 3600))}:${two(Math.floor(rest / 60) % 60)}` + (step < 60 ? `:${two(rest % 60)}${part}` : "");
      return step >= 86400 ? `${days}d` : days ? `${days}d ${clock}` : clock;
    }
    const text = new Date(Math.floor(at + 1e-6) * 1000).toISOString();
    return step >= 86400 ? text.slice(5, 10) : step >= 60 ? text.slice(5, 16).replace("T", " ") : text.slice(11, 19) + part;
  };
  const full = (start, t) => start < 315532800 ? moment(start, t, 1) : new Date((start + t) * 1000).toISOString().slice(0, 19).replace("T", " ");
  const roundedUp = (value) => {
    if (value <= 0) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 4, 5, 10].map((it) => it * power).find((it) => it >= value * 0.999);
  };
  const shown = (value) => Number.isInteger(value) ? `${value}` : value.toFixed(value < 10 ? 2 : 1);

  // ------------------------------------------------------------------------------------------------------------ page
  async function begin() {
    const bytes = Uint8Array.from(atob(document.getElementById("load-data").textContent), (c) => c.charCodeAt(0));
    const data = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
    const steps = Object.fromEntries(Object.entries(data.steps).map(([name, it]) => [name, new Steps(it)]));
    const view = { from: 0, to: data.span };
    const least = Math.min(data.span, 2);

    class Chart {
      constructor(figure) {
        this.figure = figure;
        this.plot = figure.querySelector(".plot");
        this.svg = this.plot.querySelector("svg");
        this.spec = data.charts[+figure.dataset.chart];
        this.output = figure.querySelector("output");
        this.dirty = true;
      }
      means(parts, columns) {
        const sum = new Float64Array(columns);
        for (const name of parts) steps[name].means(view.from, view.to, columns).forEach((it, i) => { sum[i] += it; });
        return sum;
      }
      draw() {
        if (!this.dirty || !this.visible) return;
        this.dirty = false;
        const columns = Math.max(100, Math.min(1000, Math.round(this.plot.clientWidth)));
        let below = new Float64Array(columns);
        const paths = [];
        for (const area of this.spec.areas) {
          const above = this.means(area.parts, columns).map((it, i) => it + below[i]);
          paths.push({ cls: `area q${area.colour}`, label: area.label, below, above });
          below = above;
        }
        let top = Math.max(0, ...below);
        for (const line of this.spec.lines) {
          const above = line.parts.length ? this.means(line.parts, columns) : new Float64Array(columns).fill(line.value);
          top = Math.max(top, ...above);
          paths.push({ cls: `line ${line.kind}`, label: line.label, above });
        }
        top = roundedUp(top);
        this.svg.replaceChildren(...paths.map((it) => this.path(it, columns, 200 / top)));
        this.ticks(top);
      }
      path({ cls, label, below, above }, columns, scale) {
        const it = document.createElementNS("http://www.w3.org/2000/svg", "path");
        const width = 1000 / columns, y = (level) => (200 - level * scale).toFixed(1);
        let d = `M0 ${y(above[0])}`;
        for (let i = 0; i < columns; i++) {
          if (i && above[i] !== above[i - 1]) d += `V${y(above[i])}`;
          if (i === columns - 1 || above[i + 1] !== above[i]) d += `H${((i + 1) * width).toFixed(1)}`;
        }
        if (below) {
          d += `V${y(below[columns - 1])}`;
          for (let i = columns - 1; i >= 0; i--) {
            if (i < columns - 1 && below[i] !== below[i + 1]) d += `V${y(below[i])}`;
            if (i === 0 || below[i - 1] !== below[i]) d += `H${(i * width).toFixed(1)}`;
          }
          d += "Z";
        }
        it.setAttribute("class", cls);
        it.setAttribute("d", d);
        const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
        title.textContent = label;
        it.append(title);
        return it;
      }
      ticks(top) {
        const most = Math.max(2, Math.floor(this.plot.clientWidth / 92)), span = view.to - view.from;
        const step = STEPS.find((it) => span / it <= most) ?? span;
        const first = data.start < 315532800 ? 0 : data.start;
        const found = [];
        for (let n = Math.ceil((first + view.from) / step - 1e-9); n * step - first <= view.to + 1e-9; n++) {
          const t = n * step - first, it = document.createElement("span");
          const part = (t - view.from) / span;
          it.style.left = `${part * 100}%`;
          it.textContent = moment(data.start, t, step);
          const beyond = it.textContent.length * 3.2 - Math.min(part, 1 - part) * this.plot.clientWidth;
          if (beyond < 24) found.push(it); // the margin of the plot, which .x-ticks does not clip
        }
        this.plot.querySelector(".x-ticks").replaceChildren(...found);
        all(this.plot, ".y-ticks span").forEach((it, i) => { it.textContent = shown(top * i / 2); });
      }
      time(event) {
        const box = this.plot.getBoundingClientRect();
        return view.from + Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * (view.to - view.from);
      }
      showAmounts(t) {
        const at = (parts) => parts.reduce((sum, name) => sum + steps[name].at(t), 0);
        const amounts = this.spec.areas.map((area) => [area.label, at(area.parts)]);
        const held = amounts.length === 1 ? amounts : amounts.filter(([, it]) => it > 0);
        const lines = this.spec.lines.map((line) => [line.label, line.parts.length ? at(line.parts) : line.value]);
        this.output.textContent = `${full(data.start, t)} · ` + [...held, ...lines].map(([name, it]) => `${name} ${shown(it)}`).join(" · ");
      }
    }
    const charts = all(root, ".chart[data-chart]").map((it) => new Chart(it));

    let scheduled = false;
    const redraw = () => {
      for (const it of charts) it.dirty = true;
      root.querySelector(".range").textContent = `${full(data.start, view.from)} – ${full(data.start, view.to)}`;
      if (scheduled) return;
      scheduled = true;
      requestAnimationFrame(() => { scheduled = false; for (const it of charts) it.draw(); root.dataset.drawn = `${view.from}-${view.to}`; });
    };
    const show = (from, to) => {
      let span = Math.min(data.span, Math.max(least, to - from));
      if (!(span > 0)) span = data.span;
      const middle = (from + to) / 2;
      view.from = Math.max(0, Math.min(data.span - span, middle - span / 2));
      view.to = view.from + span;
      redraw();
    };
    const turn = (what) => {
      const span = view.to - view.from, middle = (view.from + view.to) / 2;
      const reach = { in: span / 4, out: span }[what];
      if (what === "all") show(0, data.span);
      else if (reach) show(middle - reach, middle + reach);
      else show(view.from + (what === "on" ? span / 2 : -span / 2), view.to + (what === "on" ? span / 2 : -span / 2));
    };
    all(root, "[data-zoom]").forEach((it) => it.addEventListener("click", () => turn(it.dataset.zoom)));
    all(root, ".show").forEach((it) => it.addEventListener("click", () => {
      const from = +it.dataset.from, to = +it.dataset.to, margin = (to - from) * 0.1;
      show(from - margin, to + margin);
      root.querySelector(".zoombar").scrollIntoView({ block: "start" });
    }));

    const cursors = (t) => {
      for (const it of charts) {
        const cursor = it.plot.querySelector(".cursor");
        cursor.style.display = t === null ? "none" : "block";
        if (t !== null) cursor.style.left = `${(t - view.from) / (view.to - view.from) * 100}%`;
      }
    };
    let drag = null;
    for (const it of charts) {
      const brush = it.plot.querySelector(".brush");
      it.plot.addEventListener("pointerdown", (event) => {
        if (event.button) return;
        drag = { x: event.clientX, t: it.time(event) };
        it.plot.setPointerCapture(event.pointerId);
      });
      it.plot.addEventListener("pointermove", (event) => {
        const t = it.time(event);
        cursors(t);
        it.showAmounts(t);
        if (!drag) return;
        const span = view.to - view.from, [left, right] = [drag.t, t].sort((a, b) => a - b);
        brush.style.display = "block";
        brush.style.left = `${(left - view.from) / span * 100}%`;
        brush.style.width = `${(right - left) / span * 100}%`;
      });
      const end = (event) => {
        brush.style.display = "none";
        const from = drag;
        drag = null;
        if (from && event.type === "pointerup" && Math.abs(event.clientX - from.x) > 6) show(...[from.t, it.time(event)].sort((a, b) => a - b));
      };
      it.plot.addEventListener("pointerup", end);
      it.plot.addEventListener("pointercancel", end);
      it.plot.addEventListener("pointerleave", () => { cursors(null); });
      it.plot.addEventListener("dblclick", () => turn("all"));
      it.plot.addEventListener("keydown", (event) => {
        const what = { "+": "in", "=": "in", "-": "out", ArrowLeft: "back", ArrowRight: "on", 0: "all", Escape: "all" }[event.key];
        if (what) { event.preventDefault(); turn(what); }
      });
    }
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const it = charts.find((chart) => chart.figure === entry.target);
        it.visible = entry.isIntersecting;
        it.draw();
      }
    }, { rootMargin: "300px" });
    charts.forEach((it) => seen.observe(it.figure));
    addEventListener("resize", redraw);
    redraw();
  }
  if (root) begin();
})();
