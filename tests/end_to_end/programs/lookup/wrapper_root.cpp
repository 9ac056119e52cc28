// A library that is opened for the two that it needs: a wrapper of CUDA, and a library that calls
// CUDA and does not know of the wrapper.
extern "C" int calls_of_wrapper();
extern "C" int start();

extern "C" int root() { return calls_of_wrapper() + start(); }
