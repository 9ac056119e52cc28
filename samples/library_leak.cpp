// The bug is not in this program, but in a library that it uses (vendor_filter.cpp), of which it
// has neither the sources nor debug info. The program serves requests for pictures, and the library
// sharpens them. The library refuses pictures of an odd width, and loses the device memory that it
// has allocated for them. It also keeps memory on purpose: a work space, and a few buffers.
//
// cuwarden calls the lost memory `lost` and growing. It names the library's file, the exported
// function with the offset in it, and this program's line that called it. The memory that the
// library keeps is `reachable`, and comes below.
//
//     library_leak [requests] [seed]
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "samples/libraries/vendor_filter.hpp"
#include "samples/planted_leaks.hpp"

namespace {

struct Image {
  std::size_t width, height;
  std::size_t bytes() const { return width * height; }
};

int upload_line = 0;
// Uploads that the library has refused, and their bytes.
std::size_t refused = 0, refused_bytes = 0;
std::vector<unsigned char> pixels, sharpened;

void require_device(VendorFilterResult result) {
  if (result != VENDOR_FILTER_CUDA_FAILED) return;
  std::fprintf(stderr, "the filter failed: is there a CUDA device?\n");
  std::exit(1);
}

// Sharpens a camera's picture. Cameras make pictures of even widths.
[[gnu::noinline]] void make_preview(Image image) {
  const VendorFilterResult result =
      vendor_filter_sharpen(pixels.data(), image.width, image.height, sharpened.data());
  require_device(result);
}

// Sharpens a picture that a user has cropped to any width. One that is refused is stored as it is.
[[gnu::noinline]] void store_upload(Image image) {
  upload_line = __LINE__ + 2;
  const VendorFilterResult result =
      vendor_filter_sharpen(pixels.data(), image.width, image.height, sharpened.data());
  require_device(result);
  if (result != VENDOR_FILTER_ODD_WIDTH) return;
  ++refused;
  refused_bytes += image.bytes();
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t requests = sample::argument(argc, argv, 1, 300);
  const std::size_t seed = sample::argument(argc, argv, 2, 1);

  constexpr Image sizes[] = {{320, 240}, {480, 320}, {640, 360}, {640, 480}, {800, 450}};
  std::minstd_rand random(static_cast<unsigned>(seed + 1));
  pixels.resize(800 * 450);
  sharpened.resize(pixels.size());
  std::size_t uploads = 0;
  for (std::size_t request = 0; request < requests; ++request) {
    Image image = sizes[random() % std::size(sizes)];
    if (random() % 4 == 0) {
      make_preview(image);
    } else {
      if (random() % 12 == 0) --image.width;  // The user has cropped it.
      store_upload(image);
      ++uploads;
    }
    // Stands for the wait for the next request.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  const VendorFilterMemory kept = vendor_filter_memory();
  std::printf("%zu requests, of which %zu uploads; vendor_filter %s refused %zu for an odd width\n",
              requests, uploads, vendor_filter_version(), refused);
  const bool loses = std::string(vendor_filter_version()) == "2.3.0";
  std::vector<sample::PlantedLeak> leaks;
  // The library's own functions have no names.
  if (kept.buffers != 0)
    leaks.push_back({"cudaMalloc", "device", kept.buffers, kept.bytes, nullptr, 0, nullptr,
                     "libvendor_filter.so"});
  if (loses && refused != 0)
    leaks.push_back({"cudaMalloc", "device", refused, refused_bytes, "vendor_filter_sharpen", 0,
                     nullptr, "libvendor_filter.so"});
  sample::print_leaks(
      leaks, R"(,"calling_function":"store_upload","calling_line":)" + std::to_string(upload_line) +
                 ",\"uploads\":" + std::to_string(uploads) + ",\"refused\":" +
                 std::to_string(refused) + ",\"refused_bytes\":" + std::to_string(refused_bytes));
}
