// Where the boxes of a graph stand. insight/explorer/layout.py does the same for pictures; see there for the method.
const ROW = 84, HEIGHT = 40, GAP = 28, BEND = 14, LONGEST = 120, MANY = 4, SWEEPS = 4;

const textWidth = (title, ...more) => 26 + Math.max(7.6 * title.length, ...more.map(text => 6.4 * text.length));

function arrange(given, edges) {
  const count = given.length, widths = [...given], row = new Array(count).fill(0);
  for (const [a, b] of edges) if (b > a && row[b] <= row[a]) row[b] = row[a] + 1;
  const paths = [], above = [], below = [];
  for (let i = 0; i < count; i++) { above.push([]); below.push([]); }
  let budget = 4 * count + 1000;
  const meeting = new Int32Array(count);
  for (const edge of edges) meeting[edge[1]]++;
  for (const [a, b] of edges) {
    const path = [], span = row[b] - row[a];
    const bends = b > a && span - 1 <= budget && (span < MANY || (span <= LONGEST && meeting[b] <= MANY));
    if (bends) {
      budget -= span - 1;
      let last = a;
      for (let step = 1; step < span; step++) {
        const bend = widths.length;
        widths.push(BEND); row.push(row[a] + step);
        above.push([last]); below.push([]);
        below[last].push(bend); path.push(bend);
        last = bend;
      }
      below[last].push(b); above[b].push(last);
    }
    path.far = !bends;
    paths.push(path);
  }
  const ranks = firstRows(row, below);
  sortRows(ranks, above, below, widths.length);
  const x = spread(ranks, above, below, widths);
  let left = Infinity;
  for (let i = 0; i < x.length; i++) left = Math.min(left, x[i] - widths[i] / 2);
  return {x: x.map(v => v - left), row, widths, paths, ranks};
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

function spread(ranks, above, below, widths) {
  const x = new Array(widths.length).fill(0);
  for (const rank of ranks) {
    let end = 0;
    for (const item of rank) { x[item] = end + widths[item] / 2; end += widths[item] + GAP; }
    for (const item of rank) x[item] -= (end - GAP) / 2;
  }
  for (let sweep = 0; sweep <= 2 * SWEEPS; sweep++) {
    const near = sweep % 2 ? below : above;
    for (const rank of turns(ranks, sweep % 2)) {
      const wished = rank.map(item => mean(near[item], x, x[item]));
      settle(rank, wished, widths).forEach((value, i) => { x[rank[i]] = value; });
    }
  }
  return x;
}

function settle(rank, wished, widths) {
  const starts = [], sums = [], counts = [], out = [];
  let offset = 0;
  rank.forEach((item, i) => {
    if (i) offset += (widths[rank[i - 1]] + widths[item]) / 2 + GAP;
    starts.push(offset); sums.push(wished[i] - offset); counts.push(1);
    for (let n = sums.length; n > 1 && sums[n - 2] / counts[n - 2] > sums[n - 1] / counts[n - 1]; n--) {
      const total = sums.pop(), many = counts.pop();
      sums[n - 2] += total; counts[n - 2] += many;
    }
  });
  sums.forEach((total, i) => {
    for (let k = 0; k < counts[i]; k++) out.push(starts[out.length] + total / counts[i]);
  });
  return out;
}
