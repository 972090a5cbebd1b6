/* The handlers of one moving warrior: included by loop.h for each side, with SIDE, PC, TAIL, STEP,
 * QUEUE_FULL, QUEUE_EMPTY, FIGHTER and NEXT naming that warrior's state and whose turn comes after. */

#define FINISH(o)                            \
  do {                                       \
    if ((o).fate == DIED) goto LABEL(died);  \
    *TAIL = (uint16_t)(o).next;              \
    TAIL += STEP;                            \
    if ((o).fate == SPLIT && !QUEUE_FULL) {  \
      *TAIL = (uint16_t)(o).target;          \
      TAIL += STEP;                          \
    }                                        \
    NEXT;                                    \
  } while (0)

BEGIN_HANDLERS

#if SHOAL_COMPUTED_GOTO
LABEL(wrap) :
#else
case WRAP_HANDLER:
#endif
{
  /* One of the two sentinels behind the core: the process ran over its end. */
  PC -= size;
  ir = core[PC];
  DISPATCH(SIDE);
}

#define HOT(number, op, mod, am, bm)                                                            \
  HANDLER(number) : {                                                                           \
    const struct outcome o = execute(core, size, PC, ir, op, mod, am, bm, NULL, NULL);          \
    FINISH(o);                                                                                  \
  }
#include "hot_codes.h"
#undef HOT

END_HANDLERS

LABEL(general) : {
  const struct outcome o = execute_any(core, size, PC, ir, &FIGHTER->pspace);
  FINISH(o);
}

LABEL(died) : {
  FIGHTER->deaths++;
  if (QUEUE_EMPTY) goto LABEL(dead);
  NEXT;
}

#undef FINISH
#undef SIDE
#undef PC
#undef TAIL
#undef QUEUE_FULL
#undef QUEUE_EMPTY
#undef FIGHTER
#undef NEXT
