;redcode-94
;name Imp
;author Shoal
;strategy One instruction that copies itself one cell ahead for ever.
;strategy It is very hard to kill and kills almost nobody.
;assert 1
;
; THE IDEA
;   MOV 0, 1 copies the cell it stands in (offset 0) to the next cell
;   (offset 1).  The process then steps to the next cell, where it finds the
;   fresh copy, and does it again.  The imp walks through the whole core at
;   one cell per turn and leaves a trail of imps behind it.
;
; WHY IT WORKS
;   All addresses in Redcode are relative, so the copy means the same thing
;   wherever it stands.  That is also why the imp needs no constants and
;   works in a core of any size.
;
; WHAT IT BEATS
;   Nothing, as a rule.  A program which the imp walks over is turned into an
;   imp itself: its processes live on and the round is a tie.  The imp wins
;   only when the other program spoils its own code.
;
; WHAT BEATS IT
;   A bomb that falls exactly on the imp, which is a small target, or an imp
;   gate (see gate.red), which spoils the cell that the imp is about to
;   execute.

        org     imp

imp     mov.i   $0, $1          ; .i moves the whole instruction

        end
