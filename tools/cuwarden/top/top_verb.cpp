// `cuwarden top`: the live view. It reads the ledgers that processes write in any case, and does
// not disturb the processes.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tools/cuwarden/ledgers/ledger_search.hpp"
#include "tools/cuwarden/ledgers/running_processes.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/terminal.hpp"
#include "tools/cuwarden/top/top_answer.hpp"
#include "tools/cuwarden/top/top_json.hpp"
#include "tools/cuwarden/top/top_names.hpp"
#include "tools/cuwarden/top/top_sample.hpp"
#include "tools/cuwarden/top/top_view.hpp"
#include "tools/cuwarden/top/top_waiting.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

constexpr int redraw_ms = 1000;
constexpr int preliminary_ms = 50;  // time between two views while names are being looked up
constexpr auto once_pause = std::chrono::milliseconds(500);  // between the two samples of --once
constexpr std::size_t once_rows = 50;
constexpr int search_every = 5;  // redraws between two searches of all of /proc for new processes
constexpr std::size_t list_head = 4;  // lines before the first process, if no request waits

class Watched {
 public:
  Watched(pid_t pid, std::unique_ptr<LedgerFile> file) : pid_(pid), file_(std::move(file)) {}

  // Takes a sample. Returns false once the process has ended; then the last sample stays.
  bool sample() {
    const auto stat = process_stat(pid_);
    if (!recent_.empty()) {
      ended_ = ended_ || !stat || stat->ended ||
               stat->start_ticks != file_->reader().process().start_ticks;
    }
    if (!ended_) recent_.add(take_sample(file_->reader()));
    return !ended_;
  }
  void look_for_growth() {
    if (!ended_) growing_.look(file_->reader(), monotonic_ns());
  }
  WatchedProcess view() const { return {pid_, &file_->reader(), &recent_, &growing_, ended_}; }
  // Adds to the answer the requests of the process that wait for memory, with the best names that
  // are known of their call sites. `waits_for_names`: true if these are to be looked up first.
  void add_waiting(bool waits_for_names, TopAnswer& answer) {
    std::vector<WaitingRequest> requests = waiting_requests(view(), monotonic_ns());
    if (requests.empty()) return;
    std::vector<std::uint32_t> groups;
    for (const WaitingRequest& request : requests) groups.push_back(request.group);
    names().want(groups);
    if (waits_for_names) names().wait();
    for (WaitingRequest& request : requests) {
      const CallSiteName name = names().get(request.group);
      request.row.api = model::text_or_null(name.api);
      request.row.where = model::text_or_null(name.where);
      answer.waiting.push_back(std::move(request.row));
    }
  }
  // Returns the names of the process's call sites, which this object owns. The first call starts
  // the thread that looks them up.
  CallSiteNames& names() {
    if (!names_) names_ = std::make_unique<CallSiteNames>(file_);
    return *names_;
  }
  const Recent& recent() const { return recent_; }
  const GrowingGroups& growing() const { return growing_; }

 private:
  pid_t pid_;
  std::shared_ptr<LedgerFile> file_;
  Recent recent_;
  GrowingGroups growing_;
  std::unique_ptr<CallSiteNames> names_;  // null until names are wanted
  bool ended_ = false;
};

std::optional<SortBy> sorting(char key) {
  switch (key) {
    case 'b':
    case 'l':
      return SortBy::bytes;
    case 'g':
      return SortBy::growth;
    case 'r':
      return SortBy::rate;
    default:
      return std::nullopt;
  }
}

// The base of the two views: of one process, and of all processes. It is read at each tick.
class View {
 public:
  View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  virtual ~View() = default;
  virtual void tick() = 0;
  // Returns true if text() will say more soon, even before the next tick.
  virtual bool is_preliminary() const { return false; }
  virtual std::string text(SortBy, ViewSize, std::size_t screen_rows) = 0;
  virtual void write_json(Output&) = 0;
};

class ProcessScreen : public View {
 public:
  explicit ProcessScreen(Watched watched)
      : watched_(std::move(watched)), names_(watched_.names()) {}
  void tick() override {
    watched_.sample();
    watched_.look_for_growth();
  }
  bool is_preliminary() const override { return !names_.are_known(); }
  std::string text(SortBy by, ViewSize size, std::size_t screen_rows) override {
    const auto groups = sorted_groups(watched_.recent(), watched_.growing(), by);
    TopAnswer answer = answer_with(groups);
    watched_.add_waiting(screen_rows == 0, answer);
    if (screen_rows != 0) {
      const std::size_t head = process_view_head(answer, size);
      size.rows = screen_rows > head ? screen_rows - head : 1;
    }
    const std::size_t shown = std::min(size.rows, groups.size());
    want(groups, shown);
    if (screen_rows == 0) names_.wait();
    name(groups, shown, answer);
    return process_view(answer, by, size);
  }
  void write_json(Output& output) override {
    const auto groups = sorted_groups(watched_.recent(), watched_.growing(), SortBy::bytes);
    TopAnswer answer = answer_with(groups);
    watched_.add_waiting(true, answer);
    want(groups, groups.size());
    names_.wait();
    name(groups, groups.size(), answer);
    write_top_json(answer, true, output);
  }

 private:
  // Returns the rows of the process, with a row for each of the groups. The rows lack the names.
  TopAnswer answer_with(const std::vector<GroupSample>& groups) const {
    TopAnswer answer = new_answer();
    add_process(watched_.view(), answer);
    for (const GroupSample& group : groups)
      answer.stacks.push_back(stack_row(watched_.view(), group));
    return answer;
  }
  // Has the names of the first `count` groups looked up.
  void want(const std::vector<GroupSample>& groups, std::size_t count) {
    std::vector<std::uint32_t> ids;
    for (std::size_t i = 0; i < count; ++i) ids.push_back(groups[i].id);
    names_.want(ids);
  }
  // Adds the names that are known of the first `count` groups to their rows.
  void name(const std::vector<GroupSample>& groups, std::size_t count, TopAnswer& answer) const {
    for (std::size_t i = 0; i < count; ++i) {
      const CallSiteName name = names_.get(groups[i].id);
      answer.stacks[i].api = model::text_or_null(name.api);
      answer.stacks[i].where = model::text_or_null(name.where);
    }
  }

  Watched watched_;
  CallSiteNames& names_;  // of watched_
};

class ListScreen : public View {
 public:
  void tick() override {
    if (ticks_++ % search_every == 0) search();
    for (auto process = processes_.begin(); process != processes_.end();) {
      process = process->second.sample() ? std::next(process) : processes_.erase(process);
    }
  }
  std::string text(SortBy by, ViewSize size, std::size_t screen_rows) override {
    const TopAnswer made = answer(screen_rows == 0);
    const std::size_t head = list_head + made.waiting.size();
    if (screen_rows != 0) size.rows = screen_rows > head ? screen_rows - head : 1;
    return processes_view(made, by, size);
  }
  void write_json(Output& output) override { write_top_json(answer(true), false, output); }

 private:
  // Returns the rows of all processes. `waits_for_names`: true if the names of the call sites of
  // requests that wait for memory are to be looked up first.
  TopAnswer answer(bool waits_for_names) {
    TopAnswer made = new_answer();
    for (auto& [pid, watched] : processes_) {
      add_process(watched.view(), made);
      watched.add_waiting(waits_for_names, made);
    }
    return made;
  }
  void search() {
    for (const pid_t pid : all_pids()) {
      if (processes_.contains(pid)) continue;
      LiveLedger live = ledger_of(pid);
      if (live.file) processes_.emplace(pid, Watched(pid, std::move(live.file)));
    }
  }
  std::map<pid_t, Watched> processes_;
  int ticks_ = 0;
};

// Shows the view until a key or a signal ends it. Returns the signal that is to end the command, or
// 0.
int run_on(Terminal& terminal, View& view) {
  const bool colour = wants_colour(STDOUT_FILENO);
  SortBy by = SortBy::bytes;
  auto next = std::chrono::steady_clock::now();
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= next) {
      view.tick();
      next = now + std::chrono::milliseconds(redraw_ms);
    }
    const TerminalSize size = terminal.size();
    terminal.draw(view.text(by, {size.columns, 0, colour, true}, size.rows));
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        next - std::chrono::steady_clock::now());
    const long longest = view.is_preliminary() ? preliminary_ms : redraw_ms;
    const Terminal::Event event =
        terminal.wait(static_cast<int>(std::clamp<long>(left.count() + 1, 0, longest)));
    if (event.kind == Terminal::Event::Kind::end) return event.signal;
    if (event.kind != Terminal::Event::Kind::key) continue;
    if (event.key == 'q' || event.key == 'Q') return 0;
    by = sorting(event.key).value_or(by);
  }
}

}  // namespace

int top_verb(const TopVerb& verb) {
  std::unique_ptr<View> view;
  if (verb.pid != 0) {
    LiveLedger live = ledger_of(verb.pid);
    if (!live.file) {
      print_error(live.error);
      return 2;
    }
    view = std::make_unique<ProcessScreen>(Watched(verb.pid, std::move(live.file)));
  } else {
    view = std::make_unique<ListScreen>();
  }
  int ended_by = 0;
  if (auto terminal = verb.once || verb.json ? nullptr : Terminal::take()) {
    ended_by = run_on(*terminal, *view);
  } else {
    view->tick();
    std::this_thread::sleep_for(once_pause);
    view->tick();
    if (verb.json) {
      const auto output = std::make_unique<Output>(STDOUT_FILENO);
      view->write_json(*output);
      if (const int error = output->finish()) output_failed(error);
      _exit(finish_output(0));
    }
    print(STDOUT_FILENO,
          view->text(SortBy::bytes, {0, once_rows, wants_colour(STDOUT_FILENO), false}, 0));
  }
  if (ended_by != 0) {
    // The command ends by the signal itself, so that its parent sees the signal in the wait status.
    signal(ended_by, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    raise(ended_by);
  }
  // Another thread may still be looking up names. _exit() runs no destructor of objects that it
  // uses.
  _exit(finish_output(0));
}

}  // namespace cuwarden
