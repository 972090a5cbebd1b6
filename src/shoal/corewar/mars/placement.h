/* Where warriors stand: as pMARS places them from a seed, or at random. Included once by engine.c. The caller
 * (placement.py) checks that there is room. */

/* The minimal standard generator of Park and Miller, which pMARS uses; also for negative states. */
static int64_t next_minimal(int64_t state) {
  const int64_t next = 16807 * (state % 127773) - 2836 * (state / 127773);
  return next < 0 ? next + 2147483647 : next;
}

/* SplitMix64, whose outputs for consecutive states are independent for our purpose. */
static uint64_t next_split(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* The next number below `bound` of either generator. */
static uint32_t minimal_below(void *seed, uint32_t bound) {
  int64_t *const state = seed;
  *state = next_minimal(*state);
  return (uint32_t)(*state % (int64_t)bound);
}
static uint32_t below(void *state, uint32_t bound) {
  return (uint32_t)(((next_split(state) >> 32) * bound) >> 32);
}

static uint32_t distance_of(uint32_t x, uint32_t y) { return x < y ? y - x : x - y; }

/* Draws places until they are far enough apart. Gives up (0) after a few attempts, as pMARS does. */
static int place_by_trial(uint32_t size, uint32_t distance, uint32_t warriors, int64_t *seed, uint32_t *row) {
  uint32_t placed = 1, tries = 20, returns = 4;
  while (placed < warriors) {
    const uint32_t place = minimal_below(seed, size - 2 * distance + 1) + distance;
    uint32_t clash = 1;
    while (clash < placed && distance_of(place, row[clash]) >= distance) clash++;
    if (clash == placed) {
      row[placed++] = place;
    } else if (!returns) {
      return 0;
    } else if (tries) {
      tries--;
    } else { /* go back to the warrior in the way and place it anew */
      placed = clash;
      returns--;
      tries = 20;
    }
  }
  return 1;
}

/* Deals out the free room between the warriors, then shuffles who stands where: always succeeds. */
static void place_by_gaps(uint32_t size, uint32_t distance, uint32_t warriors,
                          uint32_t (*draw_below)(void *state, uint32_t bound), void *state, uint32_t *row) {
  for (uint32_t k = 1; k < warriors; k++) {
    uint32_t gap = draw_below(state, size - distance * warriors + 1), at = k;
    for (; at > 1 && gap < row[at - 1]; at--) row[at] = row[at - 1];
    row[at] = gap;
  }
  for (uint32_t k = 1; k < warriors; k++) row[k] += k * distance;
  for (uint32_t k = 1; k < warriors; k++) {
    const uint32_t other = k + draw_below(state, warriors - k), swap = row[k];
    row[k] = row[other];
    row[other] = swap;
  }
}

/* Places as pMARS does for this seed, the first warrior at 0. */
EXPORT void shoal_place_pmars(uint32_t size, uint32_t distance, uint32_t warriors, uint64_t rounds, int64_t seed,
                              uint32_t *positions) {
  for (uint64_t r = 0; r < rounds; r++, positions += warriors) {
    positions[0] = 0;
    if (warriors == 2) {
      positions[1] = distance + (uint32_t)(seed % (int64_t)(size - 2 * distance + 1));
      seed = next_minimal(seed);
    } else if (warriors > 2 && !place_by_trial(size, distance, warriors, &seed, positions)) {
      place_by_gaps(size, distance, warriors, minimal_below, &seed, positions);
    }
  }
}

/* Places at random, every legal arrangement equally likely (up to the 2^-32 grain of the draw), each
 * round from (seed, its number) alone: rounds can be played in any order or on other threads. */
EXPORT void shoal_place_random(uint32_t size, uint32_t distance, uint32_t warriors, uint64_t rounds,
                               uint64_t first_round, uint64_t seed, uint32_t *positions) {
  for (uint64_t r = 0; r < rounds; r++, positions += warriors) {
    uint64_t state = seed, mixed = next_split(&state) ^ (first_round + r);
    state = next_split(&mixed);
    positions[0] = 0;
    place_by_gaps(size, distance, warriors, below, &state, positions);
  }
}
