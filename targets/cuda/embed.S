/* Puts a fatbin into an object: FATBIN is the file, SYMBOL its name for C. The
   section is the one in which cuobjdump and invar look for GPU code. */
	.section .nv_fatbin, "a", @progbits
	.balign 16
	.globl SYMBOL
	.hidden SYMBOL
	.type SYMBOL, @object
SYMBOL:
	.incbin FATBIN
	.size SYMBOL, . - SYMBOL
	.balign 16
	.section .note.GNU-stack, "", @progbits
