// Measures the device memory that the driver takes for a stream, a module or an executable graph,
// and gives back at its end.
#pragma once

#include <cstdint>

#include "runtime_hooks/hooks/execution/implicit_span.hpp"

namespace cuwarden::hooks {

// Measures one driver call that makes, uses or destroys an object for which the driver takes device
// memory by itself, and records the object. Does nothing if the program's call is not recorded.
class ObjectSpan {
 public:
  // Calls of most kinds are measured only while readings take little of the run time
  // (ImplicitMemory::may_read()), and never while a stream is captured. Calls that load or unload
  // code always are, since they take milliseconds.
  enum class When { within_budget, always };

  // Begins the measurement. To be made right before the driver is called. `call`: the program's
  // hooked call, which must outlive this object.
  explicit ObjectSpan(HookedCall& call, When = When::within_budget) noexcept;

  // True if the call is measured.
  bool has_begun() const noexcept { return span_.has_begun(); }
  // Ends the measurement, and records the object that the driver's call has made. To be called
  // right after that call, if it succeeded. Must not be called if the program's call is not
  // recorded.
  void made(const tracking::ImplicitObject&) noexcept;
  // Ends the measurement, and adds the memory that the driver's call took to an object that existed
  // already. To be called right after that call, if it succeeded. Must not be called if the
  // program's call is not recorded.
  void used(const tracking::ImplicitObject&) noexcept;

 private:
  // Ends the measurement. Returns none if the call was not measured.
  tracking::Taken taken() noexcept;

  HookedCall& call_;
  ImplicitSpan span_;
  tracking::CurrentContext here_;
  tracking::FreeBases::Base base_;  // the device's base before the driver's call
};

// Measures what the end of an object gives back, and ends the object's record. Does nothing if the
// program's call is not recorded.
class ObjectEnd {
 public:
  // Ends the object's record, and begins the measurement. To be made right before the driver's
  // call. `call` must outlive this object.
  ObjectEnd(HookedCall& call, const tracking::ImplicitObject&, ObjectSpan::When) noexcept;
  // Ends the measurement. `CUresult` is the result of the driver's call, which was made just now.
  // If it is an error, the object's record goes on.
  void done(CUresult) noexcept;

 private:
  HookedCall& call_;
  ImplicitSpan span_;
  const tracking::ImplicitObject object_;
  tracking::ImplicitObjects::Ending ending_;
};

}  // namespace cuwarden::hooks
