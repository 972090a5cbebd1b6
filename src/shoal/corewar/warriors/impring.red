;redcode-94
;name Carousel
;author Shoal
;strategy A three-point imp spiral: eight processes run through the core as
;strategy imps that keep each other alive.
;assert CORESIZE % 3 == 2 && CORESIZE > 100
;
; THE IDEA
;   A lone imp dies by one bomb.  In a ring an imp does not copy itself to the
;   next cell but a third of the core away, to where the next imp process is
;   about to execute.  So no process depends on the cell it wrote itself:
;   each walks on copies that were written a third of the core away.
;
; THE CONSTANT
;   D      3 * D must be CORESIZE + 1.  From imp, three jumps of D go once
;          round the core and arrive at imp + 1: the third process writes the
;          cell that the first one executes next.  This needs a core size
;          that leaves 2 when divided by 3; for 8000 cells D is 2667.
;   PROCS  With more processes than points the ring becomes a spiral: each of
;          the three arms is several processes long, and a bomb which cuts an
;          arm does not kill the rest of it.
;
; THE LAUNCH
;   Process k has to start at imp + k*D, and they must start in this order.
;   Three SPL 1 make eight processes in a row.  They all execute the same JMP,
;   whose target is read from a table: after each use, }0 adds 1 to the JMP's
;   own A-field, so that the next process reads the next entry.
;
; BEATS    Imps, and bombers that rely on DAT alone: the arms walk over them.
;          Unlike a lone imp, a ring can win in this way.
; LOSES TO Gates (gate.red), scanners, vampires and papers.
;          Clears and mice mostly tie with it.  Often an imp spiral is
;          added to a bomber as an insurance (see stoneimp.red).

D       equ     ((CORESIZE+1)/3)
PROCS   equ     8

        org     start

start   spl     1, 0
        spl     1, 0
        spl     1, 0
launch  jmp     *table, }0

table
k       for     PROCS
        dat     imp+(k-1)*D, 0
        rof

n       for     10
        dat     0, 0            ; a little distance from the launcher
        rof

imp     mov.i   $0, $D

        end
