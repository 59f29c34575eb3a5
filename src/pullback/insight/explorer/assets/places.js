// Where the reader is: the map of the whole graph, the way back from an empty canvas, the address of what is chosen.

// ---------------------------------------------------------------- the map

const chart = $("map"), chartPen = chart.getContext("2d"), MAP = 150, LEAST = 34;  // its sides in pixels

// The graph in small, drawn once for each layout: rows and columns are scaled apart where it is much longer than wide.
function makeMap() {
  const [w, h] = [view.width, view.height].map(side => Math.round(Math.max(LEAST, side * MAP / Math.max(view.width, view.height))));
  const picture = document.createElement("canvas"), pen = picture.getContext("2d"), sx = w / view.width, sy = h / view.height;
  picture.width = 2 * w; picture.height = 2 * h;
  pen.scale(2, 2);
  const step = Math.ceil(view.items.length / 2000);
  for (let i = 0; i < view.items.length; i += step) {
    const wide = Math.max(1.5, view.widths[i] * sx);
    pen.fillStyle = colours[view.items[i].kind + "-rim"];
    pen.fillRect(view.x[i] * sx - wide / 2, yOf(i) * sy, wide, Math.max(1, HEIGHT * sy));
  }
  chart.width = 2 * w; chart.height = 2 * h;
  chart.style.width = w + "px"; chart.style.height = h + "px";
  view.map = {picture, w, h, sx, sy};
}

function drawMap() {
  const left = camera.x, top = camera.y, right = left + wide / camera.k, bottom = top + high / camera.k;
  chart.hidden = left <= 0 && top <= 0 && right >= view.width && bottom >= view.height;
  if (chart.hidden) return;
  if (!view.map) makeMap();
  const {picture, w, h, sx, sy} = view.map, inside = (v, most) => Math.max(1, Math.min(most - 1, v));
  chartPen.setTransform(1, 0, 0, 1, 0, 0);
  chartPen.clearRect(0, 0, 2 * w, 2 * h);
  chartPen.drawImage(picture, 0, 0);
  chartPen.scale(2, 2);
  const x = inside(left * sx, w - 3), y = inside(top * sy, h - 3);
  Object.assign(chartPen, {lineWidth: 1.5, strokeStyle: colours.accent});
  chartPen.strokeRect(x, y, Math.max(3, inside(right * sx, w) - x), Math.max(3, inside(bottom * sy, h) - y));
  const here = chosen ? itemOf(chosen) : at ? view.of[at - 1] : -1;
  if (here >= 0) { chartPen.fillStyle = colours.now; chartPen.beginPath(); chartPen.arc(view.x[here] * sx, yOf(here) * sy, 2.5, 0, 7); chartPen.fill(); }
}

chart.onpointerdown = chart.onpointermove = event => {
  if (!event.buttons || !view.map) return;
  chart.setPointerCapture(event.pointerId);
  camera.x = event.offsetX / view.map.sx - wide / 2 / camera.k; camera.y = event.offsetY / view.map.sy - high / 2 / camera.k;
  goal = null; paint();
};

// ---------------------------------------------------------------- the address: what is chosen, so that Back works and links can be shared

let listening = false;

const addressOf = which => "#" + new URLSearchParams({mode: $("mode").value,
  ...(which && (which.group ? {group: which.group} : {node: which.node + 1}))});

// A step of the reader's is a step for Back; one of the player's only changes the address.
function remember(which, step) {
  if (!listening || playing || addressOf(which) === location.hash) return;
  try { history[step ? "pushState" : "replaceState"](null, "", addressOf(which)); }
  catch { listening = false; }  // a page inside a notebook has no address
}

function goTo(address) {
  const to = new URLSearchParams(address.slice(1)), mode = to.get("mode"), node = to.get("node") - 1, group = to.get("group");
  listening = false;
  if (mode && mode !== $("mode").value && $("mode").querySelector(`[value="${CSS.escape(mode)}"]`)) setMode(mode);
  if (node >= 0 && node < N) visit(Math.floor(node));
  else if (groups.has(group)) visitGroup(group);
  else choose(null);
  listening = true;
}

window.onpopstate = () => goTo(location.hash);
