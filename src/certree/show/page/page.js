"use strict";
(() => {
  const holder = document.getElementById("explorer");
  if (!holder) return;
  const data = JSON.parse(document.getElementById("tree-data").textContent);

  // -- words and colours ----------------------------------------------------------------------

  const channels = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
  const CLASSES = data.classes.map(channels), [LOW, MIDDLE, HIGH] = data.diverging.map(channels);
  const NAMED = 6;

  const grouped = number => Number(number.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 6 });
  const counted = (number, one, many) => `${number.toLocaleString("en-US")} ${number === 1 ? one : many}`;
  const percent = share => {
    const near = (share > 0 && share < 0.005) || (share >= 0.995 && share < 1);
    return `${(100 * share).toFixed(near ? 1 : 0)}\u00a0%`;
  };
  const mixed = (a, b, t) => `rgb(${a.map((from, i) => Math.round(from + t * (b[i] - from))).join(",")})`;

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  // -- a tree: columns by node, children beside each other ---------------------------------------

  class Tree {
    constructor(columns) {
      Object.assign(this, columns);
      const n = this.left.length;
      this.parent = new Array(n).fill(-1);
      this.left.forEach((left, i) => { if (left >= 0) this.parent[left] = this.parent[left + 1] = i; });
      this.both = new Set(this.missingBoth);
      this.least = Infinity;
      this.most = -Infinity;
      for (const value of this.said) { this.least = Math.min(this.least, value); this.most = Math.max(this.most, value); }
      this.farthest = Math.max(Math.abs(this.least), Math.abs(this.most)) || 1;
    }

    rule(node) {
      const parent = this.parent[node];
      if (parent < 0) return "all rows";
      const feature = this.feature[parent], name = data.features[feature];
      const isLeft = node === this.left[parent], codes = this.sets[parent];
      if (!codes) return `${name} ${isLeft ? "≤" : ">"} ${grouped(this.threshold[parent])}`;
      const known = data.categories[feature];
      const names = codes.slice(0, NAMED).map(code => known ? known[code] : grouped(code)).join(", ");
      const more = codes.length > NAMED ? `, ... (${codes.length})` : "";
      return `${name} ${isLeft === Boolean(this.missingLeft[parent]) ? "not in" : "in"} {${names}${more}}`;
    }

    prediction(node) {
      const value = this.said[node], name = this.outputs ? this.outputs[this.leader[node]] : null;
      let words;
      if (this.scale === "probability") words = percent(value);
      else if (this.scale === "raw score") words = `${value > 0 ? "+" : ""}${Number(value.toPrecision(3))}`;
      else words = grouped(value);
      return name === null ? words : `${name}: ${words}`;
    }

    colour(node) {
      const value = this.said[node];
      if (this.outputs && this.outputs.length > 2) {
        const t = 0.25 + 0.75 * Math.min(Math.max(value, 0), 1);
        return mixed([255, 255, 255], CLASSES[this.leader[node] % CLASSES.length], t);
      }
      let t = value;
      if (this.scale === "target") t = this.most > this.least ? (value - this.least) / (this.most - this.least) : 0.5;
      if (this.scale === "raw score") t = 0.5 + 0.5 * value / this.farthest;
      return t < 0.5 ? mixed(LOW, MIDDLE, 2 * t) : mixed(MIDDLE, HIGH, 2 * t - 1);
    }

    goesLeft(node, row) {
      const value = row[this.feature[node]], missingLeft = Boolean(this.missingLeft[node]);
      if (value === null) {
        if (!this.both.has(node)) return missingLeft;
        return this.rows[this.left[node]] >= this.rows[this.left[node] + 1];
      }
      const codes = this.sets[node];
      return codes ? codes.includes(value) !== missingLeft : value <= this.threshold[node];
    }

    path(row) {
      const nodes = [0];
      for (let node = 0; this.left[node] >= 0; nodes.push(node)) node = this.left[node] + (this.goesLeft(node, row) ? 0 : 1);
      return nodes;
    }

    pathTo(node) {
      const nodes = [];
      for (let at = node; at >= 0; at = this.parent[at]) nodes.unshift(at);
      return nodes;
    }
  }

  const trees = data.trees.map(columns => new Tree(columns));
  let tree = trees[0], items = new Map(), passed = [], found = [], isFound = new Set(), current = -1, zoom = 1;

  // -- the tree on the page ------------------------------------------------------------------------

  const root = element("ul", { role: "tree", "aria-label": "Cells of the tree" });
  const view = element("div", { class: "tree" }, root);

  function item(node, level) {
    const opens = tree.left[node] >= 0, inside = tree.inside[node];
    const rows = counted(tree.rows[node], "row", "rows"), said = tree.prediction(node);
    const hidden = inside ? `${counted(inside, "cell", "cells")} inside` : "";
    const label = [tree.rule(node), said, rows, hidden].filter(Boolean).join(", ");
    const words = element("span", { class: "words" }, tree.rule(node), element("b", {}, said), element("small", {}, hidden ? `${rows}, ${hidden}` : rows));
    const bar = element("span", { class: "bar", style: `width:${(6 * tree.rows[node] / (tree.rows[0] || 1)).toFixed(2)}em` });
    words.append(bar);
    const cell = element("div", { class: "cell" },
      element("span", { class: "fold", "aria-hidden": "true" }, opens ? "▸" : ""),
      element("span", { class: "swatch", style: `background:${tree.colour(node)}` }), words);
    const made = element("li", { role: "treeitem", tabindex: node ? -1 : 0, "aria-level": level, "aria-label": label, "aria-expanded": opens ? "false" : null, "data-node": node }, cell);
    cell.addEventListener("click", () => { focus(node); toggle(node); });
    items.set(node, made);
    mark(node);
    return made;
  }

  const isOpen = node => items.get(node).getAttribute("aria-expanded") === "true";

  function open(node) {
    const made = items.get(node), left = tree.left[node];
    if (left < 0 || isOpen(node)) return;
    if (!items.has(left)) {
      const level = Number(made.getAttribute("aria-level")) + 1;
      made.append(element("ul", { role: "group" }, item(left, level), item(left + 1, level)));
    }
    made.querySelector(":scope > ul").hidden = false;
    made.querySelector(".fold").textContent = "▾";
    made.setAttribute("aria-expanded", "true");
  }

  function close(node) {
    if (tree.left[node] < 0 || !isOpen(node)) return;
    items.get(node).querySelector(":scope > ul").hidden = true;
    items.get(node).querySelector(".fold").textContent = "▸";
    items.get(node).setAttribute("aria-expanded", "false");
  }

  const toggle = node => isOpen(node) ? close(node) : open(node);

  function show(node) { tree.pathTo(node).slice(0, -1).forEach(open); }

  function focus(node) {
    show(node);
    root.querySelectorAll('[tabindex="0"]').forEach(one => { one.tabIndex = -1; });
    items.get(node).tabIndex = 0;
    items.get(node).focus({ preventScroll: true });
    items.get(node).querySelector(".cell").scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function mark(node) {
    const made = items.get(node);
    made.classList.toggle("passed", passed.includes(node));
    made.classList.toggle("found", isFound.has(node));
  }

  const markAll = () => { for (const node of items.keys()) mark(node); };

  // Nodes that can be seen, from top to bottom.
  function visible() {
    const nodes = [], stack = [0];
    while (stack.length) {
      const node = stack.pop();
      nodes.push(node);
      if (tree.left[node] >= 0 && isOpen(node)) stack.push(tree.left[node] + 1, tree.left[node]);
    }
    return nodes;
  }

  root.addEventListener("keydown", event => {
    const made = event.target.closest("[role=treeitem]");
    if (!made || event.ctrlKey || event.altKey || event.metaKey) return;
    const node = Number(made.dataset.node), nodes = visible(), place = nodes.indexOf(node), opens = tree.left[node] >= 0;
    const moves = {
      ArrowDown: () => focus(nodes[Math.min(place + 1, nodes.length - 1)]),
      ArrowUp: () => focus(nodes[Math.max(place - 1, 0)]),
      ArrowRight: () => { if (opens && isOpen(node)) focus(tree.left[node]); else open(node); },
      ArrowLeft: () => { if (opens && isOpen(node)) close(node); else if (node) focus(tree.parent[node]); },
      Home: () => focus(0),
      End: () => focus(nodes[nodes.length - 1]),
      Enter: () => toggle(node),
      " ": () => toggle(node),
      "*": () => nodes.filter(one => tree.parent[one] === tree.parent[node]).forEach(open),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  });

  // -- tools ---------------------------------------------------------------------------------------

  const zoomed = element("output", {}, "100\u00a0%");
  function zoomBy(step) {
    zoom = Math.min(Math.max(zoom + step, 0.5), 2);
    view.style.setProperty("--zoom", zoom);
    zoomed.textContent = `${Math.round(100 * zoom)}\u00a0%`;
  }
  const button = (words, action, label) => element("button", { type: "button", "aria-label": label, onclick: action }, words);

  const told = element("span", { role: "status" });
  const searched = element("input", { type: "search", id: "search", placeholder: "feature", size: 14, oninput: search });
  searched.addEventListener("keydown", event => { if (event.key === "Enter") { event.preventDefault(); step(event.shiftKey ? -1 : 1); } });

  function search() {
    const words = searched.value.trim().toLowerCase();
    found = [];
    current = -1;
    if (words) tree.parent.forEach((parent, node) => { if (parent >= 0 && data.features[tree.feature[parent]].toLowerCase().includes(words)) found.push(node); });
    isFound = new Set(found);
    told.textContent = words ? `${counted(found.length / 2, "split asks", "splits ask")} for it` : "";
    markAll();
  }

  function step(by) {
    if (!found.length) return;
    current = (current + by + found.length) % found.length;
    show(found[current]);
    items.get(found[current]).querySelector(".cell").scrollIntoView({ block: "nearest", inline: "nearest" });
    root.querySelectorAll('[tabindex="0"]').forEach(one => { one.tabIndex = -1; });
    items.get(found[current]).tabIndex = 0;
    told.textContent = `${current + 1} of ${counted(found.length, "cell", "cells")}: ${tree.rule(found[current])}`;
  }

  const tools = element("div", { class: "tools", role: "group", "aria-label": "Tools of the tree" },
    button("Open a level", () => visible().forEach(open)),
    button("Close all", () => { [...items.keys()].reverse().forEach(close); }),
    button("−", () => zoomBy(-0.1), "Smaller"), zoomed, button("+", () => zoomBy(0.1), "Larger"),
    element("label", { for: "search" }, "Search ", searched),
    button("Next", () => step(1), "Next cell found"), button("Previous", () => step(-1), "Previous cell found"), told);

  // -- a row --------------------------------------------------------------------------------------

  const fields = data.features.map((name, j) => {
    const known = data.categories[j];
    if (!known) return element("input", { type: "text", inputmode: "decimal", placeholder: "missing", id: `value-${j}` });
    return element("select", { id: `value-${j}` }, element("option", { value: "" }, "missing"),
      ...known.map((category, code) => element("option", { value: code }, category)));
  });
  const picked = element("select", { id: "picked", onchange: pick }, element("option", { value: "" }, "type one in below"),
    ...data.titles.map((title, i) => element("option", { value: i }, title)));
  const answer = element("div", { class: "answer", role: "status", "aria-live": "polite" });
  const typed = element("details", {}, element("summary", {}, "Values of the row"),
    element("div", { class: "fields" }, ...fields.map((field, j) => element("label", { for: field.id }, data.features[j], field))));

  function pick() {
    if (picked.value === "") return;
    data.rows[picked.value].forEach((value, j) => { fields[j].value = value === null ? "" : value; });
    follow();
  }

  function row() {
    const values = fields.map(field => field.value.trim() === "" ? null : Number(field.value));
    fields.forEach((field, j) => field.setAttribute("aria-invalid", Number.isNaN(values[j])));
    const wrong = values.findIndex(Number.isNaN);
    return wrong < 0 ? [values, null] : [null, `${data.features[wrong]} must be a number or empty, got ${fields[wrong].value}`];
  }

  function follow() {
    const [values, error] = row();
    answer.replaceChildren();
    if (error) { passed = []; markAll(); answer.append(error); return; }
    passed = tree.path(values);
    const end = passed[passed.length - 1], inside = tree.inside[end];
    show(end);
    markAll();
    items.get(end).querySelector(".cell").scrollIntoView({ block: "nearest", inline: "nearest" });
    const both = passed.some(node => tree.left[node] >= 0 && values[tree.feature[node]] === null && tree.both.has(node));
    answer.append(
      element("b", {}, tree.prediction(end)),
      ` in the last of ${counted(passed.length, "cell", "cells")}, with ${counted(tree.rows[end], "row", "rows")}.`,
      inside ? ` It has ${counted(inside, "cell", "cells")} inside that this page leaves out; this is their mean.` : "",
      both ? " It lacks a value that no row lacked there; the model averages over both sides, and this is the larger one." : "",
      element("ol", {}, ...passed.map(node => element("li", {}, `${tree.rule(node)}: ${tree.prediction(node)}`))));
  }

  const form = element("form", { "aria-label": "A row to follow", onsubmit: event => { event.preventDefault(); follow(); } },
    element("div", { class: "tools" }, element("label", { for: "picked" }, "Follow ", picked),
      element("button", { type: "submit" }, "Follow the values"),
      button("Forget", () => { passed = []; answer.replaceChildren(); form.reset(); markAll(); })),
    typed, answer);

  // -- which tree ----------------------------------------------------------------------------------

  function start(number) {
    tree = trees[number];
    items = new Map();
    passed = [];
    root.replaceChildren(item(0, 1));
    tree.open.forEach(open);
    search();
    answer.replaceChildren();
  }

  if (trees.length > 1) {
    const chosen = element("select", { id: "chosen", onchange: () => { start(Number(chosen.value)); } },
      ...trees.map((one, i) => element("option", { value: i }, one.title)));
    holder.append(element("div", { class: "tools" }, element("label", { for: "chosen" }, "Show ", chosen)));
  }
  holder.append(tools, view, element("h3", {}, "Follow a row"), form);
  start(0);
})();
