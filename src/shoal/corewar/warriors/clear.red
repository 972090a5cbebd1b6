;redcode-94
;name Spring Clean
;author Shoal
;strategy A core clear in two passes: SPL over the whole core, to stun, then
;strategy DAT for ever, to kill.
;assert CORESIZE > 100
;
; THE IDEA
;   Sweep the core from one end to the other and write every cell.  Nothing
;   is missed, however small.  The first pass writes SPL: whoever executes it
;   multiplies into useless processes and slows down.  The second pass writes
;   DAT and kills them all.  A single pass of DAT would kill the processes one
;   by one while a paper makes new ones.
;
; THE POINTER
;   ptr holds everything that changes.  Its A-field names the bomb to write,
;   its B-field the cell to write to.  When the sweep comes round, the
;   current bomb is written over ptr itself, and the fields of the bomb
;   become the new ptr:
;     - stun has the offset of kill in its A-field: the next pass writes kill;
;     - kill has its own offset in its A-field: all later passes write kill;
;     - both have AFTER in the B-field, which leads past the program.
;   SPL and DAT do not mind what their # fields hold, so the fields are free
;   for this use.
;
; MORE THAN ONE PROCESS
;   SPL #0 sends a new process into the loop each time it is executed.  With
;   many processes one DAT does not end the program at once.  The loop has
;   two MOVs and one JMP: it writes two cells in three cycles.
;
; BEATS    Simple replicators, small bombers that have spent their bombs,
;          and gates.  Against silk papers it is even.
; LOSES TO Scanners, vampires and bombers that stun.  It is in no hurry: a
;          whole pass takes one and a half times the core size in cycles, and
;          it has no defence in the mean time.  A lone imp ties with it.

AFTER   equ     (last-ptr+4)

        org     clear

ptr     dat     #stun-ptr, #AFTER

clear   spl     #0, 0
loop    mov.i   *ptr, >ptr      ; * = through the A-field of ptr
        mov.i   *ptr, >ptr
        jmp     loop, 0

stun    spl     #kill-ptr, #AFTER
last
kill    dat     #kill-ptr, #AFTER

        end
