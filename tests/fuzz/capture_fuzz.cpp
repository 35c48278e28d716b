// Reads a capture that another process wrote. Most mutations get a size and a digest that match, because an attacker
// can do that, too.
#include "fuzz.hpp"
#include "sample_capture.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed)
{
    using namespace warmgraph;
    size = LLVMFuzzerMutate(data, size, max_size);
    if (size < test::k_capture_fields || seed % 8 == 0) return size; // an unchanged digest, as after accidental damage
    Bytes bytes(size);
    std::memcpy(bytes.data(), data, size);
    const Bytes sample = encode(test::sample_capture());
    std::memcpy(bytes.data(), sample.data(), 16); // sets magic and version
    bytes = test::sealed_capture(std::move(bytes));
    std::memcpy(data, bytes.data(), size);
    return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace warmgraph;
    const auto capture = decode_capture({reinterpret_cast<const std::byte*>(data), size});
    if (!capture) {
        fuzz::require((capture.error().code == ErrorCode::corrupt || capture.error().code == ErrorCode::stale) &&
                          !capture.error().message.empty(),
                      "a refusal is corrupt or stale, and says why");
        return 0;
    }
    for (const std::uint32_t module : capture->kernel_modules)
        fuzz::require(module < capture->code.size(), "a kernel's module has code");
    std::size_t kernels = 0, hosts = 0;
    for (const auto& node : capture->graph.nodes) {
        kernels += std::holds_alternative<backends::RawKernel>(node.work) ? 1 : 0;
        hosts += std::holds_alternative<backends::RawHost>(node.work) ? 1 : 0;
    }
    fuzz::require(kernels == capture->kernel_modules.size() && hosts == capture->host_functions.size(),
                  "each kernel has a module, each host node a name");
    const auto again = decode_capture(encode(*capture));
    fuzz::require(again && *again == *capture, "what was written reads the same");
    return 0;
}
