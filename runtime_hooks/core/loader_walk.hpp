// Walks over the loader's list of loaded objects that cannot hang a forked child.
//
// dl_iterate_phdr holds a lock of the loader during a walk, and glibc does not free that lock in a
// forked child. If a thread walks at the moment of a fork, the child has the lock without the
// thread, and its next walk waits for ever. So a fork waits until no thread of cuwarden's walks.
#pragma once

#include <link.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden {

// Keeps walks over the loaded objects (dl_iterate_phdr) and forks apart: a child forked during a
// walk could hang in its own next walk. Walks of several threads do not wait for each other here.
// After ten seconds, a waiting walk or fork goes on, because the wait may be a deadlock. The other
// thread may need a lock that the waiting thread holds inside a walk of the program's own.
class LoaderWalks {
 public:
  // A callback of dl_iterate_phdr, which is called for each loaded object; a result other than 0
  // ends the walk.
  using Visit = int (*)(dl_phdr_info*, std::size_t, void*);

  // `clock`: tells how long a wait has lasted, and sleeps during it.
  constexpr explicit LoaderWalks(Clock& clock = system_clock) noexcept : clock_(clock) {}

  // Waits for a fork that is under way, for ten seconds at most, calls dl_iterate_phdr(visit,
  // argument), and returns its result. Keeps errno. May be called inside another walk. Neither an
  // inner walk nor a confined thread waits.
  int walk(Visit visit, void* argument) noexcept {
    const ErrnoGuard keep;
    // A walk inside another one is a part of it. If it waited for the fork, the fork would wait for
    // the outer walk meanwhile.
    if (is_inside_) return dl_iterate_phdr(visit, argument);
    begin();
    is_inside_ = true;
    const int result = dl_iterate_phdr(visit, argument);
    is_inside_ = false;
    walks_.fetch_sub(1);
    return result;
  }

  // Waits until no other thread is inside walk(), for ten seconds at most, and not at all in a
  // confined thread (seccomp). After a wait in vain, does not wait again as long as a walk of
  // another thread is under way. Keeps threads from entering walk() until after_fork(), each for
  // ten seconds at most. To be called by the thread that forks, right before the fork. Keeps errno.
  void before_fork() noexcept {
    const ErrnoGuard keep;
    forks_.fetch_add(1);
    is_forking_ = true;
    // A walk that a jump has left never ends. Only the first fork after the jump waits for it.
    if (walks_.load() <= own_walks() || !waited_in_vain_.load(std::memory_order_relaxed))
      waited_in_vain_.store(!falls_to(walks_, own_walks()), std::memory_order_relaxed);
  }
  // Lets threads enter walk() again that before_fork() has kept out. To be called by the thread
  // that has forked, in the parent.
  void after_fork() noexcept {
    is_forking_ = false;
    forks_.fetch_sub(1);
  }
  // Forgets walks and forks that threads of the parent had begun, since those threads do not run in
  // the child. To be called in a forked child.
  void in_forked_child() noexcept {
    is_forking_ = false;
    walks_.store(own_walks());
    forks_.store(0);
  }

 private:
  // Counts a walk over the loaded objects that begins, after waiting for a fork that is under way.
  // Counts the walk first and looks for forks then, so that walk and fork cannot miss each other.
  // Takes the count back while it waits.
  void begin() noexcept {
    for (bool waits = true;;) {
      walks_.fetch_add(1);
      if (!waits || is_forking_ || forks_.load() == 0) return;
      walks_.fetch_sub(1);
      waits = falls_to(forks_, 0);
    }
  }
  // Returns 1 if the calling thread is inside walk(), which a signal handler may have interrupted;
  // otherwise 0.
  static std::uint32_t own_walks() noexcept { return is_inside_ ? 1 : 0; }
  // Waits until `number` (walks_ or forks_) is at most `least`, for ten seconds at most. Does not
  // wait in a thread that a seccomp filter confines. Returns true if the number is at most `least`.
  bool falls_to(const std::atomic<std::uint32_t>& number, std::uint32_t least) noexcept {
    constexpr std::uint64_t longest_ns = 10'000'000'000, pause_ns = 20'000;
    const std::uint64_t begin_ns = clock_.now_ns();
    for (std::uint32_t now = number.load(); now > least; now = number.load()) {
      if (is_confined() || clock_.now_ns() - begin_ns > longest_ns) return false;
      // Changes of the number wake no thread, so the pause ends by itself.
      clock_.wait_ns(number, now, pause_ns);
    }
    return true;
  }

  // True while the calling thread is inside walk().
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local bool is_inside_ = false;
  // True from the calling thread's before_fork() to its after_fork() in the parent, and to its
  // in_forked_child() in the child.
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local bool is_forking_ = false;
  Clock& clock_;  // tells how long a wait has lasted, and sleeps during it
  // Numbers of walks over the loaded objects, and of forks, that are under way in this process.
  std::atomic<std::uint32_t> walks_{0}, forks_{0};
  // True if the latest fork that waited for walks of other threads has waited for ten seconds in
  // vain.
  std::atomic<bool> waited_in_vain_{false};
};

// Keeps apart the forks of this process and cuwarden's walks over its loaded objects.
inline constinit LoaderWalks loader_walks;

}  // namespace cuwarden
