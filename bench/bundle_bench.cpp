// A bundle of 1 GiB: 1,024 entries with an image of 1 MiB each. The bytes cannot be compressed.
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>

#include <benchmark/benchmark.h>

#include "temp_dir.hpp"
#include "warmgraph/bundle/compatibility.hpp"
#include "warmgraph/bundle/transfer.hpp"
#include "warmgraph/bundle/writer.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::bench {
namespace {

constexpr int k_bundled = 1024;

Bytes random_image(int number)
{
    std::mt19937_64 random(static_cast<std::uint64_t>(number) + 1);
    Bytes bytes(1 << 20);
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t word = random();
        std::memcpy(bytes.data() + at, &word, sizeof word);
    }
    return bytes;
}

cachefmt::Entry bundled_entry(int number, const Bytes& image)
{
    cachefmt::Entry entry;
    auto& header = entry.header;
    for (int i = 0; i < 30; ++i)
        header.guards.facts.push_back(
            {"fact." + std::to_string(100 + i), "value " + std::to_string(i), cachefmt::Role::must_match});
    header.guards.tensors.push_back({"x", DType::f32, {number + 1}, {1}, "opencl:0", 256, 0});
    header.key = {{"bench_static_clgraphcache_0123456789ab", "world1global_rank0", "f" + std::to_string(number)},
                  cachefmt::guards_digest(header.guards)};
    header.info.node_count = 1;
    header.info.image_count = 1;
    entry.graph.regions.push_back({"x", cachefmt::RegionKind::input, 4, 4, {}});
    entry.graph.images.push_back({sha256(image), image.size(), {}, "kernels"});
    entry.graph.nodes.emplace_back(cachefmt::EmptyNode{});
    return entry;
}

struct BigBundle {
    BigBundle()
    {
        bundle::Writer writer(bundle::into_file(path).value());
        for (int i = 0; i < k_bundled; ++i) {
            const Bytes image = random_image(i);
            const cachefmt::Entry entry = bundled_entry(i, image);
            last = store::ImageName{sha256(image)};
            if (!writer.add(store::ArtifactKind::images, last, image) ||
                !writer.add(store::ArtifactKind::entries, entry.header.key, cachefmt::encode(entry).value()))
                std::abort();
        }
        if (!writer.finish()) std::abort();
    }
    test::TempDir dir;
    std::filesystem::path path = dir.path() / "big.wgb";
    store::ImageName last{};
};

const BigBundle& big_bundle()
{
    static const BigBundle result;
    return result;
}

void bundle_open(benchmark::State& state)
{
    const auto& big = big_bundle();
    for (auto _ : state) {
        const auto opened = bundle::Bundle::open(bundle::open_file(big.path).value());
        if (!opened || (*opened)->members().size() != 2 * k_bundled) state.SkipWithError("the bundle is not opened");
    }
}
BENCHMARK(bundle_open)->Unit(benchmark::kMillisecond)->Repetitions(5)->ReportAggregatesOnly();

void bundle_check(benchmark::State& state)
{
    const auto& big = big_bundle();
    const bundle::MachineFacts here{{"fact.100", "value 0", cachefmt::Role::must_match}};
    for (auto _ : state) {
        const auto opened = bundle::Bundle::open(bundle::open_file(big.path).value()).value();
        int fitting = 0;
        for (const auto& member : opened->members())
            if (member.kind == store::ArtifactKind::entries)
                fitting += bundle::judge(opened->header(member)->guards, here).verdict == bundle::Verdict::fits ? 1 : 0;
        if (fitting != k_bundled) state.SkipWithError("not every entry was judged");
    }
}
BENCHMARK(bundle_check)->Unit(benchmark::kMillisecond)->Repetitions(5)->ReportAggregatesOnly();

void bundle_read_one(benchmark::State& state)
{
    const auto& big = big_bundle();
    const auto opened = bundle::Bundle::open(bundle::open_file(big.path).value()).value();
    const bundle::Member* const member = opened->find(to_text(store::Name(big.last)));
    for (auto _ : state)
        if (member == nullptr || !opened->content(*member)) state.SkipWithError("the member is not read");
}
BENCHMARK(bundle_read_one)->Unit(benchmark::kMillisecond)->Repetitions(5)->ReportAggregatesOnly();

/// Loads the wanted entries of the bundle into an empty cache folder below `dir`.
std::filesystem::path load(const test::TempDir& dir, const bundle::EntryFilter& wanted, std::uint64_t entries)
{
    std::filesystem::path folder = dir.path() / "cache";
    const auto opened = bundle::Bundle::open(bundle::open_file(big_bundle().path).value()).value();
    const auto store = store::LocalStore::open(folder, {}).value();
    auto loaded = bundle::unpack(*opened, store->tier(), wanted);
    if (!loaded) throw std::runtime_error(loaded.error().message);
    if (const auto count = loaded->moved[store::ArtifactKind::entries].count; count != entries)
        throw std::runtime_error(std::to_string(count) + " entries were loaded");
    return folder;
}

void bundle_load_one(benchmark::State& state)
{
    static_cast<void>(big_bundle());
    const auto is_seventh = [](const cachefmt::EntryHeader& header) -> std::string {
        return header.key.function.function == "f7" ? "" : "another function";
    };
    for (auto _ : state) {
        const test::TempDir dir;
        load(dir, is_seventh, 1);
    }
}
BENCHMARK(bundle_load_one)->Unit(benchmark::kMillisecond)->Repetitions(3)->Iterations(1)->ReportAggregatesOnly();

void bundle_load_all(benchmark::State& state)
{
    static_cast<void>(big_bundle());
    for (auto _ : state) {
        const test::TempDir dir;
        load(dir, [](const cachefmt::EntryHeader&) { return std::string(); }, k_bundled);
    }
}
BENCHMARK(bundle_load_all)->Unit(benchmark::kMillisecond)->Iterations(1);

void copy_folder(benchmark::State& state)
{
    const test::TempDir from, to;
    const auto folder = load(from, [](const cachefmt::EntryHeader&) { return std::string(); }, k_bundled);
    for (auto _ : state) std::filesystem::copy(folder, to.path() / "copy", std::filesystem::copy_options::recursive);
}
BENCHMARK(copy_folder)->Unit(benchmark::kMillisecond)->Iterations(1);

} // namespace
} // namespace warmgraph::bench
