// Prevents cancellation of a thread (pthread_cancel) during a scope. Calls such as open, read,
// write and close are cancellation points. A cancellation in such a call of cuwarden's would unwind
// through noexcept functions, and so end the host by std::terminate. A request for cancellation
// stays pending, and acts at the program's own next cancellation point. In a thread whose
// cancellation type is asynchronous, it acts at the end of the CUDA call.
#pragma once

#include <pthread.h>

namespace cuwarden {

// Disables cancellation of the calling thread (pthread_cancel) for the length of a scope. A pending
// request acts at the program's next cancellation point after the scope. A thread of asynchronous
// cancellation type has the deferred type after the scope, until restore_type() is called: a
// pending request would otherwise unwind the destructor. If a signal handler jumps out of the
// scope, cancellation stays disabled until end_left() is called.
class [[nodiscard]] Uncancelled {
 public:
  // Disables cancellation of the calling thread. A signal handler may jump out of the scope at any
  // instruction, and end_left() must then know of the scope. So outermost_ is set before the
  // thread's cancellation state changes.
  Uncancelled() noexcept {
    const bool is_outermost = outermost_ == 0;
    if (is_outermost) outermost_ = 1 + PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
    if (is_outermost) outermost_ = static_cast<signed char>(1 + before_);
  }
  // Restores the cancellation state that the thread had before the scope. At the end of the
  // outermost scope, outermost_ becomes 0 only afterwards: a signal handler may jump away before
  // the state is restored.
  ~Uncancelled() {
    int ours = 0;
    if (before_ == PTHREAD_CANCEL_ENABLE) {
      int type = PTHREAD_CANCEL_DEFERRED;
      pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
      if (type == PTHREAD_CANCEL_ASYNCHRONOUS) was_asynchronous_ = true;
    }
    pthread_setcancelstate(before_, &ours);
    if (outermost_ == 1 + before_) outermost_ = 0;
  }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

  // Gives the calling thread the asynchronous cancellation type again if it had that type before
  // scopes of this class. A pending request for cancellation then acts at once, by unwinding the
  // stack. So this function and its callers are not noexcept. To be called at the end of the
  // program's call of cuwarden, when all is recorded.
  static void restore_type() {
    if (!was_asynchronous_) return;
    was_asynchronous_ = false;
    int ours = 0;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &ours);
  }

  // Ends scopes of this class that the calling thread has left by a jump. Sets the thread's
  // cancellation state to the one before the outermost of them. Sets its cancellation type, which
  // the jump may have changed, to deferred. Does nothing if there are none. To be called only where
  // the thread is certainly not inside a scope of this class.
  static void end_left() noexcept {
    if (outermost_ == 0) return;
    int ours = 0;
    // A jump out of libc's open or read (before glibc 2.41) leaves the thread's cancellation type
    // asynchronous. The thread would then be cancelled anywhere, even in a noexcept function. A
    // thread that has chosen the asynchronous type itself gets the deferred one, too.
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &ours);
    pthread_setcancelstate(outermost_ - 1, &ours);
    outermost_ = 0;
  }

 private:
  // The thread's cancellation state before this object was made, from pthread_setcancelstate(). In
  // a process without libpthread (before glibc 2.34), that function does nothing; the value then
  // stays PTHREAD_CANCEL_ENABLE.
  int before_ = PTHREAD_CANCEL_ENABLE;
  // 1 plus the thread's cancellation state before its outermost scope of this class; 0 outside of
  // all scopes. Volatile, so that the compiler keeps the order in which the constructor and the
  // destructor write it.
  [[gnu::tls_model(
      "initial-exec")]] static inline constinit thread_local volatile signed char outermost_ = 0;
  // True if the thread had the asynchronous cancellation type before a scope of this class, and
  // restore_type() has not given it back yet.
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local bool was_asynchronous_ =
      false;
};

}  // namespace cuwarden
