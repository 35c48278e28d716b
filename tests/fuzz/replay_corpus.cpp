// The main() of a fuzz target when it is built without libFuzzer. It runs every kept input, and some mutations of each.
// Inputs that the fuzzer found are kept, so every build runs them. fuzz_entry FOLDER...
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" __attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                                                     std::size_t max_size, unsigned seed);

namespace {

constexpr int k_rounds = 300;
constexpr std::size_t k_room = 64; ///< the most bytes by which an input grows

std::mt19937_64& engine()
{
    static std::mt19937_64 engine{1};
    return engine;
}

std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>{0, end - 1}(engine()); }

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

/// Takes the place of libFuzzer's function with this name, which a custom mutator calls.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size)
{
    if (size < max_size && below(8) == 0) data[size++] = static_cast<std::uint8_t>(below(256));
    if (size > 1 && below(8) == 0) --size;
    for (std::size_t i = 0, changes = 1 + below(4); i < changes && size > 0; ++i)
        data[below(size)] = static_cast<std::uint8_t>(below(256));
    return size;
}

int main(int argc, char** argv)
{
    std::size_t inputs = 0;
    for (int i = 1; i < argc; ++i) {
        for (const auto& item : std::filesystem::directory_iterator(argv[i])) {
            if (!item.is_regular_file()) continue;
            ++inputs;
            const auto input = bytes_of(item.path());
            std::printf("%s\n", item.path().c_str());
            LLVMFuzzerTestOneInput(input.data(), input.size());
            for (int round = 0; round < k_rounds; ++round) {
                auto changed = input;
                changed.resize(input.size() + k_room);
                const std::size_t size = LLVMFuzzerCustomMutator != nullptr
                                             ? LLVMFuzzerCustomMutator(changed.data(), input.size(), changed.size(),
                                                                       static_cast<unsigned>(round))
                                             : LLVMFuzzerMutate(changed.data(), input.size(), changed.size());
                changed.resize(size); // cut to its size, so that AddressSanitizer sees where it ends
                changed.shrink_to_fit();
                LLVMFuzzerTestOneInput(changed.data(), changed.size());
            }
        }
    }
    std::printf("%zu inputs\n", inputs);
    return inputs == 0 ? 1 : 0;
}
