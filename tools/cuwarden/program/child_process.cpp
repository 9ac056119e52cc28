#include "tools/cuwarden/program/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tools/cuwarden/output/interruption.hpp"

namespace cuwarden {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

constinit volatile pid_t child_pid = 0;

// A wrapper may have set an alarm for its exec, which then concerns the child.
void pass_on(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const bool is_sent = info->si_code <= 0 || signal == SIGALRM;
  if (is_sent && child_pid > 0) {
    if (info->si_code == SI_QUEUE)
      sigqueue(child_pid, signal, info->si_value);
    else
      kill(child_pid, signal);
  }
  errno = error;
}

sigset_t passed_signals() {
  sigset_t passed;
  sigemptyset(&passed);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU,
                           SIGPWR, SIGVTALRM, SIGPROF, SIGIO, SIGTSTP, SIGCONT})
    sigaddset(&passed, signal);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) sigaddset(&passed, signal);
  return passed;
}

// Installs pass_on() for the signals. An ignored signal stays ignored, and the child inherits that
// (nohup).
void pass_signals_on(const sigset_t& passed) {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&passed, signal) != 1) continue;
    struct sigaction present {};
    sigaction(signal, nullptr, &present);
    if (present.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

// Becomes the program; returns an errno if that fails. `parent`: this process's parent at the
// start.
int become(const std::string& program, const std::vector<std::string>& command,
           std::vector<std::string>& variables, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) raise(SIGKILL);  // the parent has died before
  std::vector<std::string> words = command;
  execve(program.c_str(), pointers(words).data(), pointers(variables).data());
  if (errno != ENOEXEC) return errno;
  words.front() = program;
  words.insert(words.begin(), "sh");
  execve("/bin/sh", pointers(words).data(), pointers(variables).data());
  return errno;
}

// Starts the child with the signal mask `before`. Returns an errno if that fails.
int start(const std::string& program, const std::vector<std::string>& command,
          std::vector<std::string>& variables, const sigset_t& before, pid_t& child) {
  // A pipe for the errno of a failed execve(). One that succeeds closes it.
  int failure[2] = {-1, -1};
  if (pipe2(failure, O_CLOEXEC) != 0) return errno;
  const pid_t parent = getpid();
  child = fork();
  int error = child < 0 ? errno : 0;
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    error = become(program, command, variables, parent);
    const ssize_t ignored = write(failure[1], &error, sizeof error);
    static_cast<void>(ignored);
    _exit(127);
  }
  close(failure[1]);
  if (child > 0) {
    ssize_t got = 0;
    do {
      got = read(failure[0], &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    if (got == sizeof error)
      waitpid(child, nullptr, 0);
    else
      error = 0;
  }
  close(failure[0]);
  return error;
}

// True if this process's group has the terminal: then a shell waits for its end or stop.
bool has_terminal() {
  const int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) return false;
  const bool has = tcgetpgrp(terminal) == getpgrp();
  close(terminal);
  return has;
}

// Stops this process as the child has stopped, until it is continued. A shell sees the stop, and
// takes the terminal back. Without a terminal this process goes on: a program that stops the child
// alone will continue the child alone. The SIGCONT is passed on to the child.
void stop_as_child(int signal) {
  if (!has_terminal()) return;
  struct sigaction present {
  }, by_default{};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal, &by_default, &present);
  raise(signal);
  sigaction(signal, &present, nullptr);
}

// Ctrl-C from now on ends this process, which makes reports, and Ctrl-Z stops it.
void let_terminal_end_this() {
  for (const int from_terminal : {SIGINT, SIGQUIT, SIGTSTP}) {
    struct sigaction present {};
    sigaction(from_terminal, nullptr, &present);
    if (present.sa_handler != SIG_IGN) signal(from_terminal, SIG_DFL);
  }
  clean_up_when_interrupted();
}

}  // namespace

int run_child(const std::string& program, const std::vector<std::string>& command,
              std::vector<std::string> variables, pid_t& child, int& wait_status) {
  const sigset_t passed = passed_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &passed, &before);
  pid_t started = 0;
  // If SIGCHLD is ignored, as below some supervisors, the kernel discards the status of each child.
  // So the default is set, which the program inherits, as it does below timeout(1).
  signal(SIGCHLD, SIG_DFL);
  const int error = start(program, command, variables, before, started);
  if (error == 0) {
    child = started;
    child_pid = started;
    pass_signals_on(passed);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return error;
  for (;;) {
    if (waitpid(child, &wait_status, WUNTRACED) < 0) {
      if (errno != EINTR) return errno;
    } else if (WIFSTOPPED(wait_status)) {
      stop_as_child(WSTOPSIG(wait_status));
    } else {
      break;
    }
  }
  child_pid = 0;
  let_terminal_end_this();
  return 0;
}

int exit_status_of(int wait_status) noexcept {
  constexpr int killed = 128;
  return WIFSIGNALED(wait_status) ? killed + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace cuwarden
