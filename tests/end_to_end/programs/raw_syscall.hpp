// System calls that no library sees.
#pragma once

// Makes the system call `number` by an instruction of its own, with the arguments a, b and c; the
// fourth and the fifth are 0. Returns the kernel's answer: a negative errno after an error.
inline long raw_syscall(long number, long a, long b, long c) {
  long result = 0;
  register long fourth __asm__("r10") = 0;
  register long fifth __asm__("r8") = 0;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth)
                   : "rcx", "r11", "memory");
  return result;
}
