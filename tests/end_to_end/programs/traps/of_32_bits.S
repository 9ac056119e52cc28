# A 32-bit program that the 32-bit dynamic linker starts, without a libc: says `32`, exits with 7.
.text
.globl _start
_start:
  movl $4, %eax           # write
  movl $1, %ebx
  call here
here:
  popl %ecx
  addl $text - here, %ecx
  movl $3, %edx
  int $0x80
  movl $1, %eax           # exit
  movl $7, %ebx
  int $0x80
text:
  .ascii "32\n"
.section .note.GNU-stack, "", @progbits
