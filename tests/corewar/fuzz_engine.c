/* Plays rounds between random load files under AddressSanitizer and UBSan: `fuzz_engine SEED ROUNDS`.
 *
 * The engine is compiled into this program, so that every access it makes is watched. Programs, sizes,
 * limits and positions are random, including a core of one cell, empty programs and starts outside of the
 * program; numbers out of range must be refused. Prints what was played. */
#include "engine.c"

#include <stdio.h>

static uint64_t state;
static uint32_t draw(uint32_t bound) { return below(&state, bound); }
static uint32_t pick(const uint32_t *from, uint32_t count) { return from[draw(count)]; }

static uint32_t number(uint32_t size) {
  const uint32_t small = draw(17);
  if (draw(10) < 7) return (small + 8 * size - 8) % size;
  return draw(3) ? draw(size) : (size / 2 + small) % size;
}

int main(int argc, char **argv) {
  static const uint32_t sizes[] = {1, 2, 3, 5, 13, 80, 127, 800, 8000, 65533};
  static const uint32_t limits[] = {1, 2, 5, 64, 8000};
  static const uint32_t lengths[] = {0, 1, 2, 5, 20, 100};
  static const uint32_t cycles[] = {1, 2, 50, 400, 1500};
  uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000, executed = 0, files = 0, refused = 0;
  state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  for (uint64_t r = 0; r < rounds; r++) {
    enum { MOST = 12, LONGEST = 100 };
    cell code[MOST][LONGEST];
    struct program programs[MOST];
    uint32_t positions[3 * MOST], results[4][3 * MOST];
    struct rules rules = {pick(sizes, 10), pick(cycles, 5), pick(limits, 5), 1, draw(2), draw(2), NULL};
    struct battle battle = {programs, positions, results[0], results[1], results[2], results[3], NULL, 1, 1 + draw(3), draw(9), 0};
    int expected = 0, got;
    if (rules.size == 65533 && draw(20)) rules.size = 80; /* rarely: clearing so large a core takes long */
    rules.pspace_size = 1 + draw(rules.size < 20 ? rules.size : 20);
    battle.warriors = draw(3) ? 2 : 1 + draw(MOST);
    for (uint32_t w = 0; w < battle.warriors; w++) {
      uint32_t length = pick(lengths, 6);
      if (length > rules.size) length = rules.size;
      for (uint32_t k = 0; k < length; k++) {
        const int32_t row[6] = {(int32_t)draw(OPCODES), (int32_t)draw(MODIFIERS), (int32_t)draw(MODES),
                                (int32_t)number(rules.size), (int32_t)draw(MODES), (int32_t)number(rules.size)};
        if (shoal_encode(row, 1, &code[w][k])) return 1;
      }
      programs[w] = (struct program){code[w], length, draw(rules.size), (int32_t)draw(3) - 1, 0};
      files++;
    }
    for (uint32_t k = 0; k < battle.rounds * battle.warriors; k++) positions[k] = draw(rules.size);
    switch (draw(40)) { /* what must be refused */
    case 0: positions[0] = rules.size + draw(5), expected = 2; break;
    case 1: programs[0].start = rules.size, expected = 2; break;
    case 2: rules.processes = 0, expected = 2; break;
    case 3: rules.cycles = 0, expected = 2; break;
    case 4: battle.warriors = draw(2) ? 0 : MAX_WARRIORS + 1, expected = 2; break;
    case 5: rules.size = draw(2) ? 0 : MAX_CORE_SIZE + 1, expected = 2; break;
    default: break;
    }
    got = shoal_play(&rules, &battle, 1);
    if (got != expected) {
      printf("round %llu: returned %d, expected %d\n", (unsigned long long)r, got, expected);
      return 1;
    }
    if (got) {
      refused++;
      continue;
    }
    for (uint32_t k = 0; k < battle.rounds * battle.warriors; k++) {
      executed += results[0][k];
      if (results[0][k] > rules.cycles || results[2][k] > rules.processes) return 1;
      if (rules.statistics && results[3][k] > rules.size) return 1;
    }
    if (!draw(4)) {
      uint32_t events[256];
      uint64_t count;
      battle.rounds = 1;
      if (shoal_record(&rules, &battle, draw(500), events, 256, &count, NULL)) return 1;
    }
  }
  printf("%llu load files, %llu instructions, %llu refused\n", (unsigned long long)files,
         (unsigned long long)executed, (unsigned long long)refused);
  return 0;
}
