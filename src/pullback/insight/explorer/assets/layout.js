// Where the boxes of a graph stand. insight/explorer/layout.py does the same for pictures; see there for the method.
const ROW = 84, HEIGHT = 40, GAP = 28, BEND = 14, LANE = 8, LANES = 6, TURN = 14, SWEEPS = 4, PULL = 3, STRAIGHTEN = 4, ASIDE = 300;

const textWidth = (title, ...more) => 26 + Math.max(7.6 * title.length, ...more.map(text => 6.4 * text.length));

function arrange(given, edges) {
  const count = given.length, widths = [...given], row = new Array(count).fill(0), longest = new Array(count).fill(0);
  const order = orderOf(count, edges);
  for (const [a, b] of [...edges].sort((e, f) => order[e[0]] - order[f[0]])) if (order[b] > order[a] && row[b] <= row[a]) row[b] = row[a] + 1;
  for (const [a, b] of edges) longest[b] = Math.max(longest[b], row[b] - row[a] - 1);
  const above = [], below = [], bends = [];
  for (let i = 0; i < count; i++) { above.push([]); below.push([]); bends.push([]); }
  let budget = 4 * count + 1000;
  for (const b of longest.map((_, i) => i).sort((i, j) => longest[i] - longest[j])) {
    if (longest[b] > budget) break;
    budget -= longest[b];
    for (let step = 0; step < longest[b]; step++) {
      const bend = widths.length;
      widths.push(BEND); row.push(row[b] - longest[b] + step);
      above.push(step ? [bend - 1] : []); below.push([step < longest[b] - 1 ? bend + 1 : b]);
      bends[b].push(bend);
    }
    if (longest[b]) above[b].push(widths.length - 1);
  }
  for (const [a, b] of edges) {
    const span = row[b] - row[a];
    if (order[b] <= order[a] || span - 1 > bends[b].length) continue;
    const to = span === 1 ? b : bends[b][bends[b].length - span + 1];
    below[a].push(to);
    if (span === 1 || span - 1 === bends[b].length) above[to].push(a);
  }
  const ranks = firstRows(row, below);
  sortRows(ranks, above, below, widths.length);
  const x = spread(ranks, above, below, widths, count);
  let left = Infinity;
  for (let i = 0; i < x.length; i++) left = Math.min(left, x[i] - widths[i] / 2);
  return {x: x.map(v => v - left), row, widths, bends, ranks};
}

function orderOf(count, edges) {
  const order = new Array(count).fill(0).map((_, i) => i), to = order.map(() => []), seen = order.map(() => false);
  if (edges.every(([a, b]) => a < b)) return order;
  for (const [a, b] of [...edges].reverse()) to[a].push(b);
  for (let first = 0, free = count; first < count; first++) {
    for (const path = seen[first] ? [] : [first]; path.length; ) {
      const item = path[path.length - 1], ways = to[item];
      seen[item] = true;
      while (ways.length && seen[ways[ways.length - 1]]) ways.pop();
      if (ways.length) path.push(ways.pop());
      else { path.pop(); order[item] = --free; }
    }
  }
  return order;
}

function firstRows(row, below) {
  const members = [], ranks = [];
  row.forEach((r, item) => { while (members.length <= r) members.push([]); members[r].push(item); });
  for (const rank of members) {
    const met = new Set(ranks.length ? ranks[ranks.length - 1].flatMap(item => below[item]) : []);
    ranks.push([...met, ...rank.filter(item => !met.has(item))]);
  }
  return ranks;
}

function mean(items, of, otherwise) {
  if (!items.length) return otherwise;
  let total = 0;
  for (const item of items) total += of[item];
  return total / items.length;
}

function* turns(ranks, up) {
  if (up) for (let i = ranks.length - 1; i >= 0; i--) yield ranks[i];
  else yield* ranks;
}

function sortRows(ranks, above, below, count) {
  const place = new Array(count).fill(0), key = new Array(count);
  for (const rank of ranks) rank.forEach((item, i) => { place[item] = i; });
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const near = sweep % 2 ? below : above;
    for (const rank of turns(ranks, sweep % 2)) {
      if (rank.length < 2) continue;
      for (const item of rank) key[item] = mean(near[item], place, place[item]);
      rank.sort((a, b) => key[a] - key[b]);
      rank.forEach((item, i) => { place[item] = i; });
    }
  }
}

function chainsOf(ranks, above, below, count) {
  const filled = value => new Array(below.length).fill(value), chains = [];
  const height = filled(1), lead = filled(-1), follow = filled(-1), length = filled(1), chain = filled(-1);
  for (const rank of turns(ranks, true)) {
    for (const item of rank) {
      for (const to of below[item]) {
        const best = lead[item];
        if (best < 0 || height[to] > height[best] || (height[to] === height[best] && to < count && count <= best)) lead[item] = to;
      }
      if (lead[item] >= 0) height[item] = height[lead[item]] + 1;
    }
  }
  for (const item of ranks.flat()) {
    for (const a of above[item]) {
      if (lead[a] === item && (follow[item] < 0 || length[a] > length[follow[item]])) follow[item] = a;
    }
    if (follow[item] < 0) { chain[item] = chains.length; chains.push([]); }
    else { chain[item] = chain[follow[item]]; length[item] = length[follow[item]] + 1; }
    chains[chain[item]].push(item);
  }
  return chains;
}

function spread(ranks, above, below, widths, count) {
  const x = new Array(widths.length).fill(0), weight = new Array(widths.length).fill(1);
  for (const rank of ranks) {
    let end = 0;
    for (const item of rank) { x[item] = end + widths[item] / 2; end += widths[item] + GAP; }
    for (const item of rank) x[item] -= (end - GAP) / 2;
  }
  for (let sweep = 0; sweep <= 2 * SWEEPS; sweep++) {
    const near = sweep % 2 ? below : above;
    for (const rank of turns(ranks, sweep % 2)) settle(rank, rank.map(item => mean(near[item], x, x[item])), weight, widths, x);
  }
  const chains = chainsOf(ranks, above, below, count);
  for (const chain of chains) for (const item of chain) weight[item] = chain.length ** 2;
  const wished = chains.map(() => 0), most = chains.reduce((n, chain) => Math.max(n, chain.length), 0);
  for (let sweep = 0; sweep < PULL + STRAIGHTEN; sweep++) {
    chains.forEach((chain, i) => {
      let middle = mean(chain, x, 0);
      if (sweep < (chain.length > 2 ? PULL : PULL + STRAIGHTEN - 1)) {
        if (chain.length < most) middle = mean([...above[chain[0]], ...below[chain[chain.length - 1]]], x, middle);
      } else for (const item of chain) {
        const aside = Math.abs(x[item] - wished[i]);
        if (Math.abs(middle - wished[i]) < aside && aside <= ASIDE) middle = x[item];
      }
      wished[i] = middle;
    });
    chains.forEach((chain, i) => { for (const item of chain) x[item] = wished[i]; });
    for (const rank of ranks) settle(rank, rank.map(item => x[item]), weight, widths, x);
  }
  return x;
}

function settle(rank, wished, weight, widths, x) {
  const starts = [], sums = [], weights = [], counts = [];
  let offset = 0, place = 0;
  rank.forEach((item, i) => {
    if (i) offset += (widths[rank[i - 1]] + widths[item]) / 2 + GAP;
    starts.push(offset); sums.push((wished[i] - offset) * weight[item]); weights.push(weight[item]); counts.push(1);
    for (let n = sums.length; n > 1 && sums[n - 2] / weights[n - 2] > sums[n - 1] / weights[n - 1]; n--) {
      const total = sums.pop(), heavy = weights.pop(), many = counts.pop();
      sums[n - 2] += total; weights[n - 2] += heavy; counts[n - 2] += many;
    }
  });
  sums.forEach((total, i) => {
    for (let k = 0; k < counts[i]; k++, place++) x[rank[place]] = starts[place] + total / weights[i];
  });
}
