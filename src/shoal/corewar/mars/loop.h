/* The main loop, included three times by engine.c: for one warrior (SOLO), two (PAIR) and more (MANY).
 *
 * An instruction that is executed often has a handler of its own (hot_codes.h), and in PAIR one for each
 * of the two warriors: a handler ends by dispatching the *other* warrior's next instruction, so nothing
 * returns to a common place and the state of both queues stays in registers. The next program counter of
 * a warrior is fetched as soon as its instruction is done, one turn before it is needed.
 *
 * Every warrior executes exactly one instruction per cycle, so one position serves all queues. PAIR
 * interleaves its two queues (the process to execute is head[0] for the first warrior and head[1] for
 * the second); MANY indexes each warrior's own queue by the cycle.
 *
 * Queues only grow: taking a process advances the head, adding one advances the tail, and the driver
 * moves the remaining entries to the start of the buffer between chunks. So a queue is also the record
 * of every address the warrior was given, from which coverage is counted between chunks.
 *
 * Runs until `chunk` cycles are done, or until a death leaves so few that the driver has to decide.
 * Leaves head, tail, executed and deaths of each fighter as they are then.
 */

#define JOIN_(a, b, c) a##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define LABEL(name) JOIN(side, SIDE, name)
#define DISPATCH(number) DISPATCH_(number)

#if SHOAL_COMPUTED_GOTO
#define HANDLER(number) LABEL(number)
#define DISPATCH_(number) goto *labels_of_side##number[HANDLER_OF(ir)]
#define BEGIN_HANDLERS
#define END_HANDLERS
#else
#define HANDLER(number) case number
#define DISPATCH_(number) goto side##number##_dispatch
#define BEGIN_HANDLERS LABEL(dispatch) : switch (HANDLER_OF(ir)) {
#define END_HANDLERS default: goto LABEL(general); }
#endif

#if LOOP == LOOP_SOLO
static void run_solo(struct arena *arena, uint32_t chunk) {
  struct fighter *const only = arena->living[0];
#elif LOOP == LOOP_PAIR
static void run_pair(struct arena *arena, uint32_t chunk) {
  struct fighter *const one = arena->living[0], *const two = arena->living[1];
#else
static void run_many(struct arena *arena, uint32_t chunk) {
#endif
  cell *const core = arena->core;
  const uint32_t size = arena->size;
  cell ir;

#if SHOAL_COMPUTED_GOTO
#define HOT(number, op, mod, am, bm) [number] = &&LABEL(number),
#define SIDE 1
  static const void *const labels_of_side1[HANDLERS] = {
      [0 ... HANDLERS - 1] = &&LABEL(general), [WRAP_HANDLER] = &&LABEL(wrap),
#include "hot_codes.h"
  };
#undef SIDE
#if LOOP == LOOP_PAIR
#define SIDE 2
  static const void *const labels_of_side2[HANDLERS] = {
      [0 ... HANDLERS - 1] = &&LABEL(general), [WRAP_HANDLER] = &&LABEL(wrap),
#include "hot_codes.h"
  };
#undef SIDE
#endif
#undef HOT
#endif

#if LOOP == LOOP_SOLO
  uint16_t *head = only->head, *tail = only->tail;
  uint16_t *const start = head, *const end = head + chunk;
  const ptrdiff_t full = (ptrdiff_t)arena->processes + 1;
  uint32_t pc = *head;
  ir = core[pc];
  DISPATCH(1);
#define SIDE 1
#define PC pc
#define TAIL tail
#define STEP 1
#define QUEUE_FULL (tail - head >= full)
#define QUEUE_EMPTY (tail == head + 1)
#define FIGHTER only
#define NEXT                     \
  do {                           \
    head++;                      \
    if (head == end) goto leave; \
    pc = *head;                  \
    ir = core[pc];               \
    DISPATCH(1);                 \
  } while (0)
#include "handlers.h"
side1_dead:
  head++;
leave:
  only->head = head;
  only->tail = tail;
  only->executed += (uint32_t)(head - start);

#elif LOOP == LOOP_PAIR
  uint16_t *head = one->head, *tail1 = one->tail, *tail2 = two->tail;
  uint16_t *const start = head, *const end = head + 2 * (size_t)chunk;
  const ptrdiff_t full = 2 * ((ptrdiff_t)arena->processes + 1);
  uint32_t pc1 = head[0], pc2 = head[1];
  ir = core[pc1];
  DISPATCH(1);
#define STEP 2
#define SIDE 1
#define PC pc1
#define TAIL tail1
#define QUEUE_FULL (tail1 - head >= full)
#define QUEUE_EMPTY (tail1 == head + 2)
#define FIGHTER one
#define NEXT         \
  do {               \
    pc1 = head[2];   \
    ir = core[pc2];  \
    DISPATCH(2);     \
  } while (0)
#include "handlers.h"
#define SIDE 2
#define PC pc2
#define TAIL tail2
#define QUEUE_FULL (tail2 - (head + 1) >= full)
#define QUEUE_EMPTY (tail2 == head + 3)
#define FIGHTER two
#define NEXT                     \
  do {                           \
    pc2 = head[3];               \
    head += 2;                   \
    if (head == end) goto leave; \
    ir = core[pc1];              \
    DISPATCH(1);                 \
  } while (0)
#include "handlers.h"
side1_dead: /* the second warrior has not had its turn of this cycle */
  one->head = head + 2;
  two->head = head + 1;
  one->executed += (uint32_t)((head - start) / 2) + 1;
  two->executed += (uint32_t)((head - start) / 2);
  one->tail = tail1;
  two->tail = tail2;
  return;
side2_dead:
  head += 2;
leave:
  one->head = head;
  two->head = head + 1;
  one->executed += (uint32_t)((head - start) / 2);
  two->executed += (uint32_t)((head - start) / 2);
  one->tail = tail1;
  two->tail = tail2;

#else
  struct slot {
    uint16_t *queue, *tail; /* queue[t] is the process to execute in cycle t of this chunk */
    struct fighter *fighter;
  } slots[MAX_WARRIORS], *w = slots, *last = slots + arena->count; /* last: behind the living */
  const ptrdiff_t full = (ptrdiff_t)arena->processes + 1;
  uint32_t t = 0, pc;
  uint16_t *tail;
  for (uint32_t i = 0; i < arena->count; i++) {
    slots[i].queue = arena->living[i]->head;
    slots[i].tail = arena->living[i]->tail;
    slots[i].fighter = arena->living[i];
  }
  pc = w->queue[0];
  tail = w->tail;
  ir = core[pc];
  DISPATCH(1);
#define STEP 1
#define SIDE 1
#define PC pc
#define TAIL tail
#define QUEUE_FULL (tail - (w->queue + t) >= full)
#define QUEUE_EMPTY (tail == w->queue + t + 1)
#define FIGHTER w->fighter
#define NEXT                                  \
  do {                                        \
    w->tail = tail;                           \
    w++;                                      \
    if (w == last) {                          \
      w = slots;                              \
      t++;                                    \
      if (t == chunk) goto leave;             \
    }                                         \
    pc = w->queue[t];                         \
    tail = w->tail;                           \
    ir = core[pc];                            \
    DISPATCH(1);                              \
  } while (0)
#include "handlers.h"
side1_dead:
  w->fighter->executed += t + 1;
  w->fighter->head = w->fighter->tail = tail;
  last--;
  for (struct slot *s = w; s < last; s++) s[0] = s[1];
  if (last - slots == 1 && arena->stop_at_decision) {
    /* Decided at once: the survivor may or may not have had its turn of this cycle. */
    struct fighter *survivor = slots[0].fighter;
    const uint32_t moved = t + (w != slots);
    survivor->executed += moved;
    survivor->head = slots[0].queue + moved;
    survivor->tail = slots[0].tail;
    return;
  }
  if (last - slots <= 2) chunk = t + 1; /* finish this cycle, then go on in a loop for fewer */
  if (w == last) {
    w = slots;
    t++;
    if (t == chunk) goto leave;
  }
  pc = w->queue[t];
  tail = w->tail;
  ir = core[pc];
  DISPATCH(1);
leave:
  for (struct slot *s = slots; s < last; s++) {
    s->fighter->executed += t;
    s->fighter->head = s->queue + t;
    s->fighter->tail = s->tail;
  }
#endif
}

#undef STEP
#undef JOIN_
#undef JOIN
#undef LABEL
#undef HANDLER
#undef DISPATCH
#undef DISPATCH_
#undef BEGIN_HANDLERS
#undef END_HANDLERS
#undef LOOP
