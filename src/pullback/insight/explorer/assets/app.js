// The explorer: a canvas that draws the visible part of the graph, a panel for what is chosen, a player for backward.
const $ = id => document.getElementById(id);
const D = JSON.parse($("data").textContent);
const N = D.name.length, KINDS = ["op", "view", "function", "leaf"];
const perf = {layout: 0, firstPaint: 0, draw: 0};

// ---------------------------------------------------------------- data

const blocks = new Map();
function block(id) {
  if (!blocks.has(id)) blocks.set(id, JSON.parse($(id).textContent));
  return blocks.get(id);
}
const detail = i => block("d" + Math.floor(i / D.block))[i % D.block];
const tensor = i => block("t" + Math.floor(i / D.block))[i % D.block];

const nameOf = i => D.names[D.name[i]], sizeOf = i => D.sizes[D.size[i]], isLeaf = i => D.kind[i] === 3;
const labelOf = i => D.label[i] || "";
const titleOf = i => !labelOf(i) ? nameOf(i) : isLeaf(i) ? labelOf(i) : `${labelOf(i)} = ${nameOf(i)}`;
const moduleOf = i => D.modules[D.module[i]];
const lineOf = i => D.line[i] < 0 ? null : D.lines[D.line[i]];
const lineText = line => line[4];
// As size_text of insight/report.py says it.
function bytes(n) {
  if (n < 1024) return `${n} B`;
  const step = Math.min(4, Math.floor(Math.log2(n) / 10));
  return `${(n / 1024 ** step).toFixed(1)} ${"KMGT"[step - 1]}iB`;
}
const many = (n, word, words = word + "s") => `${n.toLocaleString("en")} ${n === 1 ? word : words}`;
const cut = (text, n) => text.length > n ? text.slice(0, n - 1) + "…" : text;

// The edges at one of their ends: which leave a node, which lead to it.
function adjacency(ends) {
  const first = new Int32Array(N + 1), edges = new Int32Array(ends.length);
  for (const i of ends) first[i + 1]++;
  for (let i = 0; i < N; i++) first[i + 1] += first[i];
  const next = first.slice();
  ends.forEach((i, e) => { edges[next[i]++] = e; });
  return i => edges.subarray(first[i], first[i + 1]);
}
const outOf = adjacency(D.from), intoOf = adjacency(D.to), isRoot = new Set(D.roots);
const expected = i => intoOf(i).length + isRoot.has(i);

// ---------------------------------------------------------------- groups: calls within calls of modules, or lines

const FEW = 6, SOME = 60;  // boxes that are too few to begin with, and those that are too many
let groups = new Map(), chains = [], open = new Set();

// The keys of the groups around a node, outermost first; calls of modules have theirs from explorer/calls.py.
function chainOf(i, mode) {
  if (mode === "all") return [];
  const chain = [];
  if (mode === "module") for (let c = D.call[i]; c >= 0; c = D.calls[c][4]) chain.unshift(D.calls[c][0]);
  return chain.length || D.line[i] < 0 ? chain : ["line " + D.line[i]];
}

function makeGroups(mode) {
  groups = new Map(); open = new Set();
  const cache = new Map(), calls = new Map(D.calls.map(call => [call[0], call])), keyOf = i => D.call[i] + "," + D.line[i];
  chains = D.name.map((_, i) => {
    const key = keyOf(i);
    if (!cache.has(key)) cache.set(key, chainOf(i, mode));
    return cache.get(key);
  });
  chains.forEach((chain, i) => chain.forEach((key, depth) => {
    let group = groups.get(key);
    if (!group) {
      group = {key, first: i, size: 0, bytes: 0, norm: 0, parent: chain[depth - 1], children: new Set()};
      const line = key.startsWith("line ") && D.lines[key.slice(5)], [, path, ...kind] = calls.get(key) || [];
      group.title = line ? cut(line[3] || lineText(line), 36) : path;
      group.which = kind[1];  // call 3 of 200
      group.kind = line ? lineText(line) : kind.slice(0, 2).filter(Boolean).join(" · ");
      groups.set(key, group);
    }
    group.size++; group.bytes += D.bytes[i];
    if (isFinite(D.norm[i])) group.norm = Math.max(group.norm, D.norm[i]);  // the largest stands for all
  }));
  // A group of one node, or of all the nodes of the group around it, tells nothing.
  const idle = g => g.size === 1 || (g.parent && groups.get(g.parent).size === g.size);
  const dropped = new Set([...groups.values()].filter(idle).map(g => g.key));
  for (const key of dropped) groups.delete(key);
  for (const [key, chain] of cache) cache.set(key, chain.filter(k => !dropped.has(k)));
  chains = D.name.map((_, i) => cache.get(keyOf(i)));
  for (const [key, group] of groups) {
    const chain = chains[group.first];
    group.parent = chain[chain.indexOf(key) - 1];
  }
  chains.forEach((chain, i) => chain.forEach((key, k) => groups.get(key).children.add(chain[k + 1] || i)));
  openSome();
}

// The outermost modules are open, what is inside them is folded; further in only where next to nothing would show.
function openSome() {
  let shown = new Set(chains.map((chain, i) => chain[0] || i)).size;
  for (let level = [...groups.values()].filter(g => !g.parent); level.length && shown < FEW; ) {
    const next = [];
    for (const g of level) {
      const inner = [...g.children].filter(child => typeof child === "string");
      if (!inner.length || shown + g.children.size - 1 > SOME) continue;
      open.add(g.key); shown += g.children.size - 1;
      next.push(...inner.map(key => groups.get(key)));
    }
    level = next;
  }
}

const closedGroup = i => chains[i].find(key => !open.has(key));

// ---------------------------------------------------------------- the view: boxes, edges between them, their places

let view;

function build() {
  const begun = performance.now(), items = [], of = new Int32Array(N), index = new Map();
  for (let i = 0; i < N; i++) {
    const key = closedGroup(i);
    let item = key === undefined ? undefined : index.get(key);
    if (item === undefined) {
      item = items.length;
      const group = key === undefined ? null : groups.get(key);
      const title = group ? group.title : cut(titleOf(i), 48);
      const more = group ? [group.kind, many(group.size, "node")].filter(Boolean).join(" · ") : sizeOf(i);
      items.push({node: group ? -1 : i, group, title, more, kind: group ? "group" : KINDS[D.kind[i]],
        out: 0, size: group ? group.size : 1, bad: false});
      if (group) index.set(key, item);
    }
    of[i] = item;
    if (D.errors[i] || typeof D.norm[i] === "string") items[item].bad = true;
  }
  const byPair = new Map(), edges = [], edgeOf = new Int32Array(D.from.length).fill(-1);
  D.from.forEach((a, e) => {
    const from = of[a], to = of[D.to[e]], pair = from * items.length + to;
    if (from === to) return;
    if (!byPair.has(pair)) { byPair.set(pair, edges.length); edges.push([from, to, e]); }
    edgeOf[e] = byPair.get(pair);
  });
  const order = edges.map((_, k) => k).sort((a, b) => edges[a][0] - edges[b][0]), rank = new Int32Array(edges.length);
  order.forEach((old, k) => { rank[old] = k; });
  edgeOf.forEach((k, e) => { if (k >= 0) edgeOf[e] = rank[k]; });
  const sorted = order.map(k => edges[k]);
  const place = arrange(items.map(item => textWidth(item.title + (item.group ? "  +" : ""), item.more)), sorted);
  sorted.forEach(edge => edge.push(items[edge[0]].out++));  // [from, to, one of its edges, which of the box's edges]
  view = {items, of, edges: sorted, edgeOf, ...place, around: [], segments: place.ranks.map(() => []),
    into: items.map(() => []), sent: new Int32Array(sorted.length), done: new Int32Array(items.length)};
  // What is drawn below each row, [upper, lower, edge or -1 for the line all edges to a box share, box]
  view.bends.forEach((line, b) => line.forEach((bend, n) => view.segments[view.row[bend]].push([bend, line[n + 1] || b, -1, b])));
  sorted.forEach(([a, b], k) => {
    const bends = bendsOf(a, b);
    view.into[b].push(k);
    if (bends) view.segments[view.row[a]].push([a, bends.length ? bends[0] : b, k, b]);
    else view.around.push(k);
  });
  for (const rank of view.ranks) rank.sort((a, b) => view.x[a] - view.x[b]);
  let right = 0;
  view.x.forEach((x, i) => { right = Math.max(right, x + view.widths[i] / 2); });
  view.width = right; view.height = (view.ranks.length - 1) * ROW + HEIGHT;
  perf.layout = performance.now() - begun;
  recount(); legend();
}

const yOf = item => view.row[item] * ROW, isBend = item => item >= view.items.length;

// As in layout.py: the bends of an edge, null if it goes around everything.
function bendsOf(a, b) {
  const between = view.row[b] - view.row[a] - 1, line = view.bends[b];
  return between >= 0 && between <= line.length ? line.slice(line.length - between) : null;
}

// As in layout.py: the corners of an edge, between two rows only if they are given.
function route(k, r0 = 0, r1 = Infinity) {
  const [a, b] = view.edges[k], bends = bendsOf(a, b), first = start(a, k), last = end(b);
  if (bends) {
    const spots = [first, ...bends.flatMap(bend => [end(bend), start(bend)]), last];
    const from = Math.max(0, 2 * (r0 - view.row[a])), to = 2 * (r1 - view.row[a]) + 4;
    return {around: false, spots: spots.slice(from, Math.max(from, to))};
  }
  const lane = (b % LANES + 1) * LANE, side = last[1] > first[1] ? -lane : view.width + lane, high = first[1] + TURN, low = last[1] - TURN;
  return {around: true, spots: [first, [first[0], high], [side, high], [side, low], [last[0], low], last]};
}

// ---------------------------------------------------------------- the player: how far the backward pass has come

let at = 0, playing = false, speed = 4, owed = 0;
const arrived = new Int32Array(N);

function recount() {
  view.sent.fill(0); view.done.fill(0); arrived.fill(0);
  D.roots.forEach(i => { arrived[i]++; });
  for (let i = 0; i < at; i++) move(i, 1);
}

// Node i has run (sign 1) or not yet (sign -1): its gradients have reached the nodes below.
function move(i, sign) {
  view.done[view.of[i]] += sign;
  for (const e of outOf(i)) {
    if (D.ran && D.flow[e] === null) continue;
    arrived[D.to[e]] += sign;
    if (view.edgeOf[e] >= 0) view.sent[view.edgeOf[e]] += sign;
  }
}

function seek(to, watch = true) {
  to = Math.max(0, Math.min(N, to));
  while (at < to) move(at++, 1);
  while (at > to) move(--at, -1);
  $("seek").value = at;
  const i = at - 1;
  $("step").textContent = at ? `${at} of ${N}: ${titleOf(i)}` : `0 of ${N}: before backward`;
  if (at && watch) {
    if (!playing || speed <= 10) choose({node: i}, false);
    else chosen = {node: i};
    follow(view.of[i]);
  }
  if (!playing) say(at ? `Step ${at} of ${N}. ${spoken(i)}` : "Before the backward pass.");
  paint();
}

function spoken(i) {
  const norm = D.norm[i] === null ? "" : `, gradient norm ${D.norm[i]}`;
  return `${titleOf(i)}, ${sizeOf(i)}${norm}`;
}

function play(on) {
  if (on && at === N) seek(0);
  playing = on; owed = 0;
  $("play").textContent = on ? "❚❚" : "▶";
  $("play").setAttribute("aria-label", on ? "Pause" : "Play the backward pass");
  if (on) { lastTime = 0; paint(); } else if (at) choose({node: at - 1}, false);
}

const say = text => { $("live").textContent = text; };

// ---------------------------------------------------------------- camera

const canvas = $("graph"), pen = canvas.getContext("2d");
const camera = {x: 0, y: 0, k: 1}, calm = matchMedia("(prefers-reduced-motion: reduce)");
let goal = null, wide = 1, high = 1, dirty = false, lastTime = 0;

function resize() {
  const scale = window.devicePixelRatio || 1;
  wide = canvas.clientWidth; high = canvas.clientHeight;
  canvas.width = Math.round(wide * scale); canvas.height = Math.round(high * scale);
  paint();
}

// Everything, or, where that would be too small to read, the loss and what follows.
function fit(all) {
  const k = Math.min(1.1, (wide - 40) / view.width, (high - 60) / view.height), root = view.of[D.roots[0]];
  camera.k = all || k >= 0.45 ? k : Math.min(0.8, Math.max(0.45, (wide - 40) / view.width));
  const [x, y] = camera.k === k ? [view.width / 2, view.height / 2] : [view.x[root], (high / 2 - 30) / camera.k];
  camera.x = x - wide / 2 / camera.k; camera.y = y - high / 2 / camera.k;
  goal = null; paint();
}

function zoom(factor, px = wide / 2, py = high / 2) {
  const k = Math.max(0.002, Math.min(4, camera.k * factor));
  camera.x += px / camera.k - px / k; camera.y += py / camera.k - py / k;
  camera.k = k; goal = null; paint();
}

function center(item, k = camera.k) {
  goal = {x: view.x[item] - wide / 2 / k, y: yOf(item) + HEIGHT / 2 - high / 2 / k, k};
  if (calm.matches) { Object.assign(camera, goal); goal = null; }
  paint();
}

function follow(item) {
  const {x: left, y: top, k} = goal || camera, x = (view.x[item] - left) * k, y = (yOf(item) - top) * k;  // as it will be
  if (k < 0.3) center(item, 0.8);
  else if (x < wide * 0.15 || x > wide * 0.85 || y < high * 0.15 || y > high * 0.75) center(item, k);
}

// ---------------------------------------------------------------- drawing

const SMALL = "11px system-ui, sans-serif";
let colours = {}, tint = "kind", found = new Set();

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["page", "card", "ink", "soft", "edge", "flow", "now", "bad", "accent", "rule",
    ...[...KINDS, "group"].flatMap(kind => [kind, kind + "-rim"])]) colours[name] = style.getPropertyValue("--" + name);
  if (view) view.map = null;
  legend();
  paint();
}

const WORDS = {op: "operation", view: "view", function: "custom Function", leaf: "leaf", group: "group"};

function legend() {
  const used = new Set(view ? view.items.map(item => item.kind) : []), kinds = KINDS.concat("group").filter(kind => used.has(kind));
  $("legend").replaceChildren(...(tint === "kind" ? kinds.map(kind => {
    const swatch = h("i");
    swatch.style.cssText = `background:var(--${kind});border-color:var(--${kind}-rim)`;
    return h("span", {}, swatch, WORDS[kind]);
  }) : scale()));
}

// What the colours mean: the ends of the scale, as they are in this picture.
function scale() {
  const [low, top] = weigh(), word = tint === "memory" ? "bytes kept" : "gradient norm (logarithmic)";
  if (!top) return [`${word}: none`];
  return [h("span", {}, `${word}: ${tint === "memory" ? bytes(0) : shortly(low)}`, h("i", {class: "bar"}), tint === "memory" ? bytes(top) : shortly(top))];
}
const shortly = v => String(+v.toPrecision(3));

// 0 to 1 for each box: how large its gradient is, or how much it saved.
function weigh() {
  if (!view) return [];
  const values = view.items.map(({group, node}) => tint === "memory" ? (group ? group.bytes : D.bytes[node]) : group ? group.norm : +D.norm[node] || 0);
  let low = Infinity, top = 0;
  for (const v of values) if (v > 0 && isFinite(v)) { low = Math.min(low, v); top = Math.max(top, v); }
  view.heat = values.map(v => v <= 0 ? 0 : tint === "memory" ? v / top : 0.1 + 0.9 * Math.log(v / low) / (Math.log(top / low) || 1));
  return [low, top];
}

function paint() {
  if (!dirty) { dirty = true; requestAnimationFrame(frame); }
}

function frame(time) {
  dirty = false;
  const passed = lastTime ? Math.min(time - lastTime, 250) : 16;
  lastTime = time;
  if (playing) {
    owed += speed * passed / 1000;
    const steps = Math.floor(owed);
    if (steps) { owed -= steps; seek(at + steps); }
    if (at === N) play(false);
  }
  if (goal) {
    const part = 1 - Math.pow(0.002, passed / 1000 * 1.6);
    for (const name of ["x", "y", "k"]) camera[name] += (goal[name] - camera[name]) * part;
    if (Math.abs(goal.x - camera.x) + Math.abs(goal.y - camera.y) < 0.5 / camera.k) { Object.assign(camera, goal); goal = null; }
  }
  const begun = performance.now();
  draw();
  drawMap();
  perf.draw = performance.now() - begun;
  if (!perf.firstPaint) perf.firstPaint = performance.now();
  if (playing || goal) paint();
}

// From where the path is.
function curve(path, [x1, y1], [x2, y2]) {
  const half = (y2 - y1) / 2;
  if (camera.k < 0.2) path.lineTo(x2, y2);
  else path.bezierCurveTo(x1, y1 + half, x2, y2 - half, x2, y2);
}

function trace(path, {around, spots}) {
  const skip = 1 + Math.floor(spots.length / 4000);  // where so many are in sight, they are less than a pixel apart
  spots.forEach((spot, n) => {
    if (!n) path.moveTo(...spot);
    else if (around || n % 2 === 0) path.lineTo(...spot);
    else if (n % skip === 0 || n === spots.length - 1) curve(path, spots[n - 1], spot);
  });
}

// Where an edge leaves a box or bend, and where it comes in.
function start(item, k) {
  if (isBend(item)) return [view.x[item], yOf(item) + HEIGHT];
  const {out} = view.items[item], gap = Math.min(16, view.widths[item] / (out + 1));
  return [view.x[item] + (view.edges[k][3] - (out - 1) / 2) * gap, yOf(item) + HEIGHT];
}
const end = item => [view.x[item], yOf(item)];

function draw() {
  const scale = canvas.width / wide, {x: cx, y: cy, k} = camera;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, wide, high);
  pen.setTransform(scale * k, 0, 0, scale * k, -cx * k * scale, -cy * k * scale);
  const left = cx, right = cx + wide / k, top = cy, bottom = cy + high / k;
  const r0 = Math.max(0, Math.floor(top / ROW) - 1), r1 = Math.min(view.ranks.length - 1, Math.floor(bottom / ROW));
  const skip = Math.max(1, Math.floor((r1 - r0) / high));  // where rows are less than a pixel apart
  drawEdges(r0, r1, skip, left, right, top, bottom);
  const focus = chosen ? itemOf(chosen) : -1, now = at ? view.of[at - 1] : -1;
  let shown = 0;
  pen.textBaseline = "middle";
  for (let r = r0; r <= r1; r += skip) {
    const rank = view.ranks[r], from = rank.length > 64 ? firstRight(rank, left) : 0;
    const close = rank.length > 64 ? Math.max(1, Math.floor(1 / (60 * k))) : 1;
    for (let n = from; n < rank.length; n += close) {
      const item = rank[n];
      if (isBend(item)) continue;
      const x = view.x[item] - view.widths[item] / 2;
      if (x > right) break;
      if (x + view.widths[item] < left) continue;
      drawBox(item, x, r * ROW, k, item === focus, item === now);
      shown += r * ROW + HEIGHT > top;
    }
  }
  $("lost").hidden = shown > 0;
}

function firstRight(rank, left) {
  let low = 0, high = rank.length;
  while (low < high) {
    const mid = (low + high) >> 1, item = rank[mid];
    if (view.x[item] + view.widths[item] / 2 < left) low = mid + 1; else high = mid;
  }
  return low;
}

function drawEdges(r0, r1, skip, left, right, top, bottom) {
  const k = camera.k, [plain, sent, now, loops] = Array.from({length: 4}, () => new Path2D());
  if (view.reachedAt !== at) { view.reachedAt = at; view.reached = new Map(); }
  const {reached} = view;
  // The highest row from which a gradient has come to the line that leads down to box b.
  const reach = b => {
    if (!reached.has(b)) reached.set(b, view.into[b].reduce((least, e) => view.sent[e] ? Math.min(least, view.row[view.edges[e][0]]) : least, Infinity));
    return reached.get(b);
  };
  for (let r = Math.max(0, r0 - 1); r <= r1; r += skip) {
    const all = view.segments[r], crowded = all.length > 500;  // then only edges with both ends in sight, and not all
    for (let n = 0; n < all.length; n += crowded && k < 0.1 ? Math.ceil(all.length / 500) : 1) {
      const [a, b, e, box] = all[n];
      const low = Math.min(view.x[a], view.x[b]), top = Math.max(view.x[a], view.x[b]);
      if (crowded ? low < left || top > right : top < left || low > right) continue;
      const path = (e < 0 ? reach(box) < r : view.sent[e]) ? sent : plain;
      path.moveTo(...start(a, e));
      curve(path, start(a, e), end(b));
      if (isBend(b)) path.lineTo(...start(b));
    }
  }
  let room = 1200;  // so many ways around at most: more are a grey field
  for (const e of view.around) {
    const [a, b] = view.edges[e];
    if (--room >= 0) trace(yOf(b) <= yOf(a) ? loops : view.sent[e] ? sent : plain, route(e));
  }
  const current = at ? [...new Set([...outOf(at - 1)].map(e => view.edgeOf[e]).filter(e => e >= 0))] : [];
  for (const e of current.slice(0, room)) trace(now, route(e, r0 - 1, r1));
  pen.lineWidth = Math.max(1.2, 0.7 / k);
  pen.strokeStyle = colours.edge; pen.stroke(plain);
  pen.setLineDash([6, 4]); pen.stroke(loops); pen.setLineDash([]);
  pen.strokeStyle = colours.flow; pen.stroke(sent);
  pen.lineWidth = Math.max(2.6, 1.6 / k);
  pen.strokeStyle = colours.now; pen.stroke(now);
  if (k < 0.5) return;
  Object.assign(pen, {font: SMALL, fillStyle: colours.now, strokeStyle: colours.page, lineWidth: 4, textAlign: "left"});
  for (const e of current) {
    const norm = D.flow[view.edges[e][2]], [x, y] = end(view.edges[e][1]);
    if (norm !== null && x > left && x < right) for (const how of ["strokeText", "fillText"]) pen[how]("‖g‖ " + norm, x + 6, y - 9);
  }
}

function drawBox(item, x, y, k, focus, now) {
  const box = view.items[item], w = view.widths[item], done = view.done[item] / box.size;
  pen.globalAlpha = found.size && !found.has(item) && !focus ? 0.3 : 1;
  pen.fillStyle = colours[box.kind];
  pen.strokeStyle = box.bad ? colours.bad : now ? colours.now : colours[box.kind + "-rim"];
  pen.lineWidth = now ? 3 : box.bad ? 2 : 1.2;
  if (k < 0.12) {
    pen.fillStyle = now ? colours.now : done === 1 ? colours.flow : colours[box.kind + "-rim"];
    pen.fillRect(x, y, Math.max(w, 2 / k), Math.max(HEIGHT, 1.5 / k));
    pen.globalAlpha = 1;
    return;
  }
  pen.beginPath();
  if (box.group) { pen.roundRect(x + 5, y - 4, w - 10, HEIGHT, 8); pen.fill(); pen.stroke(); pen.beginPath(); }
  pen.roundRect(x, y, w, HEIGHT, box.kind === "leaf" ? HEIGHT / 2 : 8);
  pen.fill();
  if (tint !== "kind") {
    const alpha = pen.globalAlpha;
    pen.globalAlpha = alpha * view.heat[item] * 0.75; pen.fillStyle = colours.flow; pen.fill(); pen.globalAlpha = alpha;
  }
  pen.stroke();
  if (focus) {
    pen.beginPath(); pen.roundRect(x - 4, y - 4, w + 8, HEIGHT + 8, box.kind === "leaf" ? HEIGHT / 2 + 4 : 11);
    pen.strokeStyle = colours.accent; pen.lineWidth = 2; pen.stroke();
  }
  const part = box.group ? done : done ? 1 : Math.min(1, arrived[box.node] / (expected(box.node) || 1));
  if (at && part > 0) {
    pen.fillStyle = now ? colours.now : colours.flow;
    pen.globalAlpha *= done === 1 || box.group ? 1 : 0.55;
    pen.fillRect(x + 14, y + HEIGHT - 4, (w - 28) * part, 3);
    pen.globalAlpha = 1;
  }
  if (k < 0.28) { pen.globalAlpha = 1; return; }
  pen.textAlign = "center";
  pen.fillStyle = colours.ink; pen.font = "600 12px system-ui, sans-serif";
  pen.fillText(box.title, x + w / 2, y + 14, w - 10);
  if (tint === "kind") pen.fillStyle = colours.soft;
  pen.font = SMALL;
  pen.fillText(box.more, x + w / 2, y + 28, w - 10);
  if (box.node >= 0 && D.hooks[box.node]) { pen.fillStyle = colours.accent; pen.fillText("⚓", x + w + 7, y + 5); }
  if (box.group) { pen.fillStyle = colours.soft; pen.fillText("+", x + w - 10, y + 11); }
  pen.globalAlpha = 1;
}
