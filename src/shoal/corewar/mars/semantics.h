/* The effect of one instruction: the only place where the semantics of Redcode are written in C.
 *
 * `execute` is inlined with constant arguments into the handlers of hot instructions (loop.h), where
 * the compiler folds it to a few machine instructions, and once with run-time arguments as the
 * general handler. The readable specification is tests/corewar/reference.py; both must always agree.
 *
 * A cell is 64 bits, so that MOV.I is one load and one store and SEQ.I one comparison:
 *   bits  0-15  B-number        bits 16-31  A-number
 *   bits 32-45  code = ((opcode * 7 + modifier) * 8 + A-mode) * 8 + B-mode
 *   bits 56-63  number of the handler that executes it (a function of the code)
 * Only whole cells are loaded and stored: a narrow store followed by a wide load would stall.
 */
#ifndef SHOAL_SEMANTICS_H
#define SHOAL_SEMANTICS_H

#include <stdint.h>

typedef uint64_t cell;

/* The order of these is shared with instruction.py. */
enum { DAT, MOV, ADD, SUB, MUL, DIV, MOD, JMP, JMZ, JMN, DJN, CMP, SEQ, SNE, SLT, SPL, NOP, LDP, STP, OPCODES };
enum { M_A, M_B, M_AB, M_BA, M_F, M_X, M_I, MODIFIERS };
enum { IMMEDIATE, DIRECT, A_INDIRECT, B_INDIRECT, A_DECREMENT, B_DECREMENT, A_INCREMENT, B_INCREMENT, MODES };

#define CODE(op, mod, am, bm) ((((op) * MODIFIERS + (mod)) * MODES + (am)) * MODES + (bm))
#define CODES (OPCODES * MODIFIERS * MODES * MODES)
#define CODE_SHIFT 32
#define HANDLER_SHIFT 56
#define HANDLER_OF(c) ((unsigned)((c) >> HANDLER_SHIFT))
#define CODE_OF(c) ((unsigned)((c) >> CODE_SHIFT) & 0x3fff)

#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NEVER_INLINE __attribute__((noinline))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#elif defined(_MSC_VER)
#define ALWAYS_INLINE __forceinline
#define NEVER_INLINE __declspec(noinline)
#define UNLIKELY(x) (x)
#else
#define ALWAYS_INLINE inline
#define NEVER_INLINE
#define UNLIKELY(x) (x)
#endif

/* The fate of the process that executed: it died, goes on at `next`, or split (then `target` is the
 * new one, if the process limit allows). `next` may be size or size + 1: see the sentinels in engine.c. */
enum fate { DIED, CONTINUED, SPLIT };
struct outcome {
  enum fate fate;
  uint32_t next, target;
};

/* The private memory of a warrior. Cell 0 is the result of the last round and is never shared. */
struct pspace {
  uint16_t *cells; /* shared by warriors with the same PIN */
  uint16_t *last_result;
  uint32_t size;
};

/* Where a recorded round notes its events; NULL in every loop that does not record. */
struct recorder {
  uint32_t *events;
  uint64_t count, capacity;
  uint32_t warrior;
};
enum event { EVENT_EXECUTE, EVENT_WRITE, EVENT_SPAWN, EVENT_PROCESS_DIES, EVENT_WARRIOR_DIES };

static ALWAYS_INLINE void note(struct recorder *recorder, enum event kind, uint32_t address) {
  if (recorder) {
    if (recorder->count < recorder->capacity)
      recorder->events[recorder->count] = (uint32_t)kind << 24 | recorder->warrior << 16 | address;
    recorder->count++;
  }
}

static ALWAYS_INLINE uint32_t a_of(cell c) { return (uint32_t)c >> 16; }
static ALWAYS_INLINE uint32_t b_of(cell c) { return (uint32_t)c & 0xffff; }
static ALWAYS_INLINE cell with_a(cell c, uint32_t a) { return (c & ~(cell)0xffff0000u) | (cell)a << 16; }
static ALWAYS_INLINE cell with_b(cell c, uint32_t b) { return (c & ~(cell)0xffffu) | b; }
static ALWAYS_INLINE cell with_ab(cell c, uint32_t a, uint32_t b) {
  return (c & ~(cell)0xffffffffu) | (cell)(a << 16 | b);
}

/* x modulo size for x < 2 * size: the smaller of x and x - size as unsigned numbers, without a branch. */
static ALWAYS_INLINE uint32_t wrap(uint32_t x, uint32_t size) {
  uint32_t y = x - size;
  return y < x ? y : x;
}
static ALWAYS_INLINE uint32_t subtract(uint32_t x, uint32_t y, uint32_t size) {
  uint32_t d = x - y;
  uint32_t e = d + size;
  return e < d ? e : d; /* d underflowed to a huge number exactly when the sum wraps to a small one */
}
static ALWAYS_INLINE cell decrement_a(cell c, uint32_t size) {
  return a_of(c) ? c - 0x10000u : c + ((cell)(size - 1) << 16);
}
static ALWAYS_INLINE cell decrement_b(cell c, uint32_t size) { return b_of(c) ? c - 1 : c + (size - 1); }
static ALWAYS_INLINE cell increment_a(cell c, uint32_t size) {
  return a_of(c) + 1 < size ? c + 0x10000u : c - ((cell)(size - 1) << 16);
}
static ALWAYS_INLINE cell increment_b(cell c, uint32_t size) {
  return b_of(c) + 1 < size ? c + 1 : c - (size - 1);
}

#define STEPS_BACK(mode) ((mode) == A_DECREMENT || (mode) == B_DECREMENT)
#define STEPS_ON(mode) ((mode) == A_INCREMENT || (mode) == B_INCREMENT)
#define HAS_SIDE_EFFECT(mode) ((mode) >= A_DECREMENT)

static ALWAYS_INLINE void store(cell *core, uint32_t address, cell value, struct recorder *recorder) {
  core[address] = value;
  note(recorder, EVENT_WRITE, address);
}

/* Resolves one operand, with its decrement or increment: the address it names and a copy of the cell
 * there. An immediate operand names the executing cell, and its copy is the instruction register. The
 * copy is taken after a decrement and before an increment. */
static ALWAYS_INLINE uint32_t resolve(cell *core, uint32_t size, uint32_t pc, cell ir, unsigned mode,
                                      uint32_t number, cell *copy, struct recorder *recorder) {
  uint32_t pointer, address;
  cell c;
  if (mode == IMMEDIATE) {
    *copy = ir;
    return pc;
  }
  pointer = wrap(pc + number, size);
  if (mode == DIRECT) {
    *copy = core[pointer];
    return pointer;
  }
  c = core[pointer];
  if (STEPS_BACK(mode)) {
    c = mode == A_DECREMENT ? decrement_a(c, size) : decrement_b(c, size);
    store(core, pointer, c, recorder);
  }
  if (mode == A_INDIRECT || mode == A_DECREMENT || mode == A_INCREMENT)
    address = wrap(pointer + a_of(c), size);
  else
    address = wrap(pointer + b_of(c), size);
  *copy = core[address];
  if (STEPS_ON(mode)) store(core, pointer, mode == A_INCREMENT ? increment_a(c, size) : increment_b(c, size), recorder);
  return address;
}

static ALWAYS_INLINE struct outcome go_on(uint32_t next) {
  struct outcome o = {CONTINUED, next, 0};
  return o;
}
static ALWAYS_INLINE struct outcome die(void) {
  struct outcome o = {DIED, 0, 0};
  return o;
}
/* Both ways are cheap, and which one is taken is hard to predict: a conditional move, not a branch. */
static ALWAYS_INLINE struct outcome choose(int condition, uint32_t taken, uint32_t otherwise) {
  return go_on(otherwise + ((taken - otherwise) & (0u - (uint32_t)condition)));
}

static ALWAYS_INLINE uint32_t calculate(unsigned op, uint32_t x, uint32_t y, uint32_t size) {
  switch (op) {
  case ADD: return wrap(x + y, size);
  case SUB: return subtract(x, y, size);
  default: return (x * y) % size; /* both below 2^16: the product fits in 32 bits */
  }
}
static ALWAYS_INLINE uint32_t divide(unsigned op, uint32_t x, uint32_t y) { return op == DIV ? x / y : x % y; }

/* Executes the instruction `ir` of the cell at `pc`. */
static ALWAYS_INLINE struct outcome execute(cell *core, uint32_t size, uint32_t pc, cell ir, unsigned op,
                                            unsigned mod, unsigned am, unsigned bm, struct pspace *pspace,
                                            struct recorder *recorder) {
  cell av, bv, target;
  uint32_t aa = resolve(core, size, pc, ir, am, a_of(ir), &av, recorder);
  uint32_t ba = resolve(core, size, pc, ir, bm, b_of(ir), &bv, recorder);
  uint32_t a1, b1, a2, b2; /* operand numbers as the modifier pairs them: (a1 with b1), (a2 with b2) */

  /* The present content of the target cell. It differs from the register copy when the B operand has just
   * incremented it, or when B is immediate and the A operand changed the executing cell. */
  target = (STEPS_ON(bm) || (bm == IMMEDIATE && HAS_SIDE_EFFECT(am))) ? core[ba] : bv;

  a1 = (mod == M_B || mod == M_BA || mod == M_X) ? b_of(av) : a_of(av);
  b1 = (mod == M_B || mod == M_AB) ? b_of(bv) : a_of(bv);
  a2 = mod == M_X ? a_of(av) : b_of(av);
  b2 = b_of(bv);

#define WRITES_A (mod == M_A || mod == M_BA)
#define WRITES_B (mod == M_B || mod == M_AB)
  switch (op) {
  case DAT: return die();
  case NOP: return go_on(pc + 1);
  case JMP: return go_on(aa);
  case SPL: {
    struct outcome o = {SPLIT, pc + 1, aa};
    return o;
  }
  case MOV:
    if (mod == M_I) target = av;
    else if (WRITES_A) target = with_a(target, a1);
    else if (WRITES_B) target = with_b(target, a1);
    else target = with_ab(target, a1, a2);
    store(core, ba, target, recorder);
    return go_on(pc + 1);
  case ADD: case SUB: case MUL:
    if (WRITES_A) target = with_a(target, calculate(op, b1, a1, size));
    else if (WRITES_B) target = with_b(target, calculate(op, b1, a1, size));
    else target = with_ab(target, calculate(op, b1, a1, size), calculate(op, b2, a2, size));
    store(core, ba, target, recorder);
    return go_on(pc + 1);
  case DIV: case MOD:
    /* A zero divisor kills the process, after the half that can be computed was written. */
    if (WRITES_A || WRITES_B) {
      if (!a1) return die();
      target = WRITES_A ? with_a(target, divide(op, b1, a1)) : with_b(target, divide(op, b1, a1));
    } else {
      if (!a1 && !a2) return die();
      if (a1) target = with_a(target, divide(op, b1, a1));
      if (a2) target = with_b(target, divide(op, b2, a2));
    }
    store(core, ba, target, recorder);
    if (!(WRITES_A || WRITES_B) && (!a1 || !a2)) return die();
    return go_on(pc + 1);
  case JMZ: case JMN: {
    int zero = WRITES_A ? !a_of(bv) : WRITES_B ? !b_of(bv) : !(uint32_t)bv;
    return choose(op == JMZ ? zero : !zero, aa, pc + 1);
  }
  case DJN: {
    /* The core is decremented; the register copy is tested. */
    int last;
    if (WRITES_A) last = a_of(bv) == 1, target = decrement_a(target, size);
    else if (WRITES_B) last = b_of(bv) == 1, target = decrement_b(target, size);
    else last = (uint32_t)bv == 0x10001u, target = decrement_a(decrement_b(target, size), size);
    store(core, ba, target, recorder);
    return choose(!last, aa, pc + 1);
  }
  case CMP: case SEQ: case SNE: {
    int equal = mod == M_I ? av == bv : (WRITES_A || WRITES_B) ? a1 == b1 : (a1 == b1) & (a2 == b2);
    return go_on(pc + 1 + (uint32_t)(op == SNE ? !equal : equal));
  }
  case SLT: {
    int less = (WRITES_A || WRITES_B) ? a1 < b1 : (a1 < b1) & (a2 < b2);
    return go_on(pc + 1 + (uint32_t)less);
  }
  case LDP: case STP: {
    /* .F, .X and .I act like .B. */
    uint32_t from = (mod == M_A || mod == M_AB) ? a_of(av) : b_of(av);
    uint32_t to = WRITES_A ? a_of(bv) : b_of(bv);
    uint32_t index = (op == LDP ? from : to) % pspace->size;
    uint16_t *where = index ? &pspace->cells[index] : pspace->last_result;
    if (op == STP) *where = (uint16_t)from;
    else store(core, ba, WRITES_A ? with_a(target, *where) : with_b(target, *where), recorder);
    return go_on(pc + 1);
  }
  }
#undef WRITES_A
#undef WRITES_B
  return die(); /* not reached: every opcode is above */
}

#endif
