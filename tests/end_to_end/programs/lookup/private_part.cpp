// The library that runpath_library.cpp opens.
extern "C" [[gnu::visibility("default")]] int private_answer() { return 42; }
