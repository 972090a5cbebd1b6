 mov.a 1,2
 mov.b 1,2
 mov.ab 1,2
 mov.ba 1,2
 mov.f 1,2
 mov.x 1,2
 mov.i 1,2
 mov.A 1,2
 mov.Ab 1,2
 mov.I 1,2
 mov .ba 1,2
 mov . x 1,2
 mov.f #1,2
 dat.i 5
 jmp.ab 5
