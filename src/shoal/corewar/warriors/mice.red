;redcode-94
;name Field Mice
;author Shoal
;strategy A simple replicator: one process copies the program cell by cell,
;strategy starts the copy, and goes on to the next one.
;assert CORESIZE > 500
;
; THE IDEA
;   This is the plain form of the replicator.  A loop copies the program to a
;   far place, SPL starts a process there, and the loop begins again for
;   another place.  Each copy does the same, so their number grows without
;   limit until the core is full of mice.
;
; COMPARED WITH A SILK (see paper.red)
;   The mouse needs a loop: two cycles for each cell, and one process at work
;   in each copy.  A silk is faster, but it needs its processes in step, and
;   one hit disturbs them all.  Each mouse is on its own.
;
; THE CONSTANTS
;   NEST   Where the first copy goes.
;   HOP    How far the next copy is from the last one.  The pointer "trail" is
;          copied with the rest while it is in use, so a young mouse goes on
;          from a pointer that has moved a little.  This keeps mother and
;          daughter from writing to the same places.
;   Both are fractions of the core size, made odd so that copies of copies do
;   not soon fall into the same places.
;
; BEATS    Bombers that throw DATs, and clears of DAT: they kill mice one by
;          one, and the others breed.  Silks mostly tie.
; LOSES TO Whoever uses SPL: scanners with a SPL carpet, SPL clears,
;          incendiary bombs, vampires.  A stunned mouse breeds no more, but
;          takes its share of the turns.

SIZE    equ     (trail-mouse+1)
NEST    equ     ((CORESIZE/7)*2+3)
HOP     equ     ((CORESIZE/11)*4+1)

        org     mouse

mouse   mov.ab  #SIZE, left             ; set the loop counter
        mov.a   #mouse-trail, trail     ; source: my own first cell
copy    mov.i   }trail, >trail          ; A-field: source, B-field: target
left    djn.b   copy, #0
        sub.ab  #SIZE, trail            ; back to the first cell of the copy
        spl     @trail, 0               ; wake it up
        add.ab  #HOP, trail             ; somewhere else next time
        jmp     mouse, 0
trail   dat     #0, #NEST

        end
