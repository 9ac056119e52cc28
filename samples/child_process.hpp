// A second process of a sample, which runs the sample's own program with other arguments.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace sample {

// A process whose standard input and output are pipes to this one. The destructor closes the input
// and waits until the process has ended. Failures of system calls end this process with status 1.
class ChildProcess {
 public:
  // Starts the process, which must come before the first CUDA call: a forked process cannot use its
  // parent's context. `arguments`: those of main(), from argv[0] on. `prepare`: called in the new
  // process before main().
  template <class Prepare>
  ChildProcess(const std::vector<std::string>& arguments, const Prepare& prepare) {
    int orders[2] = {};
    int answers[2] = {};
    if (pipe2(orders, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0) fail("pipe2");
    pid_ = fork();
    if (pid_ < 0) fail("fork");
    if (pid_ == 0) {
      dup2(orders[0], STDIN_FILENO);
      dup2(answers[1], STDOUT_FILENO);
      prepare();
      std::vector<char*> words;
      for (const std::string& argument : arguments)
        words.push_back(const_cast<char*>(argument.c_str()));
      words.push_back(nullptr);
      execv("/proc/self/exe", words.data());
      _exit(127);
    }
    close(orders[0]);
    close(answers[1]);
    orders_ = orders[1];
    answers_ = fdopen(answers[0], "r");
  }
  ~ChildProcess() {
    close_input();
    wait();
    if (answers_ != nullptr) std::fclose(answers_);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Returns the process's id.
  pid_t pid() const { return pid_; }
  // True until close_input() is called.
  bool has_input() const { return orders_ >= 0; }
  // Writes a byte to the process's input.
  void tell(char byte) {
    if (write(orders_, &byte, 1) != 1) fail("write");
  }
  // Returns the next line of the process's output, without its end; empty after the last line.
  std::string next_line() {
    std::string line;
    if (answers_ == nullptr) return line;
    for (int c = std::getc(answers_); c != EOF && c != '\n'; c = std::getc(answers_))
      line += static_cast<char>(c);
    return line;
  }
  // Closes the process's input.
  void close_input() {
    if (orders_ >= 0) close(orders_);
    orders_ = -1;
  }
  // Waits until the process has ended. Returns its status, as waitpid() gives it.
  int wait() {
    if (!has_ended_) waitpid(pid_, &status_, 0);
    has_ended_ = true;
    return status_;
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    std::perror(what);
    std::exit(1);
  }

  pid_t pid_ = -1;                // id of the process
  int orders_ = -1;               // descriptor of its input; -1 once closed
  std::FILE* answers_ = nullptr;  // output of the process; null if it cannot be read
  bool has_ended_ = false;        // true once wait() has returned
  int status_ = 1;                // status of the process, once it has ended
};

}  // namespace sample
