label
; nothing else
