// ---------------------------------------------------------------- choosing: {node} or {group}

let chosen = null;
const itemOf = which => which.group ? view.of[groups.get(which.group).first] : view.of[which.node];

function choose(which, speak = true) {
  chosen = which;
  document.body.classList.toggle("chosen", !!which);
  const group = which && groups.get(which.group), panel = $("panel");
  panel.replaceChildren(...real([which === null ? overview() : group ? groupView(group) : nodeView(which.node)]));
  panel.scrollTop = 0;
  remember(which, speak);
  if (speak && which) say(group ? `Group ${group.key}, ${many(group.size, "node")}` : spoken(which.node));
  paint();
}

// Open the groups around a node, choose it and bring it into sight.
function visit(i) {
  const hidden = chains[i].filter(key => !open.has(key));
  if (hidden.length) { hidden.forEach(key => open.add(key)); build(); }
  choose({node: i});
  center(view.of[i], Math.max(camera.k, 0.8));
}

// Open the groups around a group, choose it and bring it into sight.
function visitGroup(key) {
  const hidden = around(groups.get(key).parent).filter(other => !open.has(other));
  if (hidden.length) { hidden.forEach(other => open.add(other)); build(); }
  choose({group: key});
  center(itemOf(chosen), Math.max(camera.k, 0.8));
}

// A group and those around it, innermost first.
const around = key => key === undefined ? [] : [key, ...around(groups.get(key).parent)];

function toggle(key, on) {
  const before = itemOf({node: groups.get(key).first});
  const px = view.x[before] - camera.x, py = yOf(before) - camera.y;
  if (on) open.add(key);
  else for (const other of [...open]) if (around(other).includes(key)) open.delete(other);
  build();
  const item = view.of[groups.get(key).first];
  camera.x = view.x[item] - px; camera.y = yOf(item) - py; goal = null;
  found.clear();
  choose(on ? {node: groups.get(key).first} : {group: key});
}

// ---------------------------------------------------------------- pieces of the panel

const real = children => children.flat(9).filter(child => child || child === 0);

// An element; children may be lists, and what is not there is left out.
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...real(children));
  return element;
}
const soft = (...children) => h("p", {class: "soft"}, children);
const note = (...children) => h("p", {class: "note bad"}, children);
// A number, or bytes: in a table it ends where those above and below end.
const isNumber = cell => typeof cell === "number" || /^[\d.,]+( [KMGT]?i?B)?$/.test(cell);
const cellOf = cell => h("td", isNumber(cell) ? {class: "n"} : {}, typeof cell === "number" ? cell.toLocaleString("en") : cell);
const rows = list => list.length > 0 && h("table", {}, list.map(cells => h("tr", {}, cells.map(cellOf))));
const section = (title, ...children) => real(children).length > 0 && [h("h3", {}, title), children];
const link = i => h("button", {class: "link", onclick: () => visit(i)}, titleOf(i));
const whereabouts = i => soft([moduleOf(i), lineOf(i) && lineText(lineOf(i))].filter(Boolean).join(" · "));
const groupLink = g => [h("button", {class: "link", onclick: () => visitGroup(g.key)}, g.title), soft(g.kind, " · ", many(g.size, "node"))];
const facts = pairs => h("dl", {}, real(pairs.map(([name, value]) => value ? [h("dt", {}, name), h("dd", {}, value)] : [])));
const close = () => h("button", {id: "close", "aria-label": "Close details", onclick: () => choose(null)}, "✕");

function overview() {
  const counts = new Map();
  D.name.forEach((_, i) => counts.set(nameOf(i), (counts.get(nameOf(i)) || 0) + 1));
  const heavy = D.bytes.map((n, i) => [n, i]).filter(([n]) => n).sort((a, b) => b[0] - a[0]).slice(0, 8);
  const odd = D.norm.map((n, i) => [n, i]).filter(([n]) => typeof n === "string").slice(0, 4);
  return [
    h("h2", {}, document.title === "graph" ? "The graph" : "The graph behind " + document.title),
    soft(D.ran ? "Choose a node, or press space to watch the gradients travel from the loss to the leaves."
      : "Choose a node. Gradients were not computed (backward=False)."),
    Object.entries(D.errors).slice(0, 3).map(([i, text]) => note("Backward stops at ", link(+i), ": " + cut(text, 700))),
    odd.length > 0 && note("Not finite: the gradient at ", odd.map(([, i]) => [link(i), " "])),
    section("Most memory kept", rows(heavy.map(([n, i]) => [[link(i), whereabouts(i)], bytes(n)]))),
    section("Steps by name", rows([...counts].sort((a, b) => b[1] - a[1]).slice(0, 12))),
    section("Keys", h("p", {}, $("help").textContent)),
  ];
}

function groupView(group) {
  const members = [...group.children], shown = members.slice(0, 200), isOpen = open.has(group.key);
  return [close(), h("h2", {}, group.title), soft(group.kind),
    facts([["nodes", group.size], ["keeps", bytes(group.bytes)]]),
    h("button", {onclick: () => toggle(group.key, !isOpen)}, isOpen ? "Close group" : "Open group"),
    section("In it", rows(shown.map(inner => typeof inner === "string" ? [groupLink(groups.get(inner)), bytes(groups.get(inner).bytes)]
      : [[link(inner), soft(sizeOf(inner))], bytes(D.bytes[inner])]))),
    members.length > shown.length && soft(`and ${members.length - shown.length} more`)];
}

function nodeView(i) {
  const d = detail(i), more = block("more"), line = lineOf(i), leaf = isLeaf(i), outputs = d.outputs || [];
  const opened = chains[i].filter(key => open.has(key)).map((key, k) => [k > 0 && " › ", h("button", {class: "link",
    title: "Close this group", onclick: () => toggle(key, false)}, [groups.get(key).title, groups.get(key).which].filter(Boolean).join(", "))]);
  return [close(), h("h2", {}, titleOf(i)),
    soft(leaf ? "leaf: its gradient ends here, in .grad" : WORDS[KINDS[D.kind[i]]]),
    D.errors[i] && note(D.errors[i]),
    facts([["step", `${i + 1} of ${N}`], ["sequence nr", !leaf && d.sequence],
      ...outputs.map((output, nr) => [leaf ? "shape" : outputs.length > 1 ? `output ${nr}` : "output", kindText(output)]),
      ["in", opened.length ? h("span", {}, opened) : moduleOf(i)], ["keeps", D.bytes[i] && bytes(D.bytes[i])]]),
    gradientView(d),
    !leaf && section("Formula", (more.formulas[nameOf(i)] || []).map(formulaView)),
    section("Saved for backward", (d.saved || []).map(savedView)),
    line && sourceView(line, more.context[D.line[i]], leaf),
    section("Hooks", (d.hooks || []).map(text => h("p", {}, text)), d.hooks && D.ran && soft("Hooks were not run for this page.")),
    section("Gradients come from", neighbours([...intoOf(i)].map(e => D.from[e]))),
    section("Gradients go to", neighbours([...outOf(i)].map(e => D.to[e])))];
}

const kindText = ([shape, dtype]) => `${dtype} [${shape.join(", ")}]`;
const neighbours = ids => [...new Set(ids)].slice(0, 40).map(j => h("p", {}, link(j), h("span", {class: "soft"}, " " + [sizeOf(j), moduleOf(j)].filter(Boolean).join(" · "))));

function formulaView([name, text]) {
  if (text.includes("\n")) return h("details", {}, h("summary", {}, h("code", {}, name)), h("pre", {}, text));
  return h("pre", {}, h("span", {class: "nr"}, `∂ ${name}  =  `), text);
}

function gradientView(d) {
  if (!D.ran) return [];
  if (!d.gradient) return section("Gradient", soft("None arrived."));
  const all = d.arrived || [], here = all.filter(([from]) => from < at).length;
  const first = Math.max(0, Math.min(all.length, here + 20) - 40);  // of very many, those that came last
  const count = at && here < all.length ? `: ${here} of ${all.length} arrived` : all.length > 1 ? `: sum of ${all.length}` : "";
  return section("Gradient" + count,
    d.gradient.map((g, nr) => g && [d.gradient.length > 1 && soft(`of output ${nr}`), numbersView(g, "gradient")]),
    h("table", {"aria-label": "Gradients that arrived"}, all.slice(first, first + 40).map(([from, , came, sum]) =>
      h("tr", {class: from < at || !at ? "" : "waiting"}, h("td", {}, from < 0 ? "the start" : link(from)),
        h("td", {class: "n"}, `‖g‖ ${came}`), h("td", {class: "n"}, `sum ${sum}`)))));
}

function savedView(row) {
  if (row.text !== undefined) return h("p", {}, h("code", {}, `${row.name} = ${row.text}`));
  if (row.tensor === undefined) return h("p", {}, h("code", {}, row.name), row.freed ? " was freed by an earlier backward" : " is packed by hooks");
  const t = tensor(row.tensor), stale = row.now !== undefined, body = h("div");
  const words = [bytes(t.bytes), `version ${row.version}`, stale && `written over since: now version ${row.now}`, row.packed && "packed by hooks",
    row.shared && `memory of ${row.shared}`];
  return h("details", {ontoggle: () => { if (!body.firstChild) body.append(...real(numbersView(t, row.name))); }},
    h("summary", {}, h("code", {}, row.name), ` ${kindText([t.shape, t.dtype])} `,
      h("span", {class: stale ? "bad" : "soft"}, words.filter(Boolean).join(", "))), body);
}

const brief = v => typeof v === "number" && v && Math.abs(v) < 1e-3 ? v.toExponential(1) : v;

// Numbers, their range, a heat map and a histogram.
function numbersView(g, what) {
  if (!g.values) return [soft("empty")];
  const flat = g.values.flat(), top = g.range ? Math.max(...g.range.slice(0, 2).map(Math.abs)) : 0;
  const table = h("table", {class: "m", "aria-label": `Numbers of ${what}`}, g.values.map(row => h("tr", {}, row.map(v => {
    const cell = h("td", {class: typeof v === "string" && !g.complex ? "bad" : ""}, brief(v));
    if (typeof v === "number" && top && flat.length > 1) {
      cell.style.background = `rgba(var(--${v < 0 ? "minus" : "plus"}), ${(Math.abs(v) / top * 0.45).toFixed(3)})`;
    }
    return cell;
  }))));
  const pictures = real([g.map && heatMap(g, what), g.bins && g.bins.length > 1 && histogram(g, what)]), range = g.range || [];
  return [h("div", {class: "wide"}, table), top > 0 && flat.length > 1 && scaleOf(top, g.complex), g.more && soft(`the corner of ${g.more[0]} × ${g.more[1]}`),
    pictures.length > 0 && h("div", {class: "pictures"}, pictures),
    facts([[g.complex ? "size" : "range", g.range && `${range[0]} to ${range[1]}`], ["mean ± std", g.range && `${range[2]} ± ${range[3]}`],
      ["norm", g.range && String(g.norm)], ["zeros", g.zeros], ["not finite", g.bad && h("span", {class: "bad"}, g.bad)]])];
}

function heatMap(g, what) {
  const [w, high, data] = g.map, bytes = atob(data);
  const picture = h("canvas", {width: w, height: high, role: "img", "aria-label": `Heat map of ${what}, red above zero, blue below`});
  const size = Math.max(2, Math.min(14, 150 / Math.max(w, high)));
  picture.style.width = Math.max(14, w * size) + "px"; picture.style.height = Math.max(14, high * size) + "px";  // a vector is one row
  const style = getComputedStyle(document.documentElement), context = picture.getContext("2d"), image = context.createImageData(w, high);
  const [plus, minus] = ["--plus", "--minus"].map(name => style.getPropertyValue(name).split(",").map(Number));
  for (let i = 0; i < bytes.length; i++) {
    const level = bytes.charCodeAt(i), value = (level - 127) / 127, colour = level === 255 ? [255, 0, 255] : value < 0 ? minus : plus;
    image.data.set([...colour, level === 255 ? 255 : Math.abs(value) * 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
  return picture;
}

// What the colours of numbers mean.
const scaleOf = (top, sizes) => h("div", {class: "scale" + (sizes ? " sizes" : ""), role: "img", "aria-label": `Colours: ${sizes ? 0 : -top} to ${top}`},
  h("i"), h("span", {}, sizes ? "0" : String(-top)), !sizes && h("span", {}, "0"), h("span", {}, String(top)));

// How many numbers lie where: the axes say from where to where, and how many the highest bar stands for.
function histogram(g, what) {
  const space = "http://www.w3.org/2000/svg", most = Math.max(...g.bins), left = 8 + 6 * String(most).length, right = left + 130, floor = 66, step = 130 / g.bins.length;
  const make = (tag, values, text = "") => {
    const element = document.createElementNS(space, tag);
    for (const name in values) element.setAttribute(name, values[name]);
    element.textContent = text;
    return element;
  };
  const [low, high] = g.range, xOf = v => left + 130 * (v - low) / (high - low), inner = xOf(0) > left + 62 && xOf(0) < right - 58 ? [[0, "middle"]] : [];
  const svg = make("svg", {width: right + 10, height: 84, role: "img", "aria-label": `Histogram of ${what}, from ${low} to ${high}`});
  g.bins.forEach((n, i) => {
    const tall = n ? Math.max(1, 60 * n / most) : 0;
    svg.append(make("rect", {x: left + i * step, y: floor - tall, width: step - 1, height: tall}));
  });
  svg.append(make("path", {d: `M${left - 3} ${floor - 60}H${left}V${floor}H${right}M${left - 3} ${floor}H${left}`}));
  for (const [n, y] of [[most, floor - 56], [0, floor + 3]]) svg.append(make("text", {x: left - 5, y, "text-anchor": "end"}, n));
  for (const [v, anchor] of [[low, "start"], ...inner, [high, "end"]]) {
    svg.append(make("path", {d: `M${xOf(v)} ${floor}v3`}), make("text", {x: xOf(v), y: floor + 14, "text-anchor": anchor}, brief(v)));
  }
  return svg;
}

function sourceView([file, number, where], [first, lines], leaf) {
  const indent = Math.min(...lines.filter(l => l.trim()).map(l => l.length - l.trimStart().length));
  return section(leaf ? "Used at" : "Made at",
    h("p", {}, file, !where.startsWith("<") && h("span", {class: "soft"}, ` in ${where}`)),
    lines.some(l => l.trim()) && h("pre", {}, lines.map((line, k) => h(first + k === number ? "mark" : "div", {},
      h("span", {class: "nr"}, String(first + k).padStart(4) + "  "), line.slice(indent)))));
}

// ---------------------------------------------------------------- search

function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean), list = $("results"), hits = [];
  found.clear();
  list.hidden = !words.length;
  if (words.length) {
    for (let i = 0; i < N; i++) {
      const line = lineOf(i), all = `${titleOf(i)} ${moduleOf(i)} ${sizeOf(i)} ${line ? lineText(line) + " " + line[3] : ""} step${i + 1}`.toLowerCase();
      if (words.every(word => all.includes(word))) hits.push(i);
    }
    for (const i of hits) found.add(view.of[i]);
    list.replaceChildren(h("p", {}, many(hits.length, "node")), ...hits.slice(0, 60).map(i =>
      h("button", {role: "option", onclick: () => { endSearch(); visit(i); }}, titleOf(i),
        h("small", {}, [sizeOf(i), moduleOf(i), lineOf(i) ? lineText(lineOf(i)) : ""].filter(Boolean).join(" · ")))));
    say(many(hits.length, "node") + " found");
  }
  paint();
}

function endSearch() {
  $("search").value = ""; $("results").hidden = true; found.clear(); paint();
}

function searchKey(event) {
  const options = [...$("results").querySelectorAll("button")], here = options.findIndex(o => o.getAttribute("aria-selected"));
  if (event.key === "Escape") { endSearch(); canvas.focus(); }
  else if (event.key === "Enter" && options.length) options[Math.max(0, here)].click();
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const next = Math.max(0, Math.min(options.length - 1, here + (event.key === "ArrowDown" ? 1 : -1)));
    options.forEach((o, i) => i === next ? (o.setAttribute("aria-selected", "true"), o.scrollIntoView({block: "nearest"})) : o.removeAttribute("aria-selected"));
    event.preventDefault();
  }
}

// ---------------------------------------------------------------- mouse, touch, keys

function hit(px, py) {
  const x = px / camera.k + camera.x, y = py / camera.k + camera.y, r = Math.floor((y + 6) / ROW);
  if (r < 0 || r >= view.ranks.length || y - r * ROW > HEIGHT + 4) return -1;
  for (const item of view.ranks[r]) {
    if (!isBend(item) && Math.abs(x - view.x[item]) <= view.widths[item] / 2 + 3) return item;
  }
  return -1;
}

const whichOf = item => item < 0 ? null : view.items[item].group ? {group: view.items[item].group.key} : {node: view.items[item].node};
const pointers = new Map();
let dragged = 0;

canvas.onpointerdown = event => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, [event.offsetX, event.offsetY]); dragged = 0; goal = null;
};
canvas.onpointermove = event => {
  const before = pointers.get(event.pointerId);
  if (!before) { canvas.style.cursor = hit(event.offsetX, event.offsetY) < 0 ? "grab" : "pointer"; return; }
  const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
  const dx = event.offsetX - before[0], dy = event.offsetY - before[1];
  dragged += Math.abs(dx) + Math.abs(dy);
  if (others.length) {
    const [ox, oy] = others[0], was = Math.hypot(before[0] - ox, before[1] - oy), is = Math.hypot(event.offsetX - ox, event.offsetY - oy);
    zoom(is / (was || 1), (event.offsetX + ox) / 2, (event.offsetY + oy) / 2);
  }
  const share = others.length ? 0.5 : 1;
  camera.x -= dx / camera.k * share; camera.y -= dy / camera.k * share;
  pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
  paint();
};
canvas.onpointerup = event => {
  pointers.delete(event.pointerId);
  if (dragged < 5) choose(whichOf(hit(event.offsetX, event.offsetY)));
};
canvas.onpointercancel = event => pointers.delete(event.pointerId);
canvas.ondblclick = event => {
  const item = hit(event.offsetX, event.offsetY);
  if (item >= 0 && view.items[item].group) toggle(view.items[item].group.key, true);
};
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 20 : 1;
  if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY * unit * 0.01), event.offsetX, event.offsetY);
  else { camera.x += event.deltaX * unit / camera.k; camera.y += event.deltaY * unit / camera.k; goal = null; paint(); }
}, {passive: false});

function walk(down) {
  if (!chosen || chosen.group) { visit(chosen ? groups.get(chosen.group).first : D.roots[0]); return; }
  const [edge] = (down ? outOf : intoOf)(chosen.node);
  if (edge !== undefined) visit((down ? D.to : D.from)[edge]);
}

const keys = {
  " ": () => play(!playing), ArrowRight: () => { play(false); seek(at + 1); }, ArrowLeft: () => { play(false); seek(at - 1); },
  Home: () => seek(0), End: () => seek(N), "/": () => $("search").focus(), f: () => fit(true), F: () => fit(true),
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), ArrowDown: () => walk(true), ArrowUp: () => walk(false),
  Escape: () => choose(null),
  Enter: () => { if (chosen && chosen.group) toggle(chosen.group, !open.has(chosen.group)); },
  c: () => {
    const opened = chosen && !chosen.group ? chains[chosen.node].filter(key => open.has(key)) : [];
    if (opened.length) toggle(opened[opened.length - 1], false);
  },
};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select")) return;
  if (event.target.matches("button, summary") && [" ", "Enter"].includes(event.key)) return;
  if (event.target.closest("#panel") && event.key.startsWith("Arrow") && event.key.match(/Up|Down/)) return;
  const act = keys[event.key];
  if (act) { act(); event.preventDefault(); }
});

// ---------------------------------------------------------------- beginning

function setMode(mode) {
  $("mode").value = mode;
  makeGroups(mode); found.clear(); build(); choose(null); fit();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  readColours();
  if (chosen) choose(chosen, false);
}

function remembered(theme) {
  try { return theme ? localStorage.setItem("pullback-theme", theme) : localStorage.getItem("pullback-theme"); }
  catch { return null; }  // a page opened from disk may have no storage
}

function begin() {
  const leaves = D.kind.filter(kind => kind === 3).length;
  $("facts").textContent = `${many(N - leaves, "node")}, ${many(leaves, "leaf", "leaves")}, ${bytes(D.saved)} kept for backward`;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(remembered() || (dark.matches ? "dark" : "light"));
  dark.onchange = () => { if (!remembered()) setTheme(dark.matches ? "dark" : "light"); };
  $("theme").onclick = () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    remembered(next); setTheme(next);
  };
  const modules = D.modules.some(Boolean);
  if (!modules) $("mode").querySelector("[value=module]").remove();
  if (!D.lines.length) $("mode").querySelector("[value=line]").remove();
  new ResizeObserver(resize).observe(canvas.parentElement);
  wide = canvas.clientWidth; high = canvas.clientHeight;
  setMode(N <= 60 || !(modules || D.lines.length) ? "all" : modules ? "module" : "line");
  resize(); fit();
  $("seek").max = N;
  const usual = N > 300 ? 30 : 4;
  for (const [value, text] of [[1, "1/s"], [4, "4/s"], [10, "10/s"], [30, "30/s"], [200, "200/s"], [2000, "2000/s"]]) {
    $("speed").append(h("option", {value, ...(value === usual && {selected: ""})}, text));
  }
  speed = usual;
  $("speed").onchange = () => { speed = +$("speed").value; };
  $("mode").onchange = () => setMode($("mode").value);
  $("paint").onchange = () => { tint = $("paint").value; legend(); paint(); };
  $("search").oninput = () => search($("search").value);
  $("search").onkeydown = searchKey;
  $("seek").oninput = () => { play(false); seek(+$("seek").value); };
  for (const [id, act] of Object.entries({first: keys.Home, back: keys.ArrowLeft, play: keys[" "], next: keys.ArrowRight,
    last: keys.End, in: keys["+"], out: keys["-"], fit: keys.f, found: keys.f})) $(id).onclick = act;
  seek(0);
  if (location.hash) goTo(location.hash);
  listening = true;
}

// For tests: the same things a hand can do, and what the page measured of itself.
window.explorer = {
  perf, seek, visit, visitGroup, choose, setMode, toggle,
  boxes: () => view.items.map(({title, more}) => [title, more]),
  state: () => ({at, playing, chosen, still: !goal && !dirty, boxes: view.items.length, mode: $("mode").value, ...camera}),
  routes: () => view.edges.map((_, k) => route(k)),
  layout: () => ({x: view.x.slice(0, view.items.length), row: view.row.slice(0, view.items.length), widths: view.widths.slice(0, view.items.length)}),
  where: i => { const item = view.of[i]; return [(view.x[item] - camera.x) * camera.k, (yOf(item) + HEIGHT / 2 - camera.y) * camera.k]; },
};
begin();
