;redcode-94
;name Turncoat
;author Shoal
;strategy Has three programs in one (bomber, paper, scanner) and takes the next
;strategy of them after every round it has lost.
;assert CORESIZE == 8000 && PSPACESIZE >= 2
;
; THE IDEA
;   No strategy beats all others: what a bomber cannot kill, a scanner
;   may stun, and a paper may outlive what stuns the other two.  A match
;   has many rounds against the same enemy, and P-space is a small memory
;   that outlives the round.  So this program remembers which strategy it
;   used, keeps it as long as it does not lose, and changes it when it does.
;
; P-SPACE
;   LDP a, b   loads cell a of P-space into b.
;   STP a, b   stores a in cell b of P-space.
;   Cell 0 is written by the machine: the result of the last round, 0 for
;   a loss, otherwise the number of programs that were alive at the end.  In
;   the first round it is CORESIZE-1 (that is, -1), which is not 0 either.
;   All other cells are 0 in the beginning.
;   PIN        Programs with the same PIN share their P-space.  The number
;              here is meant to be that of this program alone.
;
; THE CHOICE
;   which counts 0, 1, 2, 0, ...  It is used as an offset in the table, which
;   holds the three entry points.  The choice costs at most eight cycles.
;
; BEATS    In the long run what any of its three parts beats.
; LOSES TO Programs that beat all three, and, for a round or two, everybody:
;          it has to lose before it learns.

RESULT  equ     0               ; cells of P-space
MEMORY  equ     1
PARTS   equ     3

        pin     3109
        org     think

think   ldp.ab  #RESULT, last   ; into the B-field of the next but one
        ldp.ab  #MEMORY, which
last    jmn.b   choose, #0      ; not 0: not lost, no change
        add.ab  #1, which
        mod.ab  #PARTS, which
        stp.b   which, #MEMORY
choose  add.ba  which, go       ; B-field of which to the A-field of go
go      jmp     *table, 0
which   dat     0, 0
table   dat     bomber, 0
        dat     paper, 0
        dat     scanner, 0

; ---- part 0: bomber (see dwarf.red) -------------------------------------
BSTEP   equ     3055            ; gcd with 8000: 5

bptr    dat     #0, #throw-bptr
bomber  add.ab  #BSTEP, bptr
throw   mov.i   bbomb, @bptr
        djn.b   bomber, #CORESIZE/5-1
sweep   mov.i   bbomb, >bptr
        jmp     sweep, 0
bbomb   dat     #0, #8

; ---- part 1: paper (see paper.red) --------------------------------------
paper
n       for     3
        spl     1, 0
        rof
up      spl     @0, >307
        mov.i   }up, >up
        mov.i   pbomb, >7645
        mov.i   pbomb, }7060
        mov.i   {up, <down
down    jmp     @0, >4043
pbomb   dat     <2667, <1

; ---- part 2: scanner (see scanner.red) ----------------------------------
GAP     equ     5
SSTEP   equ     3070            ; gcd with 8000: 10
WIDTH   equ     14
ROOM    equ     18

sptr    dat     #SSTEP-GAP, #SSTEP
m       for     ROOM
        dat     0, 0
        rof
scanner add.f   inc, sptr
        seq.i   *sptr, @sptr
        slt.ab  #end1-sptr+GAP+1, sptr
count   djn.b   scanner, #CORESIZE/(2*GAP)
lay     mov.i   carpet, }sptr
width   djn.b   lay, #WIDTH
        add.ab  #WIDTH, width
        sub.a   #WIDTH, sptr
        jmn.b   scanner, count
        mov.i   sbomb, sptr
        spl     #0, 0
clear   mov.i   sbomb, >sptr
        mov.i   sbomb, >sptr
        jmp     clear, 0
inc     dat     #SSTEP, #SSTEP
carpet  spl     #0, 0
end1
sbomb   dat     #0, #end1-sptr+5

        end
