// The sources of messages: a live server, or the data inside a single file.
import { entry } from "./elements.js";

const SILENCE = 25000; // two missed signs of life
const UNSEEN = 60000; // a page that nobody looks at gives its stream back: browsers allow six per server

export class LiveFeed {
  constructor(receive, tell) {
    this.receive = receive;
    this.tell = tell;
    this.connect();
    setInterval(() => this.check(), 5000);
    document.addEventListener("visibilitychange", () => this.seen(!document.hidden));
  }

  seen(visible) {
    clearTimeout(this.unseen);
    if (!visible) this.unseen = setTimeout(() => this.rest(), UNSEEN);
    else if (this.resting) this.connect();
  }

  rest() {
    this.resting = true;
    clearTimeout(this.again);
    this.source.close();
    this.tell("connecting");
  }

  // A browser gives up on a stream whose server answered with an error. A new one is opened then, and after a
  // long silence. Each stream begins with everything, so the page misses nothing.
  connect() {
    if (this.source) this.source.close();
    clearTimeout(this.again);
    this.resting = false;
    this.heard = Date.now();
    const source = new EventSource("api/events");
    this.source = source;
    source.onmessage = (event) => {
      this.heard = Date.now();
      this.tell("live");
      this.receive(JSON.parse(event.data));
    };
    source.onerror = () => {
      this.tell("lost");
      if (source.readyState === EventSource.CLOSED) this.again = setTimeout(() => this.connect(), 1500);
    };
  }

  check() {
    if (!this.resting && Date.now() - this.heard > SILENCE) {
      this.tell("lost");
      this.connect();
    }
  }

  async lineage(run, digest) {
    return (await asked(`api/runs/${run}/programs/${encodeURIComponent(digest)}`)).json();
  }

  async replay(run, program, opponent, seed) {
    const query = new URLSearchParams({ program, opponent, seed });
    return (await asked(`api/runs/${run}/replay?${query}`)).arrayBuffer();
  }
}

async function asked(address) {
  let answer;
  try {
    answer = await fetch(address);
  } catch {
    throw new Error("the server cannot be reached");
  }
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer;
}

export class FileFeed {
  constructor(data) {
    this.programs = data.programs;
    this.replays = data.replays;
  }

  async lineage(run, digest) {
    const found = entry(this.programs, digest, null);
    if (!found) throw new Error("this program is not in the file; a live dashboard has it");
    return found;
  }

  async replay(run, program, opponent, seed) {
    const found = this.replays.find((one) => one.program === program && one.opponent === opponent && one.seed === String(seed));
    if (!found) throw new Error("this round is not in the file; a live dashboard (shoal dashboard RUN) plays any");
    const packed = Uint8Array.from(atob(found.data), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer();
  }
}
