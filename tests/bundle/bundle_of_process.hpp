// A fixture with a process that records, compiles, tunes and counts sizes, and the bundle that it saves.
#pragma once

#include "tuning_fixture.hpp"
#include "warmgraph/bundle/bundle.hpp"

namespace warmgraph::test {

class ProcessBundleTest : public TuningTest {
protected:
    [[nodiscard]] CacheOptions in(const std::string& folder) const
    {
        CacheOptions result = options();
        result.cache_dir = (dir.path() / folder).string();
        return result;
    }
    /// The function y = x + 1, as a new process would make it.
    [[nodiscard]] Function wrap(Cache& cache, const std::string& name, std::vector<Buckets> buckets = {})
    {
        const Program code = device.program("small", k_small_kernels);
        Spec spec = vector_spec();
        spec.buckets = std::move(buckets);
        spec.code = {code};
        return cache.wrap(name, device, spec, [code](Recorder& r) {
            const auto count = static_cast<std::uint32_t>(r.sizes("x").at(0));
            const Launch launch{.grid = {count, 1, 1}, .block = {1, 1, 1}};
            r.stream().launch(code, "add_one", launch, r["x"], r["y"]);
        });
    }
    /// Calls a function that pads to one learnt size. Until that size is learnt, calls are only counted.
    Outcome call_of_length(Cache& cache, std::int64_t count)
    {
        Buckets lengths;
        lengths.dimensions = {{"x", 0, 0}, {"y", 0}};
        lengths.rule = BucketRule::learnt;
        lengths.most = 1;
        Function f = wrap(cache, "lengths", {lengths});
        call(f, count);
        return f.report().outcome;
    }
    void call(Function& f, std::int64_t count)
    {
        const Buffer x = floats(5, count), y = floats(0, count);
        static_cast<void>(f({{"x", Tensor{x, f32, {count}, {}}}, {"y", Tensor{y, f32, {count}, {}}}}));
        EXPECT_EQ(read(y), read(floats(6, count)));
    }
    void work(Cache& cache, const std::string& name = "f")
    {
        Function f = wrap(cache, name);
        call(f, k_count);
        static_cast<void>(call_of_length(cache, 17));
        Tuner tuner = tuner_of(cache);
        TuningModule module = tuner.begin_module("model", "1");
        m_tuned = module.tune(kernel()).report().outcome;
        module.end();
    }
    [[nodiscard]] CacheArtifacts saved_work()
    {
        Cache cache{in("cache")};
        work(cache);
        EXPECT_EQ(m_tuned, TuningOutcome::tuned);
        return *cache.save_cache_artifacts();
    }
    /// Works with a loaded bundle. Only the function with a new name misses; programs and configurations are found.
    void expect_warm(Cache& cache)
    {
        work(cache, "other");
        EXPECT_EQ(m_tuned, TuningOutcome::stored);
        EXPECT_EQ(cache.statistics().of(ArtifactKind::compiled).made, 0U);
        EXPECT_EQ(cache.statistics().cache_faults, 0U);
    }
    [[nodiscard]] static std::vector<std::string> kinds_of(const CacheInfo& info)
    {
        std::vector<std::string> kinds;
        for (const auto& kind : info.kinds) kinds.push_back(kind.kind);
        return kinds;
    }
    [[nodiscard]] static const warmgraph::ArtifactAmount* kind(const CacheInfo& info, const std::string& name)
    {
        const auto found = std::ranges::find(info.kinds, name, &warmgraph::ArtifactAmount::kind);
        return found != info.kinds.end() ? &*found : nullptr;
    }
    [[nodiscard]] std::string bundle_file() const { return (dir.path() / "cache.wgb").string(); }
    void write_bundle(std::span<const std::byte> bytes) const
    {
        std::ofstream(bundle_file(), std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
        std::filesystem::permissions(bundle_file(), std::filesystem::perms{0600});
    }
    /// Damages one byte in each member of this kind.
    static void damage_all_of(std::vector<std::byte>& bytes, store::ArtifactKind kind)
    {
        const auto opened = bundle::Bundle::open(bundle::over_bytes(bytes)).value();
        for (const auto& member : opened->members())
            if (member.kind == kind) bytes[member.offset] ^= std::byte{1};
    }
    [[nodiscard]] std::vector<std::string> files_in(const std::string& folder, const std::string& extension) const
    {
        std::vector<std::string> found;
        for (const auto& item : std::filesystem::recursive_directory_iterator(dir.path() / folder))
            if (item.path().extension() == extension) found.push_back(item.path().string());
        return found;
    }

    TuningOutcome m_tuned = TuningOutcome::untuned;
};

} // namespace warmgraph::test
