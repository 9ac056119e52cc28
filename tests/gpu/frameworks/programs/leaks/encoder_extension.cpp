// An extension module of Python that leaks device memory: encode(bytes) allocates through the
// driver that the process has loaded, and forgets the address.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>

namespace encoder {

class Encoder {
 public:
  int reserve(size_t bytes) {
    using Allocate = int (*)(unsigned long long*, size_t);
    static const Allocate allocate =
        reinterpret_cast<Allocate>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2"));
    unsigned long long address = 0;
    const int result = allocate(&address, bytes);  // planted
    last_ = address;
    return result;
  }

 private:
  volatile unsigned long long last_ = 0;
};

}  // namespace encoder

static PyObject* encode(PyObject*, PyObject* arguments) {
  Py_ssize_t bytes = 0;
  if (!PyArg_ParseTuple(arguments, "n", &bytes)) return nullptr;
  static encoder::Encoder instance;
  return PyLong_FromLong(instance.reserve(static_cast<size_t>(bytes)));
}

static PyMethodDef methods[] = {{"encode", encode, METH_VARARGS, "Leaks that many bytes."},
                                {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT,
                             "encoder_extension",
                             nullptr,
                             -1,
                             methods,
                             nullptr,
                             nullptr,
                             nullptr,
                             nullptr};

PyMODINIT_FUNC PyInit_encoder_extension(void) { return PyModule_Create(&module); }
