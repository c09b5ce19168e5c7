const at = id => document.getElementById(id);
const megabytes = bytes => (bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 0) + " MB";
const percent = share => (100 * share).toFixed(1) + " %";

function figures(rows) {
  at("figures").replaceChildren(...rows.map(([name, value]) => {
    const [div, dt, dd] = ["div", "dt", "dd"].map(tag => document.createElement(tag));
    [dt.textContent, dd.textContent] = [name, value];
    div.append(dt, dd);
    return div;
  }));
}

function curve(id, points, text) {
  at(id).hidden = points.length < 2;
  if (points.length < 2) return;
  const [xs, ys] = [0, 1].map(axis => points.map(point => point[axis]));
  const [low, high, first, last] = [Math.min(...ys), Math.max(...ys), Math.min(...xs), Math.max(...xs)];
  const place = ([x, y]) => [100 * (x - first) / (last - first || 1), 98 - 96 * (y - low) / (high - low || 1)];
  at(id).querySelector("path").setAttribute("d", "M" + points.map(point => place(point).map(v => v.toFixed(3))).join("L"));
  at(id + "-range").textContent = `${text(low)} to ${text(high)}, epochs ${first} to ${last}`;
}

function table(topics) {
  at("topics").hidden = !topics;
  if (!topics) return;
  at("topics-epoch").textContent = topics.epoch;
  at("topics").querySelector("tbody").replaceChildren(...topics.largest.map(({ topic, share, words }) => {
    const row = document.createElement("tr");
    row.append(...[topic, percent(share), words.join(" ")].map(text => {
      const cell = document.createElement("td");
      cell.textContent = text;
      return cell;
    }));
    return row;
  }));
}

function peers({ up, needed, lost }) {
  at("lost").replaceChildren(...lost.map(({ node, why, seconds, left }) => {
    const item = document.createElement("li");
    item.textContent = `${node} ${why}, for ${seconds} s: the run ends in ${left} s without it.`;
    return item;
  }));
  return `${up} of ${needed}`;
}

function show({ node, epoch, round, memory, peers: connections, epochs, topics }) {
  document.title = `${node.role} ${node.index}: epoch ${epoch ?? "–"} of ${node.epochs}`;
  at("name").textContent = `${node.role} ${node.index}`;
  at("about").textContent = `${node.topics} topics, ${node.words} words, ${node.tokens} tokens; ${node.workers} workers, `
    + `${node.servers} servers; ${node.shards} shards, ${node.partitions} partitions, ${node.rounds} rounds per epoch`;
  const over = epochs.length > 0 && epochs.at(-1).epoch === node.epochs;
  at("where").textContent = over ? `All ${node.epochs} epochs are done.`
    : epoch === null ? "Waiting for all nodes to join." : `Epoch ${epoch} of ${node.epochs}, round ${round + 1} of ${node.rounds}.`;
  at("done").value = over ? 1 : epoch === null ? 0 : (epoch - 1 + round / node.rounds) / node.epochs;
  const last = epochs.at(-1);
  const joints = epochs.filter(it => it["log-joint-per-token"] !== null);
  const full = epochs.findLast(it => it["non-zeros"] !== null)?.["non-zeros"];
  const rows = [];
  if (last) {
    rows.push(["tokens per second", (last["tokens-per-second"] / 1e6).toFixed(2) + " M"]);
    rows.push(["seconds per epoch", last.seconds.toFixed(3)]);
    if (joints.length) rows.push(["log joint per token", joints.at(-1)["log-joint-per-token"].toFixed(4)]);
    if (full) rows.push(["topics per word", (full.words / node.words).toFixed(1)], ["non-zeros of documents", full.documents]);
    rows.push(["checkpoint of epoch", last.kept || "none"], ["attempt", last.attempt]);
    for (const [name, what] of [["pulled rows", "pulled"], ["deltas", "gained"], ["pushed tokens and answers", "pushed"], ["totals", "totals"]])
      rows.push([name + ", per epoch", megabytes(last.bytes[what])]);
    rows.push(["workers waited for servers", percent(last["waited-for-servers"])]);
    rows.push(["workers waited for each other", percent(last["waited-for-others"])]);
    rows.push(["largest worker", megabytes(last["worker-memory"])], ["largest server", megabytes(last["server-memory"])]);
  }
  if (connections.needed > 0) rows.push(["nodes connected", peers(connections)]);
  if (node.role !== "master") rows.push(["memory", megabytes(memory)]);
  figures(rows);
  table(topics);
  curve("joint", joints.map(it => [it.epoch, it["log-joint-per-token"]]), value => value.toFixed(3));
  curve("moved", epochs.map(it => [it.epoch, Object.values(it.bytes).reduce((a, b) => a + b) / 1e6]), value => value.toFixed(2));
}

async function look() {
  try {
    show(await (await fetch("status.json")).json());
  } catch (error) {
    at("where").textContent = "The node does not answer: it has exited or is not reachable.";
  }
  setTimeout(look, 2000);
}
look();
