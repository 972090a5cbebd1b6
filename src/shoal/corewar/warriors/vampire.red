;redcode-94
;name Night Shift
;author Shoal
;strategy Throws JMP instructions (fangs) that all lead into a pit, where the
;strategy captured processes split for ever.  Then it clears the core.
;assert CORESIZE == 8000
;
; THE IDEA
;   A DAT kills one process.  A fang captures it: the bomb is a JMP into a pit
;   inside the vampire, where SPL makes the captured process multiply.  Each
;   new process takes a share of the enemy's turns, and the enemy's real code
;   becomes slower and slower.  Nobody dies yet; at the end a core clear
;   kills what has been slowed down, the pit last of all.
;
; THE FANG
;   Addresses are relative, so every fang must be different: a fang that
;   lands x cells further up has to jump x cells further down.  The fang is its
;   own pointer: its B-field says where it goes, its A-field where it leads.
;   One ADD.F changes both, the B-field by +STEP and the A-field by -STEP.
;
; THE CONSTANTS
;   STEP   gcd(3055, 8000) = 5: the fangs fall on every fifth cell, counted
;          from the fang itself.  So inside the vampire every fifth cell must
;          be one that may be hit.  The cell "spare" is there for that, and
;          so is the empty cell at the top.  The last fang of the tour falls
;          on the fang itself and changes nothing.
;   AFTER  The bomb of the clear overwrites its own pointer when the sweep
;          comes round; its B-field then leads past the vampire's code.
;
; BEATS    Clears, imp rings and simple replicators: it captures the
;          processes one after the other and they slow down the rest.
; LOSES TO Papers, of which it can capture only some, and bombers, which are
;          as fast and smaller.  There are also programs that follow a fang
;          back to the pit.

STEP    equ     3055
TOUR    equ     (CORESIZE/5)
AFTER   equ     (bomb-fang+2)

        org     loop

        dat     0, 0            ; five below the fang: hit once, not used
        dat     0, 0
        dat     0, 0
pit     spl     0, 0            ; a captured process splits here
        jmp     pit, 0          ; and again, and again
fang    jmp     pit-STEP, STEP  ; as it must be STEP cells further up
loop    mov.i   fang, @fang
        add.f   inc, fang
        djn.b   loop, #TOUR
        jmp     clear
spare   dat     0, 0            ; five above the fang
inc     dat     #-STEP, #STEP
clear   mov.i   bomb, >fang     ; the fang serves as pointer now
        jmp     clear
bomb    dat     #0, #AFTER

        end
