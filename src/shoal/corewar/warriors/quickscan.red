;redcode-94
;name First Glance
;author Shoal
;strategy Looks at sixty places of the core in the first thirty cycles, bombs
;strategy what it finds, and becomes a paper.
;assert CORESIZE == 8000 && MAXLENGTH >= 100
;
; THE IDEA
;   In its first moments a program is still in one piece, in the place where
;   it was loaded.  A quick scan has no loop: it is a long list of
;   comparisons, each of which sees two cells in one cycle.  That is three
;   times as fast as the loop of a scanner.  It cannot go on for long, since
;   the list uses up the length that a program may have.  If it finds
;   something, the enemy is bombed before it has done anything; if not, hardly
;   any time is lost.
;
; THE SCAN
;   Each pair of lines stands for one comparison.  SEQ skips the MOV when the
;   two cells are equal, as they are in an empty core.  Otherwise the MOV
;   writes down where it was.  FOR/ROF writes the list: the counter i takes
;   the values 1 to PAIRS.
;   SPACE  The distance of the places.  PAIRS * 2 places of this distance
;          have to fit into the core, and the first and the last must be away
;          from this program.  A program of SPACE or more cells is
;          found unless it is very near; most are shorter, and the chance is
;          about their length divided by SPACE.
;
; THE ATTACK
;   One of the two cells is not empty.  JMZ.F tells which.  Then SHOTS bombs
;   fall around it, from the top downwards, BY cells apart.
;
; THE REST
;   A silk paper, as in paper.red.  What is left of the scan in the core serves
;   as a decoy for other scanners.
;
; BEATS    Long programs and programs with a slow start, at once; bombers,
;          vampires and gates, as a paper.
; LOSES TO What beats papers, if it is too small to be seen.

PAIRS   equ     30
SPACE   equ     (CORESIZE/(2*PAIRS+3))
SHOTS   equ     24
BY      equ     4
TOP     equ     (SHOTS*BY/2)

FAR     equ     1059
HOP     equ     420
SHOT    equ     6526
PEEK    equ     6860

        org     scan

found   dat     #0, #0

scan
i       for     PAIRS
        seq.i   found+2*i*SPACE, found+2*i*SPACE+SPACE
        mov.ab  #2*i*SPACE, found
        rof

        jmz.b   paper, found    ; nothing seen
        jmz.f   upper, @found   ; lower cell empty: it was the upper one
        jmp     aim, 0
upper   add.ab  #SPACE, found
aim     add.ab  #TOP, found
fire    mov.i   bomb, @found
        sub.ab  #BY, found
        djn.b   fire, #SHOTS

paper
n       for     3
        spl     1, 0            ; eight processes
        rof
up      spl     @0, >FAR        ; copy forwards
        mov.i   }up, >up
        mov.i   bomb, >SHOT
        mov.i   bomb, }PEEK
        mov.i   {up, <down      ; copy backwards
down    jmp     @0, >HOP
bomb    dat     <2667, <1

        end
