// A recorded round, played back: who touched each cell of the core last, and which processes live. Everything
// follows from the events, so the same warriors and seed always look the same.

const [EXECUTE, WRITE, SPAWN, PROCESS_DIES, WARRIOR_DIES] = [0, 1, 2, 3, 4];
export const WARRIOR_COLOURS = ["#56b4e9", "#f0a030", "#2fc99a", "#e08cc0"];
const TOUCHED = ["#1f5f86", "#8a5a10", "#12735a", "#8a3f6c"]; // written, not executed: darker, and drawn smaller

export class CoreRound {
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

export class CoreCanvas {
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
