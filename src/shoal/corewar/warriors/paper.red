;redcode-94
;name Ream
;author Shoal
;strategy A silk paper: eight processes copy the program together, and a copy
;strategy is already running while it is being written.
;assert CORESIZE == 8000
;
; THE IDEA
;   A paper does not look for the enemy.  It makes copies of itself faster
;   than the enemy can destroy them, and a program with one copy alive has
;   not lost.
;
; HOW A SILK COPIES
;   Eight processes run through the same code, one behind the other.
;
;       up      spl   @up, ...   each process sends a new process to the
;                                place that the B-field of "up" points at,
;                                and goes on itself
;               mov   }up, >up   each process moves one cell: the A-field of
;                                "up" counts through the paper, the B-field
;                                through the target
;
;   No loop and no counter: eight processes, one move each, eight cells moved.
;   (The paper has seven cells; the eighth is empty and does no harm.)
;   The new processes take their turns between the movers: the first cell of
;   the copy is written just before the first new process executes it.
;
;   After that the A-field of "up" is 8.  The second copy makes use of this
;   and goes backwards ({ and < subtract 1 first), from the last cell to the
;   first.  When it is done the A-field is 0 again, and the eight processes
;   jump to the second copy.
;
; THE CONSTANTS
;   FAR, HOP    Where the two copies go.  All distances between copies should
;               be different for as long as possible, so that a copy does not
;               fall on a good older copy.  Such numbers are found by trial.
;   SHOT, PEEK  Where the bombs go.  Every generation throws a few of them.
;   The numbers suit a core of 8000 cells.
;
; BEATS    Bombers, vampires and gates: there is always one more copy.
; LOSES TO Scanners that lay SPL.  Programs that clear the core with SPL first
;          and DAT afterwards are about even.  Against other papers nearly
;          all rounds are ties.

FAR     equ     307
HOP     equ     4043
SHOT    equ     7645
PEEK    equ     7060

        org     start

        ; Two processes, then four, then eight: SPL 1 sends the new process
        ; to the next cell, where the old one goes as well.
start
n       for     3
        spl     1, 0
        rof

up      spl     @0, >FAR        ; the copy above, written forwards
        mov.i   }up, >up
        mov.i   bomb, >SHOT     ; a bomb; > also spoils a pointer
        mov.i   bomb, }PEEK     ; and another
        mov.i   {up, <down      ; the second copy, written backwards
down    jmp     @0, >HOP
bomb    dat     <2667, <1       ; < in a bomb costs nothing and hurts imps

        end
