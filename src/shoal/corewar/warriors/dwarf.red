;redcode-94
;name Dwarf With A Broom
;author Shoal
;strategy Throws DAT bombs at every fifth cell, in an order that spreads
;strategy them evenly, then sweeps the core cell by cell.
;assert CORESIZE == 8000
;
; THE IDEA
;   A process that executes a DAT dies.  The dwarf writes DATs all over the
;   core, without looking, and hopes to hit the enemy's code before the enemy
;   hits its own.  Bombers like this one are called stones.
;
; THE CONSTANTS
;   STEP   How far apart two bombs fall.  The greatest common divisor of STEP
;          and the core size decides which cells are bombed:
;          gcd(3055, 8000) = 5, so the bombs fall on every fifth cell, and
;          any program of five or more cells in a row is hit for certain.
;          3055 is about 0.38 times the core (the golden section): at every
;          moment the bombs thrown so far are spread evenly, so a long
;          program is hit early.
;   FIRST  The tour starts from the dwarf's own DJN, three cells after ptr, and
;          would come back to it with bomb 8000 / 5 = 1600.  No other cell of
;          the dwarf is a multiple of five away from that DJN: the dwarf is
;          eight cells long, and only its first three and last three cells
;          have a partner five cells away.
;   TOUR   So the dwarf throws 1599 bombs and stops just before the one that
;          would hit itself.
;
; THE BROOM
;   Every fifth cell is not every cell: programs of one to four cells can sit
;   between the bombs.  So after the tour the dwarf clears the core, cell by
;   cell, upwards.  When the sweep has come round and arrives at ptr, the
;   broom is written over ptr itself.  Its B-field, AFTER, is then the new
;   pointer, and it points past the dwarf.  The sweep jumps over its own code
;   and starts again.
;
; TO TRY
;   The bomb is DAT 0, 0 and looks like empty core.  Write DAT #0, #1 instead:
;   now scanners see the bombs, stop for them and lose time, and the dwarf does
;   better against scanner.red.
;
; BEATS    Imps and large programs with one process, such as vampire.red and
;          carpet.red: one bomb in the right cell is the end of them.
; LOSES TO Papers, which make copies faster than it can bomb them, and all
;          programs with many processes, since a DAT kills only one of them
;          at a time.  Against a scanner it is a close race, with
;          the scanner slightly ahead: it sees more cells per cycle than the
;          dwarf bombs, but it is larger and easier to hit.

STEP    equ     3055
FIRST   equ     (turn-ptr)
TOUR    equ     (CORESIZE/5-1)
AFTER   equ     (broom-ptr+3)

        org     loop

ptr     dat     #0, #FIRST      ; the B-field points at the last target
loop    add.ab  #STEP, ptr      ; next target
        mov.i   bomb, @ptr      ; @ = the cell that the B-field points at
turn    djn.b   loop, #TOUR     ; subtract 1 from TOUR; jump if not zero
sweep   mov.i   broom, >ptr     ; > = the same, then add 1 to the pointer
        jmp     sweep, 0
bomb    dat     0, 0
broom   dat     #0, #AFTER      ; B: the pointer for the next sweep

        end
