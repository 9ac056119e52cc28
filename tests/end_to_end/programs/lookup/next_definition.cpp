// The second definition of next_library.cpp's contested name.
extern "C" [[gnu::visibility("default")]] int contested_name() { return 2; }
extern "C" [[gnu::visibility("default")]] int needed_by_the_first() { return 0; }
