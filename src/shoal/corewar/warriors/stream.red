;redcode-94
;name Two Rivers
;author Shoal
;strategy A DJN stream runs down through the core while a DAT clear runs up.
;strategy One pointer cell steers both.
;assert CORESIZE > 100
;
; THE IDEA
;   DJN subtracts 1 from a cell before it jumps.  If the cell is named through
;   a pointer that is itself decremented, DJN runs through the core and spoils
;   a cell each time it is executed, at no cost: the jump was needed anyway.
;   This is a DJN stream.  It does not kill, but the code behind it has wrong
;   addresses.
;
; THE TWO STREAMS
;   ptr    A-field: the stream, which moves down ({ subtracts 1 first).
;          B-field: the clear, which moves up (> adds 1 afterwards).
;   Both move one cell in each turn of the loop.  They meet in the middle of
;   the core, pass through each other and come towards the program from the
;   other side.  Neither may touch it.  The clear starts UP cells above ptr
;   and the stream DOWN cells below.  The clear arrives at ptr first, because
;   UP is greater than DOWN + the length of the program.  There it writes
;   the bomb over ptr, and the fields of the bomb send both streams back to
;   their beginnings.
;
; WHY DJN FALLS THROUGH, RARELY
;   DJN.F jumps unless both fields of the cell become 0.  When that happens
;   once in a while, the process leaves the loop; so the cell behind the loop
;   is a JMP back.
;
; BEATS    Imps, simple bombers and gates.
; LOSES TO Papers and scanners: one sweep takes more than twice the core size
;          in cycles, and they are done long before.

DOWN    equ     3
UP      equ     (last-ptr+8)

        org     start

ptr     dat     #-DOWN, #UP
start   spl     #0, 0           ; many processes: harder to kill
loop    mov.i   bomb, >ptr      ; the clear
        djn.f   loop, {ptr      ; the stream
        jmp     loop, 0
last
bomb    dat     #-DOWN, #UP

        end
