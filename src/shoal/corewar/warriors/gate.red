;redcode-94
;name Toll Gate
;author Shoal
;strategy Throws one tour of bombs, then shuts an imp gate and waits.
;assert CORESIZE == 8000
;
; THE IDEA
;   An imp copies itself into a cell in one turn and executes that cell in
;   the next.  Whoever changes the cell in between breaks the imp.  An imp gate
;   is a cell that is decremented in EVERY cycle:
;
;       wait    jmp   wait, <gate
;
;   The jump goes nowhere, but its B-operand subtracts 1 from the B-field of
;   gate, again and again.  An imp MOV 0, 1 that arrives there becomes
;   MOV 0, 0, copies itself onto itself, and its process steps on to an
;   empty cell and dies.  The imps of a ring or spiral lose each other in the
;   same way when an arm passes the gate.
;
; THE BOMBS
;   A gate alone beats nothing but imps.  This program first throws a tour of
;   DAT bombs, as a dwarf does (see dwarf.red for the choice of STEP), with
;   two bombs for each turn of the loop.
;   STEP   gcd(3070, 8000) = 10, and the two bombs fall 5 cells apart.
;   TOUR   8000 / 10 = 800 turns; the last one, which would hit the program
;          itself, is left out.
;
; THE GATE CELL
;   GATE is a few cells below the program, since imps come from below.  The
;   imp must meet the gate before it meets the program.
;
; BEATS    Imps and imp rings, and whatever its bombs hit in time: large
;          programs such as vampires.
; LOSES TO Papers and clears.  When the tour is over it does not attack any
;          more, and it has only one process to lose.

STEP    equ     3070
TOUR    equ     (CORESIZE/10-1)
GATE    equ     (ptr-4)

        org     loop

ptr     dat     #throw-ptr+5, #throw-ptr
loop    add.f   inc, ptr
throw   mov.i   bomb, @ptr
        mov.i   bomb, *ptr
        djn.b   loop, #TOUR
wait    jmp     wait, <GATE
inc     dat     #STEP, #STEP
bomb    dat     #0, #0

        end
