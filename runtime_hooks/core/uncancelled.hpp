// Prevents cancellation of the thread during a scope. open, read, write and close are cancellation
// points, and the unwinding that a cancellation starts would meet our noexcept functions and end
// the host by std::terminate. The request stays pending and acts at the program's own next
// cancellation point.
#pragma once

#include <pthread.h>

namespace cuwarden {

// Disables cancellation of the calling thread (pthread_cancel) for the length of a scope. A pending
// request acts at the program's next cancellation point after the scope.
class [[nodiscard]] Uncancelled {
 public:
  Uncancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() {
    int ours = 0;
    pthread_setcancelstate(before_, &ours);
  }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  // A process without libpthread (before glibc 2.34) has a stub that writes nothing here.
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace cuwarden
