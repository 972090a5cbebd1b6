;redcode-94
;name Mill And Imps
;author Shoal
;strategy A bomber that is copied to another place, and an imp spiral that
;strategy makes sure that a lost bomber is not yet a lost round.
;assert CORESIZE == 8000
;
; THE IDEA
;   Bombers win or die.  Imp spirals do neither.  Together they win what the
;   bomber wins and tie most of the rest, which gives one point each
;   instead of none.
;
; SHARING THE TIME
;   All processes of a program take turns.  Eight imp processes beside a
;   bomber of one process would leave it a ninth of the time.  So the bomber
;   begins with SPL #: each time this is executed one more process enters the
;   loop, and the bomber soon has most of the turns.
;
; THE BOMBER
;   Four instructions and a bomb that is its own pointer.  The SPL holds STEP
;   in its B-field: SPL # does not care, and ADD finds it there.
;   STEP   gcd(3055, 8000) = 5: the bombs fall on every fifth cell, counted
;          from the bomb itself.  The bomber is five cells long, so the only
;          own cell that is ever hit is the bomb, by itself.  It can go on
;          for ever, without a counter.
;
; THE BOOT
;   The launcher is large and easy to find, so the bomber is copied AWAY cells
;   off and runs there.  What stays behind is a decoy.
;
; THE IMPS
;   See impring.red: D * 3 = CORESIZE + 1, and process k starts at imp + k*D.
;
; BEATS    Bombers of one process, vampires and clears: it wins some rounds
;          and ties most of the rest.
; LOSES TO Papers, and DJN streams (stream.red).

STEP    equ     3055
AWAY    equ     3700
D       equ     ((CORESIZE+1)/3)
PROCS   equ     8

        org     start

        ; Copy the five cells, last one first.
start
n       for     5
        mov.i   {from, <to
        rof
to      spl     stone+AWAY, stone+AWAY+5 ; start the bomber
        spl     1, 0
        spl     1, 0
        spl     1, 0
launch  jmp     *table, }0
from    dat     stone+5, 0
table
k       for     PROCS
        dat     imp+(k-1)*D, 0
        rof
m       for     8
        dat     0, 0
        rof
imp     mov.i   $0, $D
r       for     8
        dat     0, 0
        rof
stone   spl     #0, #STEP
loop    add.b   stone, bomb
        mov.i   bomb, @bomb
        jmp     loop, 0
bomb    dat     #0, #0

        end
