/* Shoal's MARS: plays rounds of Core War. No global state, no allocation while a round is played, and
 * nothing here calls back into Python, so that callers release the interpreter lock and use threads.
 *
 * semantics.h has the instructions' effects, loop.h is the hot loop, placement.h draws places, and this file
 * holds rounds, series of rounds and recordings. The caller (binding.py) checks all numbers; those that could
 * touch memory outside the core are checked here again.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "semantics.h"

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#if defined(__GNUC__) && !defined(SHOAL_PLAIN_SWITCH)
#define SHOAL_COMPUTED_GOTO 1
#else
#define SHOAL_COMPUTED_GOTO 0
#endif

#define ABI_VERSION 2
#define MAX_WARRIORS 64
#define MAX_CORE_SIZE 65533 /* 16-bit addresses, and two sentinels behind the core */
#define HANDLERS 256
#define WRAP_HANDLER 255
#define MIN_CHUNK 1024
#define MAX_CHUNK 16384

/* ---------------------------------------------------------------- instructions and their handlers */

/* Many codes do the same thing, and differ only where whole cells are compared. Maps a code to the one that
 * stands for all of its kind in hot_codes.h. */
static unsigned representative(unsigned op, unsigned mod, unsigned am, unsigned bm) {
  if (op == CMP) op = SEQ;
  switch (op) {
  case DAT: case NOP:
    mod = M_F;
    if (!HAS_SIDE_EFFECT(am)) am = IMMEDIATE;
    if (!HAS_SIDE_EFFECT(bm)) bm = IMMEDIATE;
    break;
  case JMP: case SPL:
    mod = M_B;
    if (!HAS_SIDE_EFFECT(bm)) bm = IMMEDIATE;
    break;
  case JMZ: case JMN: case DJN:
    mod = mod == M_A || mod == M_BA ? M_A : mod == M_B || mod == M_AB ? M_B : M_F;
    break;
  case ADD: case SUB: case MUL: case DIV: case MOD: case SLT:
    if (mod == M_I) mod = M_F;
    break;
  default: break;
  }
  return CODE(op, mod, am, bm);
}

static unsigned handler_for(unsigned op, unsigned mod, unsigned am, unsigned bm) {
  switch (representative(op, mod, am, bm)) {
#define HOT(number, op, mod, am, bm) \
  case CODE(op, mod, am, bm): return number;
#include "hot_codes.h"
#undef HOT
  default: return 0;
  }
}

static cell make_cell(unsigned op, unsigned mod, unsigned am, unsigned bm, uint32_t a, uint32_t b) {
  return (cell)handler_for(op, mod, am, bm) << HANDLER_SHIFT | (cell)CODE(op, mod, am, bm) << CODE_SHIFT |
         (cell)(a << 16 | b);
}

static NEVER_INLINE struct outcome execute_any(cell *core, uint32_t size, uint32_t pc, cell ir,
                                               struct pspace *pspace) {
  const unsigned code = CODE_OF(ir);
  return execute(core, size, pc, ir, code / (MODIFIERS * MODES * MODES), code / (MODES * MODES) % MODIFIERS,
                 code / MODES % MODES, code % MODES, pspace, NULL);
}

static NEVER_INLINE struct outcome execute_recorded(cell *core, uint32_t size, uint32_t pc, cell ir,
                                                    struct pspace *pspace, struct recorder *recorder) {
  const unsigned code = CODE_OF(ir);
  return execute(core, size, pc, ir, code / (MODIFIERS * MODES * MODES), code / (MODES * MODES) % MODIFIERS,
                 code / MODES % MODES, code % MODES, pspace, recorder);
}

/* ---------------------------------------------------------------- the state of a round */

struct fighter {
  uint16_t *head, *tail; /* its processes, oldest first, `stride` apart */
  uint16_t *pushed;      /* the tail when the chunk began: later entries are not yet in `seen` */
  uint32_t index;        /* of the warrior in the caller's list */
  uint32_t executed;     /* instructions: with the last one it died, or the round ended */
  uint32_t deaths;       /* of processes */
  uint8_t *seen;         /* seen[address] is 1 when a process was ever queued there; NULL: not asked */
  struct pspace pspace;
};

struct arena {
  cell *core; /* size cells and two sentinels */
  uint32_t size, processes, cycles;
  int stop_at_decision;
  uint32_t count;                         /* of the living */
  struct fighter *living[MAX_WARRIORS];   /* in the order in which they move */
  struct fighter fighters[MAX_WARRIORS];  /* by index */
  uint16_t *queues, *spare;               /* two buffers of queue_cells entries */
  size_t queue_cells, queue_room;         /* room: entries per warrior when queues are not interleaved */
  ptrdiff_t stride;
};

#define LOOP_SOLO 1
#define LOOP_PAIR 2
#define LOOP_MANY 3
#define LOOP LOOP_SOLO
#include "loop.h"
#define LOOP LOOP_PAIR
#include "loop.h"
#define LOOP LOOP_MANY
#include "loop.h"

/* Marks the addresses queued since the chunk began. */
static void mark_seen(struct fighter *f, ptrdiff_t stride) {
  uint8_t *const seen = f->seen;
  const uint16_t *p = f->pushed;
  const uint16_t *const end = f->tail;
  if (!seen) return;
  for (; end - p >= 8 * stride; p += 8 * stride) {
    seen[p[0]] = 1;
    seen[p[stride]] = 1;
    seen[p[2 * stride]] = 1;
    seen[p[3 * stride]] = 1;
    seen[p[4 * stride]] = 1;
    seen[p[5 * stride]] = 1;
    seen[p[6 * stride]] = 1;
    seen[p[7 * stride]] = 1;
  }
  for (; p < end; p += stride) seen[*p] = 1;
}

/* Moves the queues of the living to the start of their buffer, in the layout for so many warriors, and
 * returns the length of the longest. */
static size_t arrange_queues(struct arena *arena) {
  const ptrdiff_t stride = arena->count == 2 ? 2 : 1;
  const size_t room = arena->count == 2 ? 1 : arena->queue_room;
  size_t longest = 0;
  uint16_t *const from = arena->queues, *const to = arena->spare;
  for (uint32_t i = 0; i < arena->count; i++) {
    struct fighter *f = arena->living[i];
    uint16_t *const begin = to + i * room;
    const size_t length = (size_t)((f->tail - f->head) / arena->stride);
    if (length > longest) longest = length;
    if (stride == 1 && arena->stride == 1)
      memcpy(begin, f->head, length * sizeof *begin);
    else
      for (size_t k = 0; k < length; k++) begin[(ptrdiff_t)k * stride] = f->head[(ptrdiff_t)k * arena->stride];
    f->head = begin;
    f->tail = f->pushed = begin + (ptrdiff_t)length * stride;
  }
  arena->queues = to;
  arena->spare = from;
  arena->stride = stride;
  return longest;
}

/* The same where the layout stays as it is: one move in place. */
static size_t compact_pair(struct arena *arena) {
  struct fighter *one = arena->living[0], *two = arena->living[1];
  const ptrdiff_t length1 = one->tail - one->head, length2 = two->tail - two->head;
  const ptrdiff_t longest = length1 > length2 ? length1 : length2;
  memmove(arena->queues, one->head, (size_t)longest * sizeof(uint16_t));
  one->head = arena->queues;
  two->head = arena->queues + 1;
  one->tail = one->pushed = one->head + length1;
  two->tail = two->pushed = two->head + length2;
  return (size_t)longest / 2;
}

static void fill_core(struct arena *arena) {
  const cell empty = make_cell(DAT, M_F, DIRECT, DIRECT, 0, 0);
  for (uint32_t i = 0; i < arena->size; i++) arena->core[i] = empty;
  arena->core[arena->size] = arena->core[arena->size + 1] = (cell)WRAP_HANDLER << HANDLER_SHIFT;
}

static void remove_dead(struct arena *arena) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < arena->count; i++)
    if (arena->living[i]->tail != arena->living[i]->head) arena->living[kept++] = arena->living[i];
  arena->count = kept;
}

/* Plays the loaded round to its end. */
static void play(struct arena *arena) {
  const int alone = arena->count == 1;
  arena->stride = arena->count == 2 ? 2 : 1;
  uint32_t layout = arena->count;
  for (;;) {
    struct fighter *before[MAX_WARRIORS];
    const uint32_t count = arena->count;
    uint32_t left;
    size_t longest, chunk;
    if (count == 0 || (count == 1 && arena->stop_at_decision && !alone)) return;
    left = arena->cycles - arena->living[0]->executed;
    if (left == 0) return;
    if (count == 2 && layout == 2) longest = compact_pair(arena);
    else longest = arrange_queues(arena);
    layout = count;
    chunk = 4 * longest;
    if (chunk < MIN_CHUNK) chunk = MIN_CHUNK;
    if (chunk > MAX_CHUNK) chunk = MAX_CHUNK;
    if (chunk > left) chunk = left;
    memcpy(before, arena->living, sizeof before);
    if (count == 1) run_solo(arena, (uint32_t)chunk);
    else if (count == 2) run_pair(arena, (uint32_t)chunk);
    else run_many(arena, (uint32_t)chunk);
    for (uint32_t i = 0; i < count; i++) mark_seen(before[i], arena->stride);
    remove_dead(arena);
  }
}

/* ---------------------------------------------------------------- the structs of the caller */

/* The rules of all battles of one call. */
struct rules {
  uint32_t size, cycles, processes, pspace_size;
  uint32_t stop_at_decision;
  uint32_t statistics;
  const volatile int32_t *abandon; /* NULL, or a number that becomes non-zero when the caller gives up */
};

struct program {
  const cell *code; /* from shoal_encode */
  uint32_t length, start;
  int32_t pin; /* negative: none, its P-space is its own */
  uint32_t unused;
};

/* A series of rounds of one battle. The results are rows of `warriors` numbers, one row per round. */
struct battle {
  const struct program *programs;
  const uint32_t *positions; /* one row per round */
  uint32_t *executed, *spawned, *processes, *coverage;
  cell *core; /* NULL, or where the core is left after the last round */
  uint32_t warriors, rounds, first_round, unused;
};

static int valid(const struct rules *rules, const struct battle *battle) {
  if (rules->size < 1 || rules->size > MAX_CORE_SIZE || rules->cycles < 1 || rules->processes < 1 ||
      rules->pspace_size < 1 || battle->warriors < 1 || battle->warriors > MAX_WARRIORS)
    return 0;
  for (uint32_t i = 0; i < battle->warriors; i++) {
    const struct program *p = &battle->programs[i];
    if (p->length > rules->size || p->start >= rules->size) return 0;
    for (uint32_t k = 0; k < p->length; k++)
      if (a_of(p->code[k]) >= rules->size || b_of(p->code[k]) >= rules->size || CODE_OF(p->code[k]) >= CODES)
        return 0;
  }
  for (uint64_t i = 0; i < (uint64_t)battle->rounds * battle->warriors; i++)
    if (battle->positions[i] >= rules->size) return 0;
  return 1;
}

static void load(struct arena *arena, const struct battle *battle, const uint32_t *positions, uint32_t first) {
  const uint32_t warriors = battle->warriors, size = arena->size;
  fill_core(arena);
  arena->count = warriors;
  for (uint32_t i = 0; i < warriors; i++) {
    const struct program *p = &battle->programs[i];
    struct fighter *f = &arena->fighters[i];
    uint32_t at = positions[i];
    for (uint32_t k = 0; k < p->length; k++) {
      arena->core[at] = p->code[k];
      at = at + 1 == size ? 0 : at + 1;
    }
    f->index = i;
    f->executed = f->deaths = 0;
    f->head = warriors == 2 ? arena->queues + i : arena->queues + i * arena->queue_room;
    f->head[0] = (uint16_t)((positions[i] + p->start) % size);
    f->tail = f->head + (warriors == 2 ? 2 : 1);
    if (f->seen) memset(f->seen, 0, size + 2);
  }
  for (uint32_t k = 0; k < warriors; k++) arena->living[k] = &arena->fighters[(first + k) % warriors];
  if (warriors == 2 && first % 2) {
    /* Interleaved by order of moving, not by index. */
    const uint16_t swap = arena->queues[0];
    arena->queues[0] = arena->queues[1];
    arena->queues[1] = swap;
    for (uint32_t k = 0; k < 2; k++) {
      arena->living[k]->head = arena->queues + k;
      arena->living[k]->tail = arena->queues + k + 2;
    }
  }
}

static uint32_t count_seen(const struct fighter *f, uint32_t size) {
  uint32_t count = 0;
  for (uint32_t extra = 0; extra < 2; extra++)
    if (f->seen[size + extra]) f->seen[(size + extra) % size] = 1;
  for (uint32_t i = 0; i < size; i++) count += f->seen[i];
  return count;
}

/* The memory of one call. */
struct scratch {
  struct arena arena;
  uint16_t *pspace, *last_results;
};

static void release(struct scratch *s) {
  if (!s) return;
  free(s->arena.core);
  free(s->arena.queues < s->arena.spare ? s->arena.queues : s->arena.spare); /* the two are swapped in play */
  free(s->arena.fighters[0].seen);
  free(s->pspace);
  free(s);
}

static struct scratch *prepare(const struct rules *rules, uint32_t warriors) {
  struct scratch *s = calloc(1, sizeof *s);
  const size_t most = rules->cycles < MAX_CHUNK ? rules->cycles : MAX_CHUNK, marks = (size_t)rules->size + 2;
  uint8_t *seen;
  if (!s) return NULL;
  s->arena.size = rules->size;
  s->arena.cycles = rules->cycles;
  s->arena.processes = rules->processes;
  s->arena.stop_at_decision = (int)rules->stop_at_decision;
  /* A queue holds at most `processes` entries and moves on by one per cycle of a chunk. */
  s->arena.queue_room = most + rules->processes + 4;
  s->arena.queue_cells = s->arena.queue_room * (warriors < 2 ? 2 : warriors);
  s->arena.core = malloc(((size_t)rules->size + 2) * sizeof(cell));
  s->arena.queues = malloc(2 * s->arena.queue_cells * sizeof(uint16_t));
  s->arena.spare = s->arena.queues ? s->arena.queues + s->arena.queue_cells : NULL;
  s->pspace = malloc((size_t)warriors * (rules->pspace_size + 1) * sizeof(uint16_t));
  s->last_results = s->pspace ? s->pspace + (size_t)warriors * rules->pspace_size : NULL;
  s->arena.fighters[0].seen = seen = rules->statistics ? malloc(warriors * marks) : NULL;
  if (!s->arena.core || !s->arena.queues || !s->pspace || (rules->statistics && !seen)) {
    release(s);
    return NULL;
  }
  for (uint32_t i = 1; seen && i < warriors; i++) s->arena.fighters[i].seen = seen + i * marks;
  return s;
}

/* A fresh P-space: all zero, and a last result that no round can have. Equal PINs share cells. */
static void reset_pspace(struct scratch *s, const struct rules *rules, const struct battle *battle) {
  memset(s->pspace, 0, (size_t)battle->warriors * rules->pspace_size * sizeof(uint16_t));
  for (uint32_t i = 0; i < battle->warriors; i++) {
    uint32_t owner = i;
    if (battle->programs[i].pin >= 0)
      for (owner = 0; battle->programs[owner].pin != battle->programs[i].pin; owner++) {}
    s->arena.fighters[i].pspace.cells = s->pspace + (size_t)owner * rules->pspace_size;
    s->arena.fighters[i].pspace.last_result = s->last_results + i;
    s->arena.fighters[i].pspace.size = rules->pspace_size;
    s->last_results[i] = (uint16_t)(rules->size - 1);
  }
}

static uint32_t processes_of(const struct arena *arena, const struct fighter *f) {
  return (uint32_t)((f->tail - f->head) / arena->stride);
}

static void report(struct scratch *s, const struct battle *battle, uint64_t row) {
  struct arena *arena = &s->arena;
  for (uint32_t i = 0; i < battle->warriors; i++) {
    struct fighter *f = &arena->fighters[i];
    const uint32_t processes = processes_of(arena, f);
    battle->executed[row + i] = f->executed;
    battle->processes[row + i] = processes;
    battle->spawned[row + i] = processes + f->deaths - 1;
    if (f->seen) battle->coverage[row + i] = count_seen(f, arena->size);
    s->last_results[i] = processes ? (uint16_t)(arena->count % arena->size) : 0;
  }
}

EXPORT uint32_t shoal_abi_version(void) { return ABI_VERSION; }

EXPORT const char *shoal_build(void) {
#if defined(__clang__)
  return "clang " __clang_version__ ", "
#elif defined(__GNUC__)
  return "gcc " __VERSION__ ", "
#else
  return "unknown compiler, "
#endif
#if SHOAL_COMPUTED_GOTO
  "computed goto";
#else
  "plain switch";
#endif
}

/* Turns rows of (opcode, modifier, A-mode, A-number, B-mode, B-number) into cells. 0: all well. */
EXPORT int shoal_encode(const int32_t *rows, uint32_t count, cell *cells) {
  for (uint32_t i = 0; i < count; i++, rows += 6) {
    if (rows[0] < 0 || rows[0] >= OPCODES || rows[1] < 0 || rows[1] >= MODIFIERS || rows[2] < 0 ||
        rows[2] >= MODES || rows[4] < 0 || rows[4] >= MODES || rows[3] < 0 || rows[3] > 0xffff || rows[5] < 0 ||
        rows[5] > 0xffff)
      return 1;
    cells[i] = make_cell((unsigned)rows[0], (unsigned)rows[1], (unsigned)rows[2], (unsigned)rows[4],
                         (uint32_t)rows[3], (uint32_t)rows[5]);
  }
  return 0;
}

/* Plays every round of every battle. 0: all well, 1: no memory, 2: a number is out of its range, 3: abandoned. */
EXPORT int shoal_play(const struct rules *rules, const struct battle *battles, uint64_t count) {
  uint32_t warriors = 1;
  struct scratch *s;
  for (uint64_t i = 0; i < count; i++) {
    if (!valid(rules, &battles[i])) return 2;
    if (battles[i].warriors > warriors) warriors = battles[i].warriors;
  }
  s = prepare(rules, warriors);
  if (!s) return 1;
  for (uint64_t i = 0; i < count; i++) {
    const struct battle *battle = &battles[i];
    reset_pspace(s, rules, battle);
    for (uint32_t r = 0; r < battle->rounds; r++) {
      if (rules->abandon && *rules->abandon) {
        release(s);
        return 3;
      }
      const uint64_t row = (uint64_t)r * battle->warriors;
      load(&s->arena, battle, battle->positions + row, (battle->first_round + r) % battle->warriors);
      play(&s->arena);
      report(s, battle, row);
    }
    if (battle->core) memcpy(battle->core, s->arena.core, (size_t)rules->size * sizeof(cell));
  }
  release(s);
  return 0;
}

/* Turns cells back into rows, the inverse of shoal_encode. */
EXPORT void shoal_decode(const cell *cells, uint32_t count, int32_t *rows) {
  for (uint32_t i = 0; i < count; i++, rows += 6) {
    const unsigned code = CODE_OF(cells[i]);
    rows[0] = (int32_t)(code / (MODIFIERS * MODES * MODES));
    rows[1] = (int32_t)(code / (MODES * MODES) % MODIFIERS);
    rows[2] = (int32_t)(code / MODES % MODES);
    rows[3] = (int32_t)a_of(cells[i]);
    rows[4] = (int32_t)(code % MODES);
    rows[5] = (int32_t)b_of(cells[i]);
  }
}

/* ---------------------------------------------------------------- recording */

/* One warrior of a recorded round: a ring of `room` processes. */
struct ring {
  uint16_t *cells;
  uint32_t room, first, count;
};

static void push(struct ring *ring, uint32_t address) {
  const uint32_t at = ring->first + ring->count++;
  ring->cells[at < ring->room ? at : at - ring->room] = (uint16_t)address;
}

/* Plays one round of one battle, at most `steps` instructions of it, noting every event; it ends early when
 * there are more than `capacity`, as `count` tells. Where `events` is NULL nothing is noted. `queues` (NULL, or
 * warriors * processes entries) receives each warrior's processes, next first. Return codes as shoal_play. */
EXPORT int shoal_record(const struct rules *rules, const struct battle *battle, uint64_t steps, uint32_t *events,
                        uint64_t capacity, uint64_t *count, uint16_t *queues) {
  struct scratch *s;
  struct recorder recorder = {events, 0, capacity, 0};
  struct ring rings[MAX_WARRIORS];
  uint32_t living = battle->warriors, order[MAX_WARRIORS];
  uint16_t *cells;
  if (!valid(rules, battle) || battle->rounds != 1) return 2;
  s = prepare(rules, battle->warriors);
  cells = malloc((size_t)battle->warriors * rules->processes * sizeof *cells);
  if (!s || !cells) {
    free(cells);
    release(s);
    return 1;
  }
  reset_pspace(s, rules, battle);
  load(&s->arena, battle, battle->positions, battle->first_round % battle->warriors);
  for (uint32_t k = 0; k < living; k++) {
    const uint32_t i = order[k] = s->arena.living[k]->index;
    rings[i].cells = cells + (size_t)i * rules->processes;
    rings[i].room = rules->processes;
    rings[i].first = rings[i].count = 0;
    push(&rings[i], *s->arena.living[k]->head);
    battle->executed[i] = battle->spawned[i] = 0;
  }
  for (uint32_t cycle = 0; cycle < rules->cycles && living && steps; cycle++) {
    for (uint32_t k = 0; k < living && steps; steps--) {
      const uint32_t i = order[k], size = rules->size;
      struct ring *ring = &rings[i];
      const uint32_t pc = ring->cells[ring->first];
      struct outcome o;
      ring->first = ring->first + 1 == ring->room ? 0 : ring->first + 1;
      ring->count--;
      recorder.warrior = i;
      note(&recorder, EVENT_EXECUTE, pc);
      battle->executed[i]++;
      o = execute_recorded(s->arena.core, size, pc, s->arena.core[pc], &s->arena.fighters[i].pspace, &recorder);
      if (events && recorder.count > capacity) steps = 1;
      if (o.fate == DIED) note(&recorder, EVENT_PROCESS_DIES, pc);
      else push(ring, o.next % size);
      if (o.fate == SPLIT && ring->count < rules->processes) {
        push(ring, o.target);
        battle->spawned[i]++;
        note(&recorder, EVENT_SPAWN, o.target);
      }
      if (ring->count) {
        k++;
        continue;
      }
      note(&recorder, EVENT_WARRIOR_DIES, pc);
      living--;
      for (uint32_t j = k; j < living; j++) order[j] = order[j + 1];
      if (rules->stop_at_decision && living == 1 && battle->warriors > 1) steps = 1; /* decided: the last one */
    }
  }
  for (uint32_t i = 0; i < battle->warriors; i++) {
    battle->processes[i] = rings[i].count;
    for (uint32_t k = 0; queues && k < rings[i].count; k++)
      queues[(size_t)i * rules->processes + k] = rings[i].cells[(rings[i].first + k) % rings[i].room];
  }
  if (battle->core) memcpy(battle->core, s->arena.core, (size_t)rules->size * sizeof(cell));
  *count = recorder.count;
  free(cells);
  release(s);
  return 0;
}

#include "placement.h"
