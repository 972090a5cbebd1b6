CORESIZE equ 5
 dat 0
