// A fixture with a function y = x + 1 for any size, and with its buckets.
#pragma once

#include "facade_fixture.hpp"

namespace warmgraph::test {

class ProfileTest : public FacadeTest {
protected:
    /// The buckets for x and y, which have the same size.
    [[nodiscard]] static Buckets bucket_of(BucketRule rule, double value = 0)
    {
        Buckets buckets;
        buckets.dimensions = {{"x", 0, value}, {"y", 0}};
        buckets.rule = rule;
        return buckets;
    }
    [[nodiscard]] static Buckets given(std::vector<std::int64_t> sizes)
    {
        Buckets buckets = bucket_of(BucketRule::given);
        buckets.sizes = std::move(sizes);
        return buckets;
    }
    [[nodiscard]] static Buckets learnt(std::uint32_t most, std::int64_t multiple_of = 1)
    {
        Buckets buckets = bucket_of(BucketRule::learnt);
        buckets.most = most;
        buckets.multiple_of = multiple_of;
        return buckets;
    }
    [[nodiscard]] Spec spec_of(std::vector<Buckets> buckets) const
    {
        Spec spec = vector_spec();
        spec.buckets = std::move(buckets);
        return spec;
    }
    /// The function y = x + 1 for any number of elements.
    [[nodiscard]] Function wrap(Cache& cache, const Spec& spec, const std::string& name = "f")
    {
        return cache.wrap(name, device, spec, [this](Recorder& r) {
            m_ran = r.sizes("x");
            std::uint32_t count = 1;
            for (const std::int64_t size : m_ran) count *= static_cast<std::uint32_t>(size);
            r.stream().launch(program, "add_one", {.grid = {count, 1, 1}, .block = {1, 1, 1}}, r["x"], r["y"]);
        });
    }
    struct CallResult {
        Outcome outcome;
        bool is_right;
    };
    /// Calls with `count` elements. Expects that nothing is written after the result.
    [[nodiscard]] CallResult call(Function& f, std::int64_t count)
    {
        constexpr std::int64_t k_behind = 8;
        const Buffer x = floats(5, std::max<std::int64_t>(count, 1)), y = floats(-1000, count + k_behind);
        const Outcome outcome = f({{"x", Tensor{x, f32, {count}, {}}}, {"y", Tensor{y, f32, {count}, {}}}});
        const auto result = read(y), asked = read(x);
        bool is_right = true;
        for (std::int64_t i = 0; i < count + k_behind; ++i) {
            const auto at = static_cast<std::size_t>(i);
            is_right &= result[at] == (i < count ? asked[at] + 1 : -1000.0F + static_cast<float>(i));
        }
        return {outcome, is_right};
    }
    /// Returns a function that makes arguments of any size. They live until it is called again.
    [[nodiscard]] MakeArguments maker()
    {
        return [this](const ProfiledShape& shape) {
            const auto& sizes = shape.sizes.at("x");
            m_made.clear();
            for (int i = 0; i < 2; ++i) m_made.push_back(floats(0, sizes[0]));
            m_asked.push_back(sizes[0]);
            return std::vector<Arg>{{"x", Tensor{m_made[0].memory(), f32, sizes, {}}},
                                    {"y", Tensor{m_made[1].memory(), f32, sizes, {}}}};
        };
    }
    [[nodiscard]] std::vector<std::filesystem::path> profiles() const { return files(".profile"); }

    std::vector<std::int64_t> m_ran;   ///< the sizes with which the callable ran last
    std::vector<std::int64_t> m_asked; ///< the sizes for which a profile asked for a recording
    std::vector<Buffer> m_made;
};

} // namespace warmgraph::test
