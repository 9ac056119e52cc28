// A library with MPI's name, and nothing in it.
extern "C" int pretended_mpi_version() { return 3; }
