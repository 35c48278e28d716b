// fuzz_make_corpus FOLDER writes the inputs that tests/fuzz/corpus keeps, beside what the fuzzer found: run it again
// where the format changes. fuzz_make_corpus --check FOLDER fails where those in the folder are of another format.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "flat_writer.hpp"
#include "fuzz.hpp"

namespace {

using namespace warmgraph;

void write(const std::filesystem::path& path, ByteView bytes)
{
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

int check(const std::filesystem::path& folder)
{
    for (const char* name : {"opencl", "cuda", "compressed", "signed", "tombstone"}) {
        std::ifstream file(folder / "entry" / name, std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        const auto decoded = cachefmt::decode(as_bytes(text), cachefmt::test::sample_entry().header.key);
        if (decoded) continue;
        std::fprintf(stderr, "entry/%s is refused (%s): run fuzz_make_corpus tests/fuzz/corpus\n", name,
                     decoded.error().message.c_str());
        return 1;
    }
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc == 3 && std::string_view{argv[1]} == "--check") return check(argv[2]);
    if (argc != 2) return 2;
    const std::filesystem::path folder = argv[1];
    const cachefmt::Entry opencl = cachefmt::test::sample_entry(), cuda = cachefmt::test::sample_cuda_entry(),
                          tombstone = cachefmt::test::sample_tombstone();
    cachefmt::Entry renamed = cuda; // under the key that the target asks for
    renamed.header.key = opencl.header.key;
    const auto key = SigningKey::parse("ci:ed25519:" + std::string(64, 'b'));
    write(folder / "entry" / "opencl", *cachefmt::encode(opencl));
    write(folder / "entry" / "cuda", *cachefmt::encode(renamed));
    write(folder / "entry" / "compressed", *cachefmt::encode(renamed, {.compress_above = 0}));
    write(folder / "entry" / "signed", *cachefmt::encode(opencl, {.sign_with = &*key}));
    write(folder / "entry" / "tombstone", *cachefmt::encode(tombstone));
    write(folder / "header" / "opencl", cachefmt::write_header(opencl.header));
    write(folder / "header" / "tombstone", cachefmt::write_header(tombstone.header));
    write(folder / "payload" / "opencl", cachefmt::write_payload(opencl.graph));
    write(folder / "payload" / "cuda", cachefmt::write_payload(cuda.graph));
    write(folder / "usage" / "full",
          as_bytes(R"({"hits": 3, "misses": 1, "recordings": 1, "refusals": 0, "saved_ms": 12.5,)"
                   R"( "last_used": "2026-11-20T10:11:12Z", "cold": [["look up", 0.5]], "warm": [["load", 4]],)"
                   R"( "events": [{"kind": "miss", "reason": "no_entry", "count": 1, "bytes": 0}]})"));
    write(folder / "usage" / "odd", as_bytes(R"({"hits": -1, "saved_ms": 1e999, "last_used": "\ud800"})"));
    return 0;
}
