// Replays of Core War: an elite against a starter or another elite, in a core that one can stop and step.
import { element, number, setOptions } from "./elements.js";

const SPEEDS = [["1", "1 instruction a frame"], ["8", "8 a frame"], ["40", "40 a frame"], ["200", "200 a frame"], ["1000", "1000 a frame"]];

export class ReplayView {
  constructor(context) {
    this.context = context;
    this.round = null;
    this.playing = false;
    this.program = element("select", { id: "replay-program", onchange: () => this.choose() });
    this.opponent = element("select", { id: "replay-opponent", onchange: () => this.choose() });
    this.seed = element("input", { type: "number", min: 0, max: 2147483647, value: 0, id: "replay-seed", onchange: () => this.choose() });
    this.play = element("button", { class: "main", id: "play", onclick: () => this.toggle() }, "Play");
    this.stepButton = element("button", { id: "step", onclick: () => this.step() }, "Step");
    this.again = element("button", { id: "again", onclick: () => this.seek(0) }, "From the start");
    this.speed = element("select", { id: "speed" });
    setOptions(this.speed, SPEEDS, "8");
    this.place = element("input", { type: "range", min: 0, value: 0, "aria-label": "Place in the round", oninput: (event) => this.seek(Number(event.target.value)) });
    this.canvas = element("canvas", { role: "img", "aria-label": "The core: one square for each address" });
    this.painter = new CoreCanvas(this.canvas);
    this.warriors = element("ul", { class: "warriors" });
    this.said = element("p", { id: "replay-state", role: "status" });
    this.empty = element("p", { class: "empty" });
    this.main = element("div", {},
      element("h1", {}, "Core replay"), this.empty,
      element("div", { class: "tools" }, element("label", {}, "Program ", this.program), element("label", {}, "against ", this.opponent),
        element("label", {}, "Seed ", this.seed)),
      element("div", { class: "tools" }, this.play, this.stepButton, this.again, element("label", {}, "Speed ", this.speed), this.place),
      element("div", { class: "columns core" }, element("div", {}, this.canvas),
        element("section", { class: "panel" }, element("h2", {}, "Warriors"), this.warriors, this.said,
          element("p", { class: "hint" }, "Bright squares were executed, small dark ones written, by the warrior of that colour; " +
            "white is executed now. The same warriors and seed always give the same round."))));
    this.resized = () => this.round && this.redraw();
    window.addEventListener("resize", this.resized);
  }

  close() {
    this.playing = false;
    window.removeEventListener("resize", this.resized);
  }

  elites() {
    const { store, run } = this.context;
    const found = new Map();
    for (const node of store.nodesOf(run)) {
      for (const grid of [node.grids.now, node.grids.complete]) {
        for (const cell of grid ? grid.cells.values() : []) if (!found.has(cell.digest)) found.set(cell.digest, cell);
      }
    }
    const all = [...found.values()].sort((one, other) => other.fitness - one.fitness);
    if (!store.single) return all.slice(0, 300);
    const kept = new Set(store.replays.map((one) => one.program)); // the others have no round in the file
    return all.filter((cell) => kept.has(cell.digest));
  }

  update() {
    const { store, run, route } = this.context;
    const about = store.runs[run];
    const elites = this.elites();
    this.main.querySelectorAll(".tools, .columns").forEach((one) => { one.hidden = !elites.length; });
    this.empty.textContent = elites.length ? "" : `No ${about.words.program} holds a cell yet.`;
    if (!elites.length) return;
    const name = (cell) => `${number(cell.fitness, 2)}  ${store.modelOf(run, cell)}  ${cell.digest.slice(0, 8)}`;
    const programs = elites.map((cell) => [cell.digest, name(cell)]);
    const wanted = this.program.value || route || elites[0].digest;
    if (!elites.some((cell) => cell.digest === wanted) && !store.single) programs.unshift([wanted, `program ${wanted.slice(0, 8)}`]);
    setOptions(this.program, programs, wanted);
    const opponents = store.single ? [...new Set(store.replays.map((one) => one.opponent))].map((one) => [one, one.replace("starter:", "starter ")])
      : [...about.starters.map((starter) => [`starter:${starter}`, `starter ${starter}`]),
        ...elites.slice(0, 60).map((cell) => [`program:${cell.digest}`, name(cell)])];
    const isFirst = !this.opponent.value;
    setOptions(this.opponent, opponents, this.opponent.value || (about.starters.includes("dwarf") ? "starter:dwarf" : opponents[0][0]));
    if (store.single && !elites.some((cell) => cell.digest === wanted)) {
      this.program.value = elites[0].digest;
      this.note = "That program has no round in this file; another one is shown.";
    }
    if (isFirst) this.record();
  }

  choose() {
    this.note = "";
    this.record();
  }

  async record() {
    const { feed, run } = this.context;
    this.playing = false;
    this.label();
    const asked = this.asked = {};
    this.say("Playing the round …");
    try {
      const round = new CoreRound(await feed.replay(run, this.program.value, this.opponent.value, this.seed.value || "0"));
      if (asked !== this.asked) return;
      this.round = round;
    } catch (error) {
      if (asked !== this.asked) return;
      this.round = null;
      this.warriors.replaceChildren();
      this.say(`No replay: ${error.message}`);
      return;
    }
    this.place.max = String(this.round.events.length);
    this.redraw();
  }

  toggle() {
    if (!this.round) return;
    if (this.round.ended) this.round.restart();
    this.playing = !this.playing;
    this.label();
    if (this.playing) requestAnimationFrame(() => this.frame());
  }

  frame() {
    if (!this.playing || !this.round || !this.main.isConnected) return;
    for (let count = Number(this.speed.value); count > 0 && !this.round.ended; count -= 1) this.round.step();
    if (this.round.ended) this.playing = false;
    this.label();
    this.show();
    if (this.playing) requestAnimationFrame(() => this.frame());
  }

  step() {
    if (!this.round) return;
    this.playing = false;
    this.label();
    this.round.step();
    this.show();
  }

  seek(place) {
    if (!this.round) return;
    this.round.seek(place);
    this.show();
  }

  label() {
    this.play.textContent = this.playing ? "Pause" : "Play";
  }

  redraw() {
    this.painter.fit(this.round);
    this.show();
  }

  show() {
    const round = this.round;
    this.painter.draw(round);
    this.place.value = String(round.place);
    const { head } = round;
    this.warriors.replaceChildren(...head.names.map((name, index) => {
      const swatch = element("i", {});
      swatch.style.backgroundColor = WARRIOR_COLOURS[index % WARRIOR_COLOURS.length];
      const state = round.died[index] === null ? `${number(round.processes[index])} processes` : `died in cycle ${number(round.died[index])}`;
      return element("li", {}, swatch, `${index + 1}. ${name || "unnamed"}: ${state}`);
    }));
    this.say(`Instruction ${number(round.steps)}, cycle ${number(round.cycle)} of ${number(head.cycles)}. Seed ${head.seed}.${round.ended ? " End of the recording." : ""}`);
  }

  say(text) {
    this.said.textContent = this.note ? `${this.note} ${text}` : text;
  }
}

// A recorded round, played back: the last warrior that touched each cell, and the processes that live. All of it
// follows from the events, so the same warriors and seed always look the same.

const [EXECUTE, WRITE, SPAWN, PROCESS_DIES, WARRIOR_DIES] = [0, 1, 2, 3, 4];
const WARRIOR_COLOURS = ["#56b4e9", "#f0a030", "#2fc99a", "#e08cc0"];
const TOUCHED = ["#1f5f86", "#8a5a10", "#12735a", "#8a3f6c"]; // written, not executed: darker, and drawn smaller

class CoreRound {
  constructor(buffer) {
    const bytes = new Uint8Array(buffer);
    const end = bytes.indexOf(10);
    this.head = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
    this.events = new Uint32Array(buffer.slice(end + 1)); // words are stored as every browser's machine has them
    this.owner = new Int8Array(this.head.core);
    this.kind = new Uint8Array(this.head.core);
    this.restart();
  }

  restart() {
    this.place = 0;
    this.steps = 0;
    this.owner.fill(-1);
    this.kind.fill(WRITE);
    this.head.positions.forEach((position, warrior) => {
      for (let offset = 0; offset < this.head.lengths[warrior]; offset += 1) this.owner[(position + offset) % this.head.core] = warrior;
    });
    this.processes = this.head.names.map(() => 1);
    this.died = this.head.names.map(() => null);
    this.executed = this.head.names.map(() => 0);
    this.pointer = this.head.positions.map(() => -1);
    this.changed = null; // all of it is to be drawn
  }

  get ended() {
    return this.place >= this.events.length;
  }

  get cycle() {
    return Math.max(...this.executed);
  }

  // One instruction with everything that it does.
  step() {
    if (this.ended) return;
    do this.take(this.events[this.place++]);
    while (!this.ended && this.events[this.place] >>> 24 !== EXECUTE);
    this.steps += 1;
  }

  take(word) {
    const [kind, warrior, address] = [word >>> 24, (word >>> 16) & 255, word & 65535];
    if (kind === EXECUTE) {
      this.touch(this.pointer[warrior]);
      this.pointer[warrior] = address;
      this.executed[warrior] += 1;
    }
    if (kind === EXECUTE || kind === WRITE) {
      this.owner[address] = warrior;
      this.kind[address] = kind;
      this.touch(address);
    } else if (kind === SPAWN) this.processes[warrior] += 1;
    else if (kind === PROCESS_DIES) this.processes[warrior] -= 1;
    else if (kind === WARRIOR_DIES) {
      this.died[warrior] = this.executed[warrior];
      this.processes[warrior] = 0;
      this.touch(this.pointer[warrior]);
      this.pointer[warrior] = -1;
    }
  }

  touch(address) {
    if (address >= 0 && this.changed) this.changed.add(address);
  }

  seek(place) {
    if (place < this.place) this.restart();
    else this.changed = null;
    while (this.place < place && !this.ended) this.step();
  }
}

class CoreCanvas {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d", { alpha: false });
  }

  fit(round) {
    const width = Math.max(280, (this.canvas.parentElement.clientWidth || 600) - 2); // less the border
    this.size = Math.max(2, Math.min(14, Math.floor(Math.sqrt((width * width * (width < 600 ? 1.25 : 0.62)) / round.head.core))));
    this.columns = Math.max(1, Math.floor(width / this.size)); // whole dots, or the edges of squares would be left behind
    this.canvas.width = this.columns * this.size;
    this.canvas.height = Math.ceil(round.head.core / this.columns) * this.size;
    round.changed = null;
  }

  draw(round) {
    if (round.changed === null) {
      this.pen.fillStyle = "#101214";
      this.pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
      for (let address = 0; address < round.head.core; address += 1) this.cell(round, address);
    } else {
      for (const address of round.changed) this.cell(round, address);
    }
    round.changed = new Set();
    round.pointer.forEach((address) => {
      if (address < 0) return;
      this.pen.fillStyle = "#ffffff";
      this.square(address, 0);
      round.changed.add(address); // is drawn as usual next time
    });
  }

  cell(round, address) {
    const warrior = round.owner[address];
    this.pen.fillStyle = "#101214";
    this.square(address, 0);
    const executed = round.kind[address] === EXECUTE;
    this.pen.fillStyle = warrior < 0 ? "#24292e" : (executed ? WARRIOR_COLOURS : TOUCHED)[warrior % WARRIOR_COLOURS.length];
    const share = warrior < 0 || !executed ? 0.25 : 0.1;
    this.square(address, this.size > 4 ? Math.max(1, Math.floor(this.size * share)) : 0);
  }

  square(address, margin) {
    const x = (address % this.columns) * this.size;
    const y = Math.floor(address / this.columns) * this.size;
    this.pen.fillRect(x + margin, y + margin, this.size - 2 * margin, this.size - 2 * margin);
  }
}
