;redcode-94
;name Lookout
;author Shoal
;strategy Compares pairs of cells; where they differ it lays a carpet of SPL
;strategy over the place.  When the whole core has been seen it clears it.
;assert CORESIZE == 8000
;
; THE IDEA
;   A bomber wastes most of its bombs on empty cells.  A scanner looks first.
;   It compares two cells; in an empty core they are equal, and one
;   comparison checks two cells at once.  Three instructions see two cells,
;   so this scanner sees two thirds of a cell per cycle, while a simple
;   bomber bombs one third of a cell per cycle.
;
; THE CONSTANTS
;   GAP    The two cells of a pair are GAP cells apart.
;   STEP   gcd(3070, 8000) = 10 = 2 * GAP.  After 800 pairs the two pointers
;          together have looked at every fifth cell of the core.  3070 is
;          near 0.38 times the core, so that they spread evenly.
;   WIDTH  How many cells are carpeted.  The carpet starts at the lower cell
;          of the pair and has to cover the program wherever the pair met it.
;   ROOM   The scanner must not attack itself.  ptr is put ROOM empty cells in
;          front of the code.  Everything from ptr to the end of the code is
;          one window, and one SLT (skip if less than) tells whether the
;          upper pointer is beyond it.  ROOM is larger than WIDTH, so
;          that a carpet which starts just before ptr ends before the code.
;
; THE ATTACK
;   SPL 0 starts a new process in the same place and lets the old one go on
;   to the next SPL 0.  The enemy is not killed, but soon has hundreds of
;   useless processes that share its turns, so its real code hardly runs.
;   The clear at the end then has all the time in the world.
;
; BEATS    Imps, clears, simple replicators, incendiary bombers, vampires, and
;          the papers of this set more often than not.
; EVEN     Bombers whose step spreads the bombs well: the scanner sees more
;          cells per cycle than they bomb, but it is the larger target.
; LOSES TO Decoys and visible bombs cost it time, since it stops for them as
;          for anything else; a bomber that leaves many of them gets ahead.

GAP     equ     5
STEP    equ     3070
PAIRS   equ     (CORESIZE/(2*GAP))
WIDTH   equ     14
ROOM    equ     18
WINDOW  equ     (last-ptr+GAP+1)

        org     loop

ptr     dat     #STEP-GAP, #STEP        ; A: lower cell, B: upper cell

n       for     ROOM
        dat     0, 0                    ; looks like empty core
        rof

loop    add.f   inc, ptr                ; move both pointers
        seq.i   *ptr, @ptr              ; equal: skip the next instruction
        slt.ab  #WINDOW, ptr            ; beyond my window: skip the next one
count   djn.b   loop, #PAIRS            ; nothing here, go on

        ; Something is there (or all pairs are done: one carpet is wasted).
lay     mov.i   carpet, }ptr            ; } = through the A-field, then add 1
width   djn.b   lay, #WIDTH
        add.ab  #WIDTH, width           ; width is 0 now: set it again
        sub.a   #WIDTH, ptr             ; put the lower pointer back
        jmn.b   loop, count             ; go on while pairs are left

        ; All seen.  Clear the core.  SPL #0 makes a stream of processes.
        mov.i   start, ptr
clear   spl     #0, 0
        mov.i   bomb, >ptr
        mov.i   bomb, >ptr
        jmp     -2
inc     dat     #STEP, #STEP
carpet  spl     #0, 0
start   dat     #0, #last-ptr+5
last
bomb    dat     #0, #last-ptr+5         ; its B-field jumps over this code

        end
