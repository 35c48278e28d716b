// warmgraph_packing FOLDER...: stores every file below these folders as an image of a cache, at several levels of zstd.
// Measures the bytes on disk, and the time to load all from the page cache like a restore does (read, decompress,
// SHA-256). docs/measurements.md, "Store and bundles".
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "temp_dir.hpp"
#include "timing.hpp"
#include "warmgraph/store/local_store.hpp"

namespace {

using namespace warmgraph;

constexpr int k_repetitions = 21;

struct Images {
    std::vector<Bytes> contents;
    std::vector<Digest> digests;
    std::uint64_t bytes = 0;
};

Images read_images(const std::filesystem::path& folder)
{
    Images images;
    for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
        if (!item.is_regular_file() || item.file_size() == 0) continue;
        std::ifstream file(item.path(), std::ios::binary);
        const std::string text((std::istreambuf_iterator<char>(file)), {});
        const ByteView view = as_bytes(text);
        images.contents.emplace_back(view.begin(), view.end());
        images.digests.push_back(sha256(view));
        images.bytes += view.size();
    }
    return images;
}

struct PackingFigures {
    std::uint64_t stored = 0;
    double publish_ms = 0, load_ms = 0;
};

std::optional<PackingFigures> measure(const Images& images, const store::Packing& packing)
{
    const test::TempDir folder;
    store::StoreOptions options;
    options.packings.images = packing;
    const auto store = store::LocalStore::open(folder.path() / "cache", options);
    if (!store) return std::nullopt;
    PackingFigures measured;
    const auto published = bench::now();
    for (const Bytes& image : images.contents)
        if (!(*store)->publish_image(image)) return std::nullopt;
    measured.publish_ms = bench::milliseconds_since(published);
    const auto on_disk = (*store)->images();
    if (!on_disk) return std::nullopt;
    for (const auto& [digest, size] : *on_disk) measured.stored += size;
    std::vector<double> times;
    for (int i = 0; i < k_repetitions; ++i) {
        const auto begin = bench::now();
        for (const Digest& digest : images.digests) {
            const auto image = (*store)->image(digest);
            if (!image || !*image) return std::nullopt;
        }
        times.push_back(bench::milliseconds_since(begin));
    }
    measured.load_ms = bench::lower_quartile(std::move(times));
    return measured;
}

int report(const std::filesystem::path& folder)
{
    const Images images = read_images(folder);
    if (images.contents.empty()) {
        std::fprintf(stderr, "%s: no files\n", folder.c_str());
        return 1;
    }
    std::printf("%s: %zu images, %llu bytes\n\n| level | above | stored | of raw | load | publish |\n"
                "| --- | --- | --- | --- | --- | --- |\n",
                folder.c_str(), images.contents.size(), static_cast<unsigned long long>(images.bytes));
    for (const int level : {0, 1, 3, 9, 19})
        for (const std::uint64_t above : {0ULL, 16ULL * 1024, 256ULL * 1024}) {
            if (level == 0 && above != 0) continue;
            const auto measured = measure(images, {level, above});
            if (!measured) return 1;
            std::printf("| %d | %llu KiB | %.1f KiB | %.0f %% | %.2f ms | %.0f ms |\n", level,
                        static_cast<unsigned long long>(above / 1024), static_cast<double>(measured->stored) / 1024,
                        100.0 * static_cast<double>(measured->stored) / static_cast<double>(images.bytes),
                        measured->load_ms, measured->publish_ms);
        }
    std::printf("\n");
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s FOLDER...\n", argv[0]);
        return 2;
    }
    int status = 0;
    for (int i = 1; i < argc; ++i) status = std::max(status, report(argv[i]));
    return status;
}
