// One page with a few tabs. The address after # names run, tab and detail: #/0/archive
import { element, setOptions } from "./elements.js";
import { Store } from "./store.js";
import { FileFeed, LiveFeed } from "./feed.js";
import { SwarmView } from "./swarm.js";
import { ArchiveView } from "./archive.js";
import { ReplayView } from "./replay.js";
import { TrainView } from "./train.js";
import { BoardView } from "./board.js";
import { BudgetView } from "./budget.js";

// Every tab that there is; a run says which of them it has.
const VIEWS = {
  swarm: ["Swarm", SwarmView], archive: ["Archive", ArchiveView], replay: ["Replay", ReplayView],
  train: ["Training", TrainView], board: ["Board", BoardView], budget: ["Budget", BudgetView],
};
const main = document.getElementById("main");
const navigation = document.getElementById("views");
const statusLine = document.getElementById("status");
const runSelect = document.getElementById("run");
const store = new Store();
const context = { store, feed: null, run: 0, route: "", go };
let connection = "connecting";
let current = { key: "", view: null };
let scheduled = false;

function go(view, detail = "") {
  location.hash = `#/${context.run}/${view}${detail ? `/${encodeURIComponent(detail)}` : ""}`;
}

function tabsOf(run) {
  return store.runs[run].tabs.filter((tab) => Object.hasOwn(VIEWS, tab));
}

function parsed() {
  const [, run, view, detail] = location.hash.split("/");
  const index = /^\d{1,4}$/.test(run || "") && Number(run) < store.runs.length ? Number(run) : 0;
  const name = tabsOf(index).includes(view) ? view : "swarm";
  let decoded = "";
  try {
    decoded = decodeURIComponent(detail || "");
  } catch {
    // a mistyped address names nothing
  }
  return [index, name, decoded];
}

function render() {
  scheduled = false;
  showStatus();
  if (!store.filled || !store.runs.length) return;
  const [run, name, detail] = parsed();
  const key = `${run}/${name}/${detail}`;
  context.run = run;
  context.route = detail;
  document.title = `Shoal: ${store.runs[run].title}`;
  setOptions(runSelect, store.runs.map((one, index) => [String(index), one.title]), String(run));
  const signature = `${run}/${name}`;
  if (navigation.dataset.signature !== signature) {
    navigation.dataset.signature = signature;
    navigation.replaceChildren(...tabsOf(run).map((tab) => element("a", {
      href: `#/${run}/${tab}`, "aria-current": tab === name ? "page" : null,
    }, VIEWS[tab][0])));
  }
  if (current.key !== key) {
    if (current.view && current.view.close) current.view.close();
    current = { key, view: new VIEWS[name][1](context) };
    main.replaceChildren(current.view.main);
    window.scrollTo(0, 0);
  }
  current.view.update();
}

// At most one drawing per frame, however many messages come; none while nobody looks.
function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(render);
}

function showStatus() {
  const { behind, size } = store.reading;
  let [text, kind] = ["live", ""];
  if (store.single) [text, kind] = ["from a file: as it was when written", "file"];
  else if (connection === "lost") [text, kind] = ["connection lost, reconnecting …", "lost"];
  else if (store.failure) [text, kind] = [`the server stopped reading: ${store.failure}`, "lost"];
  else if (connection === "connecting") [text, kind] = ["connecting …", "reading"];
  else if (behind > 0 && size > 0) [text, kind] = [`reading the journals: ${Math.floor((100 * (size - behind)) / size)} %`, "reading"];
  if (statusLine.textContent !== text) statusLine.textContent = text;
  statusLine.className = kind;
}

runSelect.addEventListener("change", () => { location.hash = `#/${runSelect.value}/${parsed()[1]}`; });
window.addEventListener("hashchange", () => {
  schedule();
  main.focus({ preventScroll: true });
});
document.addEventListener("visibilitychange", schedule);

const embedded = document.getElementById("data");
if (embedded) {
  const data = JSON.parse(embedded.textContent);
  store.single = true;
  store.replays = data.replays;
  context.feed = new FileFeed(data);
  store.apply(data.message);
  render();
} else {
  context.feed = new LiveFeed((message) => {
    store.apply(message);
    schedule();
  }, (state) => {
    connection = state;
    schedule();
  });
}
