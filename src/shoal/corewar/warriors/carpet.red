;redcode-94
;name Arsonist
;author Shoal
;strategy Incendiary bombs (a SPL and a MOV): a program that is hit covers its
;strategy own code with SPL.  A DAT clear follows.
;assert CORESIZE == 8000
;
; THE IDEA
;   The bomb has two cells:
;
;       x       spl   0, FUSE     each pass makes one more process
;       x+1     mov   x, <x       copies the SPL to the cell below the place
;                                 that the B-field of x points at
;
;   A process that runs into it splits again and again, and each of the new
;   processes executes the MOV and so lays one more SPL.  The carpet grows
;   downwards from x + FUSE until it covers the MOV: the enemy burns its own
;   code, and is then busy with splitting and nothing else.  At the end a DAT
;   clear kills it.
;
; THE CONSTANTS
;   STEP   41 * 195 = 7995.  41 bombs go once round the core, 195 cells apart,
;          and the next round falls 5 cells lower.  So all bombs move
;          slowly downwards, like the teeth of a rake.
;   BASE   The first round starts just below this program, so that the tooth
;          there moves away from it.  The next tooth above starts 195 cells
;          higher and comes down towards the program.
;   LAPS   How many rounds that tooth needs to come near.  Before it arrives
;          the bombing ends.  35 of 39 possible rounds are done by then.
;   FUSE   The carpet must be long enough to cover a small loop.
;
; BEATS    Clears, simple replicators and imps.
; LOSES TO Small bombers, which need one cell where it needs two and are half
;          its size; scanners; and papers, which copy themselves faster than
;          it burns them.

STEP    equ     195
LENGTH  equ     (last-ptr+1)
LAPS    equ     ((STEP-LENGTH)/5-1)
TOUR    equ     (LAPS*(CORESIZE/STEP))
BASE    equ     (-4)
FUSE    equ     8
AFTER   equ     (LENGTH+3)

        org     loop

ptr     dat     #BASE+STEP, #BASE+STEP+1 ; A: place of the SPL, B: of the MOV
loop    mov.i   fire, *ptr
        mov.i   match, @ptr
        add.f   inc, ptr
        djn.b   loop, #TOUR

        mov.i   bomb, ptr               ; ptr becomes the pointer of the clear
        spl     #0, 0
clear   mov.i   bomb, >ptr
        mov.i   bomb, >ptr
        jmp     clear, 0
inc     dat     #STEP, #STEP
fire    spl     0, FUSE
match   mov.i   -1, <-1
last
bomb    dat     #0, #AFTER              ; B: past this program

        end
