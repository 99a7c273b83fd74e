"use strict";
(() => {
  const container = document.getElementById("explorer");
  if (!container) return;
  const data = JSON.parse(document.getElementById("tree-data").textContent);

  // -- text and colours -----------------------------------------------------------------------

  const channels = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
  const CLASSES = data.classes.map(channels), [LOW, MIDDLE, HIGH] = data.diverging.map(channels);
  const MAX_NAMES = 6;  // categories that a rule lists

  const formatNumber = number => Number(number.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 6 });
  const formatCount = (number, singular, plural) => `${number.toLocaleString("en-US")} ${number === 1 ? singular : plural}`;
  const formatPercent = fraction => {
    const isNearEnd = (fraction > 0 && fraction < 0.005) || (fraction >= 0.995 && fraction < 1);
    return `${(100 * fraction).toFixed(isNearEnd ? 1 : 0)}\u00a0%`;
  };
  const listNames = names => names.slice(0, MAX_NAMES).join(", ") + (names.length > MAX_NAMES ? `, ... (${names.length})` : "");
  const blend = (a, b, t) => `rgb(${a.map((from, i) => Math.round(from + t * (b[i] - from))).join(",")})`;

  function element(name, attributes, ...children) {
    const created = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) created.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined) created.setAttribute(key, value);
    }
    created.append(...children);
    return created;
  }

  // -- a tree: columns with an entry for each node; the right child follows the left one ---------

  class Tree {
    constructor(columns) {
      Object.assign(this, columns);
      const n = this.left.length;
      this.parent = new Array(n).fill(-1);
      this.left.forEach((left, i) => { if (left >= 0) this.parent[left] = this.parent[left + 1] = i; });
      // Nodes that send missing values to both children, as no training row had one there.
      this.sendsBothWays = new Set(this.missingBoth);
      this.sendsUnseenLeft = new Set(this.unseenLeft);
      this.lowest = Infinity;
      this.highest = -Infinity;
      for (const value of this.prediction) { this.lowest = Math.min(this.lowest, value); this.highest = Math.max(this.highest, value); }
      this.largest = Math.max(Math.abs(this.lowest), Math.abs(this.highest)) || 1;
    }

    // Whether rows that lack the value of the split above a node, and reach it, go to this node alone.
    takesMissing(node) {
      if (!this.showsMissing) return false;
      const feature = this.feature[this.parent[node]];
      for (let child = node; child > 0; child = this.parent[child]) {
        const parent = this.parent[child];
        if (this.feature[parent] !== feature) continue;
        if (this.sendsBothWays.has(parent) || Boolean(this.missingLeft[parent]) !== (child === this.left[parent])) return false;
      }
      return true;
    }

    // Number of calibration rows and bound on the error of a leaf, as far as they are known.
    formatBound(node) {
      const count = this.calibrationRows?.[node], bound = this.bounds?.[node];
      const rows = count === undefined ? "" : formatCount(count, "calibration row", "calibration rows");
      return [rows, bound ? `error at most ${bound}` : ""].filter(Boolean).join(", ");
    }

    // The number of a rule and its test.
    numberedRule(node) {
      const number = this.numbers?.[node];
      return number ? `${number}: ${this.rule(node)}` : this.rule(node);
    }

    rule(node) {
      const parent = this.parent[node];
      if (parent < 0) return "all rows";
      const feature = this.feature[parent], name = data.features[feature];
      const isLeft = node === this.left[parent], codes = this.sets[parent];
      const categories = data.categories[feature], threshold = this.threshold[parent];
      // Such thresholds of categories only separate missing values.
      if (categories && !codes && (threshold < -1 || threshold === Number.MAX_VALUE))
        return `${name} is ${isLeft === (threshold < -1) ? "" : "not "}missing`;
      const date = this.dates?.[parent], missing = this.takesMissing(node) ? " (or missing)" : "";
      if (categories && !codes) {
        // The threshold is between the codes of two categories.
        const inside = categories.filter((_, code) => (code <= threshold) === isLeft);
        return `${name} in {${listNames(inside)}}${missing}`;
      }
      if (!codes) return `${name} ${isLeft ? "≤" : ">"} ${date ?? formatNumber(threshold)}${missing}`;
      const names = listNames(codes.map(code => categories ? categories[code] : formatNumber(code)));
      return `${name} ${isLeft === this.sendsUnseenLeft.has(parent) ? "not in" : "in"} {${names}}${missing}`;
    }

    formatPrediction(node) {
      let value = this.prediction[node], name = this.outputs ? this.outputs[this.output[node]] : null;
      // Rules predict the more probable of two classes.
      if (this.numbers && this.outputs?.length === 2 && value <= 0.5) { value = 1 - value; name = this.outputs[0]; }
      let text;
      if (this.scale === "probability") text = formatPercent(value);
      else if (this.scale === "raw score") text = `${value > 0 ? "+" : ""}${Number(value.toPrecision(3))}`;
      else text = formatNumber(value);
      return name === null ? text : `${name}: ${text}`;
    }

    colour(node) {
      const value = this.prediction[node];
      if (this.outputs && this.outputs.length > 2) {
        const t = 0.25 + 0.75 * Math.min(Math.max(value, 0), 1);
        return blend([255, 255, 255], CLASSES[this.output[node] % CLASSES.length], t);
      }
      let t = value;
      if (this.scale === "target") t = this.highest > this.lowest ? (value - this.lowest) / (this.highest - this.lowest) : 0.5;
      if (this.scale === "raw score") t = 0.5 + 0.5 * value / this.largest;
      return t < 0.5 ? blend(LOW, MIDDLE, 2 * t) : blend(MIDDLE, HIGH, 2 * t - 1);
    }

    goesLeft(node, row) {
      const value = row[this.feature[node]], missingLeft = Boolean(this.missingLeft[node]);
      if (value === null) {
        if (!this.sendsBothWays.has(node)) return missingLeft;
        return this.rows[this.left[node]] >= this.rows[this.left[node] + 1];
      }
      const codes = this.sets[node];
      return codes ? codes.includes(value) !== this.sendsUnseenLeft.has(node) : value <= this.threshold[node];
    }

    path(row) {
      const nodes = [0];
      for (let node = 0; this.left[node] >= 0; nodes.push(node)) node = this.left[node] + (this.goesLeft(node, row) ? 0 : 1);
      return nodes;
    }

    pathTo(node) {
      const nodes = [];
      for (let ancestor = node; ancestor >= 0; ancestor = this.parent[ancestor]) nodes.unshift(ancestor);
      return nodes;
    }
  }

  const trees = data.trees.map(columns => new Tree(columns));
  // items: list items by node; path: nodes of the followed row; matches: nodes that the search has found.
  let tree = trees[0], items = new Map(), path = [], matches = [], isMatch = new Set(), current = -1, zoom = 1;

  // -- the tree on the page ------------------------------------------------------------------------

  const root = element("ul", { role: "tree", "aria-label": "Nodes of the tree" });
  const view = element("div", { class: "tree" }, root);

  // Singular and plural of the rows that are counted in the nodes.
  const rowNames = () => tree.bounds ? ["training row", "training rows"] : ["row", "rows"];

  function item(node, level) {
    const hasChildren = tree.left[node] >= 0, nHidden = tree.hiddenLeaves[node];
    const rows = formatCount(tree.rows[node], ...rowNames()), prediction = tree.formatPrediction(node);
    const hidden = nHidden ? `${formatCount(nHidden, "leaf", "leaves")} not shown` : "";
    const rule = tree.numberedRule(node), counts = [rows, tree.formatBound(node), hidden].filter(Boolean).join(", ");
    const label = [rule, prediction, counts].join(", ");
    const text = element("span", { class: "words" }, rule, element("b", {}, prediction), element("small", {}, counts));
    const bar = element("span", { class: "bar", style: `width:${(6 * tree.rows[node] / (tree.rows[0] || 1)).toFixed(2)}em` });
    text.append(bar);
    const nodeBox = element("div", { class: "node" },
      element("span", { class: "fold", "aria-hidden": "true" }, hasChildren ? "▸" : ""),
      element("span", { class: "swatch", style: `background:${tree.colour(node)}` }), text);
    const listItem = element("li", { role: "treeitem", tabindex: node ? -1 : 0, "aria-level": level, "aria-label": label, "aria-expanded": hasChildren ? "false" : null, "data-node": node }, nodeBox);
    nodeBox.addEventListener("click", () => { focus(node); toggle(node); });
    items.set(node, listItem);
    updateMarks(node);
    return listItem;
  }

  const isOpen = node => items.get(node).getAttribute("aria-expanded") === "true";

  function open(node) {
    const listItem = items.get(node), left = tree.left[node];
    if (left < 0 || isOpen(node)) return;
    if (!items.has(left)) {
      const level = Number(listItem.getAttribute("aria-level")) + 1;
      listItem.append(element("ul", { role: "group" }, item(left, level), item(left + 1, level)));
    }
    listItem.querySelector(":scope > ul").hidden = false;
    listItem.querySelector(".fold").textContent = "▾";
    listItem.setAttribute("aria-expanded", "true");
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
    root.querySelectorAll('[tabindex="0"]').forEach(listItem => { listItem.tabIndex = -1; });
    items.get(node).tabIndex = 0;
    items.get(node).focus({ preventScroll: true });
    items.get(node).querySelector(".node").scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function updateMarks(node) {
    const listItem = items.get(node);
    listItem.classList.toggle("passed", path.includes(node));
    listItem.classList.toggle("found", isMatch.has(node));
  }

  const updateAllMarks = () => { for (const node of items.keys()) updateMarks(node); };

  // Return the nodes that are not inside a closed node, from top to bottom.
  function visibleNodes() {
    const nodes = [], stack = [0];
    while (stack.length) {
      const node = stack.pop();
      nodes.push(node);
      if (tree.left[node] >= 0 && isOpen(node)) stack.push(tree.left[node] + 1, tree.left[node]);
    }
    return nodes;
  }

  root.addEventListener("keydown", event => {
    const listItem = event.target.closest("[role=treeitem]");
    if (!listItem || event.ctrlKey || event.altKey || event.metaKey) return;
    const node = Number(listItem.dataset.node), nodes = visibleNodes(), position = nodes.indexOf(node), hasChildren = tree.left[node] >= 0;
    const moves = {
      ArrowDown: () => focus(nodes[Math.min(position + 1, nodes.length - 1)]),
      ArrowUp: () => focus(nodes[Math.max(position - 1, 0)]),
      ArrowRight: () => { if (hasChildren && isOpen(node)) focus(tree.left[node]); else open(node); },
      ArrowLeft: () => { if (hasChildren && isOpen(node)) close(node); else if (node) focus(tree.parent[node]); },
      Home: () => focus(0),
      End: () => focus(nodes[nodes.length - 1]),
      Enter: () => toggle(node),
      " ": () => toggle(node),
      "*": () => nodes.filter(other => tree.parent[other] === tree.parent[node]).forEach(open),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  });

  // -- tools ---------------------------------------------------------------------------------------

  const zoomLevel = element("output", {}, "100\u00a0%");
  function zoomBy(step) {
    zoom = Math.min(Math.max(zoom + step, 0.5), 2);
    view.style.setProperty("--zoom", zoom);
    zoomLevel.textContent = `${Math.round(100 * zoom)}\u00a0%`;
  }
  const button = (text, action, label) => element("button", { type: "button", "aria-label": label, onclick: action }, text);

  const searchStatus = element("span", { role: "status" });
  const searchField = element("input", { type: "search", id: "search", placeholder: "feature", size: 14, oninput: search });
  searchField.addEventListener("keydown", event => { if (event.key === "Enter") { event.preventDefault(); moveToMatch(event.shiftKey ? -1 : 1); } });

  function search() {
    const text = searchField.value.trim().toLowerCase();
    matches = [];
    current = -1;
    if (text) tree.parent.forEach((parent, node) => { if (parent >= 0 && data.features[tree.feature[parent]].toLowerCase().includes(text)) matches.push(node); });
    isMatch = new Set(matches);
    searchStatus.textContent = text ? `${formatCount(matches.length / 2, "split uses", "splits use")} it` : "";
    updateAllMarks();
  }

  function moveToMatch(offset) {
    if (!matches.length) return;
    current = (current + offset + matches.length) % matches.length;
    show(matches[current]);
    items.get(matches[current]).querySelector(".node").scrollIntoView({ block: "nearest", inline: "nearest" });
    root.querySelectorAll('[tabindex="0"]').forEach(listItem => { listItem.tabIndex = -1; });
    items.get(matches[current]).tabIndex = 0;
    searchStatus.textContent = `${current + 1} of ${formatCount(matches.length, "node", "nodes")}: ${tree.rule(matches[current])}`;
  }

  const tools = element("div", { class: "tools", role: "group", "aria-label": "Tools for the tree" },
    button("Expand one level", () => visibleNodes().forEach(open)),
    button("Collapse all", () => { [...items.keys()].reverse().forEach(close); }),
    button("−", () => zoomBy(-0.1), "Smaller"), zoomLevel, button("+", () => zoomBy(0.1), "Larger"),
    element("label", { for: "search" }, "Search ", searchField),
    button("Next", () => moveToMatch(1), "Next match"), button("Previous", () => moveToMatch(-1), "Previous match"), searchStatus);

  // -- a row and its path --------------------------------------------------------------------------------------

  const fields = data.features.map((name, j) => {
    const categories = data.categories[j];
    if (!categories) return element("input", { type: "text", inputmode: "decimal", placeholder: "missing", id: `value-${j}` });
    return element("select", { id: `value-${j}` }, element("option", { value: "" }, "missing"),
      ...categories.map((category, code) => element("option", { value: code }, category)));
  });
  const rowChoice = element("select", { id: "picked", onchange: fillFields }, element("option", { value: "" }, "enter values below"),
    ...data.titles.map((title, i) => element("option", { value: i }, title)));
  const answer = element("div", { class: "answer", role: "status", "aria-live": "polite" });
  const fieldArea = element("details", {}, element("summary", {}, "Values of the row"),
    element("div", { class: "fields" }, ...fields.map((field, j) => element("label", { for: field.id }, data.features[j], field))));

  function fillFields() {
    if (rowChoice.value === "") return;
    data.rows[rowChoice.value].forEach((value, j) => { fields[j].value = value === null ? "" : value; });
    follow();
  }

  // Return the values in the fields and null, or null and an error message.
  function readRow() {
    const values = fields.map(field => field.value.trim() === "" ? null : Number(field.value));
    fields.forEach((field, j) => field.setAttribute("aria-invalid", Number.isNaN(values[j])));
    const invalid = values.findIndex(Number.isNaN);
    return invalid < 0 ? [values, null] : [null, `${data.features[invalid]} must be a number or empty, got ${fields[invalid].value}`];
  }

  function follow() {
    const [values, error] = readRow();
    answer.replaceChildren();
    if (error) { path = []; updateAllMarks(); answer.append(error); return; }
    path = tree.path(values);
    const end = path[path.length - 1], nHidden = tree.hiddenLeaves[end];
    show(end);
    updateAllMarks();
    items.get(end).querySelector(".node").scrollIntoView({ block: "nearest", inline: "nearest" });
    const isAveraged = path.some(node => tree.left[node] >= 0 && values[tree.feature[node]] === null && tree.sendsBothWays.has(node));
    answer.append(
      element("b", {}, tree.formatPrediction(end)),
      isAveraged || !tree.numbers?.[end] ? "" : ` by rule ${tree.numbers[end]},`,
      ` at the end of a path of ${formatCount(path.length, "node", "nodes")}, in a node with ${formatCount(tree.rows[end], ...rowNames())}.`,
      nHidden ? ` This page omits ${formatCount(nHidden, "leaf", "leaves")} below this node; the prediction shown is their mean.` : "",
      isAveraged ? " A value is missing at a split where no training row lacked it. The model then averages over both children; the path shown follows the larger one." : "",
      element("ol", {}, ...path.map(node => element("li", {}, `${tree.rule(node)}: ${tree.formatPrediction(node)}`))));
  }

  const form = element("form", { "aria-label": "Path of a row", onsubmit: event => { event.preventDefault(); follow(); } },
    element("div", { class: "tools" }, element("label", { for: "picked" }, "Row ", rowChoice),
      element("button", { type: "submit" }, "Show the path"),
      button("Clear", () => { path = []; answer.replaceChildren(); form.reset(); updateAllMarks(); })),
    fieldArea, answer);

  // -- choice of a tree ----------------------------------------------------------------------------------

  function start(number) {
    tree = trees[number];
    items = new Map();
    path = [];
    root.replaceChildren(item(0, 1));
    tree.open.forEach(open);
    search();
    answer.replaceChildren();
  }

  if (trees.length > 1) {
    const treeChoice = element("select", { id: "chosen", onchange: () => { start(Number(treeChoice.value)); } },
      ...trees.map((choice, i) => element("option", { value: i }, choice.title)));
    container.append(element("div", { class: "tools" }, element("label", { for: "chosen" }, "Show ", treeChoice)));
  }
  container.append(tools, view, element("h3", {}, "Path of a row"), form);
  start(0);
})();
