// The list of system calls that cuwarden may make in the program's process. A seccomp filter of the
// program that allows all of them changes nothing for cuwarden.
#pragma once

#include <sys/syscall.h>

#include <cstdint>

namespace cuwarden::shim {

// Numbers (SYS_...) of all system calls that cuwarden may make in the program's process: by its own
// code, by libc's and the loader's, and by NVML on its behalf. If a seccomp filter of the program
// refuses one of them, its threads count as confined: they make no such calls, and may leave the
// report to another process. So a needless entry does little harm.
inline constexpr std::uint32_t own_system_calls[] = {
    // System calls on files and folders.
    SYS_access, SYS_close, SYS_dup, SYS_dup2, SYS_dup3, SYS_faccessat, SYS_fallocate, SYS_fcntl,
    SYS_fchmod, SYS_fchown, SYS_fdatasync, SYS_flock, SYS_fstat, SYS_fstatfs, SYS_fsync,
    SYS_ftruncate, SYS_getcwd, SYS_getdents64, SYS_ioctl, SYS_link, SYS_linkat, SYS_lseek,
    SYS_lstat, SYS_mkdir, SYS_mkdirat, SYS_newfstatat, SYS_open, SYS_openat, SYS_poll, SYS_ppoll,
    SYS_pread64, SYS_pwrite64, SYS_read, SYS_readlink, SYS_readlinkat, SYS_readv, SYS_rename,
    SYS_renameat, SYS_renameat2, SYS_stat, SYS_statfs, SYS_statx, SYS_symlink, SYS_umask,
    SYS_unlink, SYS_unlinkat, SYS_write, SYS_writev,
    // System calls on the process's memory.
    SYS_brk, SYS_madvise, SYS_mbind, SYS_membarrier, SYS_memfd_create, SYS_mincore, SYS_mlock,
    SYS_mlock2, SYS_mmap, SYS_mprotect, SYS_mremap, SYS_msync, SYS_munlock, SYS_munmap,
    // System calls on threads, signals and time.
    SYS_clock_getres, SYS_clock_gettime, SYS_clock_nanosleep, SYS_clone, SYS_exit, SYS_exit_group,
    SYS_futex, SYS_getcpu, SYS_gettimeofday, SYS_kill, SYS_nanosleep, SYS_prctl,
    SYS_restart_syscall, SYS_rt_sigaction, SYS_rt_sigpending, SYS_rt_sigprocmask, SYS_rt_sigreturn,
    SYS_rt_sigtimedwait, SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sched_yield,
    SYS_set_robust_list, SYS_set_tid_address, SYS_sigaltstack, SYS_tgkill, SYS_time,
#ifdef SYS_clone3
    SYS_clone3,
#endif
#ifdef SYS_rseq
    SYS_rseq,
#endif
    // System calls that tell facts about the process and the machine.
    SYS_capget, SYS_getegid, SYS_geteuid, SYS_getgid, SYS_getgroups, SYS_getpgrp, SYS_getpid,
    SYS_getppid, SYS_getrandom, SYS_getrlimit, SYS_getrusage, SYS_gettid, SYS_getuid, SYS_prlimit64,
    SYS_sysinfo, SYS_times, SYS_uname,
    // System calls on sockets, which NVML may use when it is asked about devices.
    SYS_connect, SYS_getpeername, SYS_getsockname, SYS_getsockopt, SYS_recvfrom, SYS_recvmsg,
    SYS_sendmsg, SYS_sendto, SYS_setsockopt, SYS_socket};

}  // namespace cuwarden::shim
