// Seccomp filters by which test programs confine themselves.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sandbox {

// System calls that libc needs to end a thread or a process, and the simulated GPU for its memory.
inline constexpr std::uint32_t few[] = {SYS_read, SYS_write,      SYS_exit,  SYS_exit_group,
                                        SYS_mmap, SYS_munmap,     SYS_futex, SYS_rt_sigreturn,
                                        SYS_brk,  SYS_newfstatat, SYS_fstat, SYS_clock_gettime};

// A seccomp filter that answers system calls by their numbers.
class Filter {
 public:
  // Has the kernel answer the system call `number` by `answer`, such as SECCOMP_RET_ALLOW.
  void answer(std::uint32_t number, std::uint32_t answer) {
    steps_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    steps_.push_back(BPF_STMT(BPF_RET | BPF_K, answer));
  }
  // Has the kernel answer all other system calls by `answer`. To be called last, and once.
  void answer_others(std::uint32_t answer) { steps_.push_back(BPF_STMT(BPF_RET | BPF_K, answer)); }
  // Returns the filter as the kernel takes it. It points into this object, which must outlive it
  // and may not change meanwhile.
  sock_fprog program() { return {static_cast<unsigned short>(steps_.size()), steps_.data()}; }

 private:
  std::vector<sock_filter> steps_{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
};

}  // namespace sandbox
