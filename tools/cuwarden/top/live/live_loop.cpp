#include "tools/cuwarden/top/live/live_loop.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/top/live/drawn_screen.hpp"
#include "tools/cuwarden/top/live/live_lists.hpp"
#include "tools/cuwarden/top/live/live_processes.hpp"

namespace cuwarden {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int redraw_ms = 1000;
constexpr int preliminary_ms = 50;  // time between two views while names are being looked up
constexpr int search_every = 5;  // redraws between two searches of all of /proc for new processes

// The processes, the state of the view, and the data that it shows.
class LiveView {
 public:
  LiveView(pid_t pid, std::unique_ptr<LedgerFile> file) {
    if (file == nullptr) return;
    processes_.add(pid, std::move(file));
    processes_.read(state_, data_);
    state_.process = key_of(data_.processes.front().row);
    state_.processes.selected = state_.process;
    state_.page = LivePage::process;
  }

  // Reads all processes anew.
  void tick() {
    // The list is searched when it is shown, since /proc may have thousands of processes.
    if (state_.page == LivePage::processes && ticks_++ % search_every == 0)
      processes_.search(state_.process);
    processes_.sample();
    processes_.read(state_, data_);
  }

  // Returns the lines of the screen, with the best names that are known.
  std::string text(const LiveScreen& screen) {
    std::string lines = live_text(state_, data_, screen);
    if (processes_.name(state_, drawn_groups(state_, data_), needs_all_names(state_), data_))
      lines = live_text(state_, data_, screen);
    return lines;
  }

  // Handles a key. Returns false if the key ends the view.
  bool press(const Key& key) {
    const LivePage before = state_.page;
    cuwarden::press(state_, key, data_);
    if (state_.page == before) return !state_.quits;
    if (state_.page == LivePage::processes) {
      processes_.leave(state_.process);
      processes_.search(state_.process);
      processes_.sample();
    }
    processes_.read(state_, data_);
    return !state_.quits;
  }

  // True if text() will say more soon, even before the next tick.
  bool is_preliminary() { return processes_.is_looking_up_names(state_); }

 private:
  LiveProcesses processes_;
  LiveState state_;
  LiveData data_;
  int ticks_ = 0;
};

}  // namespace

int show_live(Terminal& terminal, pid_t pid, std::unique_ptr<LedgerFile> file) {
  LiveView view(pid, std::move(file));
  const bool colour = wants_colour(STDOUT_FILENO), ascii = wants_ascii();
  auto next = SteadyClock::now();
  for (;;) {
    const auto now = SteadyClock::now();
    if (now >= next) {
      view.tick();
      next = now + std::chrono::milliseconds(redraw_ms);
    }
    const TerminalSize size = terminal.size();
    terminal.draw(
        view.text({.columns = size.columns, .rows = size.rows, .colour = colour, .ascii = ascii}));
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(next - SteadyClock::now());
    const long longest = view.is_preliminary() ? preliminary_ms : redraw_ms;
    const Terminal::Event event =
        terminal.wait(static_cast<int>(std::clamp<long>(left.count() + 1, 0, longest)));
    if (event.kind == Terminal::Event::Kind::end) return event.signal;
    if (event.kind == Terminal::Event::Kind::key && !view.press(event.key)) return 0;
  }
}

}  // namespace cuwarden
