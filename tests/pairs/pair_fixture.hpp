// A fixture with a pair on PoCL: y = tanh(x * w). Forward saves values for backward, which computes the gradients of x
// and w.
#pragma once

#include <cmath>
#include <sstream>

#include "facade_fixture.hpp"

namespace warmgraph::test {

inline constexpr const char* k_pair_kernels = R"(
__kernel void forward(__global const float* x, __global const float* w, __global float* y, __global float* saved)
{ size_t i = get_global_id(0); float t = tanh(x[i] * w[i]); y[i] = t; saved[i] = t; saved[get_global_size(0) + i] = x[i]; }
__kernel void backward(__global const float* dy, __global const float* saved, __global const float* w,
                       __global float* dx, __global float* dw)
{ size_t i = get_global_id(0); float dz = dy[i] * (1.0f - saved[i] * saved[i]);
  dx[i] = dz * w[i]; dw[i] = dz * saved[get_global_size(0) + i]; }
__kernel void copy_to(__global const float* from, __global float* to) { size_t i = get_global_id(0); to[i] = from[i]; }
__kernel void add_to(__global const float* from, __global float* to) { size_t i = get_global_id(0); to[i] += from[i]; }
)";

class PairTest : public FacadeTest {
protected:
    using Callables = std::pair<Callable, Callable>;

    [[nodiscard]] PairSpec spec() const
    {
        PairSpec result;
        result.forward.inputs = {input("x", f32, {k_count})};
        result.forward.outputs = {output("y", f32, {k_count})};
        result.forward.states = {weights("w", w, f32)};
        result.forward.code = {kernels};
        result.backward.inputs = {input("dy", f32, {k_count})};
        result.backward.outputs = {output("dx", f32, {k_count}), output("dw", f32, {k_count})};
        result.backward.states = {weights("w", w, f32)};
        result.saved = {{"h", f32, {2, k_count}}};
        result.gradients = {{"dx", "x"}, {"dw", "w"}, {"dy", "y"}};
        return result;
    }
    void run_forward(Recorder& r) const
    {
        r.stream().launch(kernels, "forward", k_launch, r["x"], r["w"], r["y"], r["h"]);
    }
    void run_backward(Recorder& r) const
    {
        r.stream().launch(kernels, "backward", k_launch, r["dy"], r["h"], r["w"], r["dx"], r["dw"]);
    }
    [[nodiscard]] Pair wrap(Cache& cache, const PairSpec& declared)
    {
        return cache.wrap_pair(
            "step", device, declared,
            [this](Recorder& r) {
                ++forward_runs;
                run_forward(r);
            },
            [this](Recorder& r) {
                ++backward_runs;
                run_backward(r);
            });
    }
    [[nodiscard]] Pair wrap(Cache& cache) { return wrap(cache, spec()); }
    [[nodiscard]] Buffer values(float scale, float shift, std::int64_t count = k_count) const
    {
        std::vector<float> result(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < result.size(); ++i)
            result[i] = scale * static_cast<float>(static_cast<int>(i % 13) - 6) + shift;
        return device.upload<float>(result);
    }
    ForwardCall forward(Pair& pair) { return pair.forward({{"x", x}, {"y", y}}); }
    Outcome backward(Pair& pair, const ForwardCall& of)
    {
        return pair.backward(of, {{"dy", dy}, {"dx", dx}, {"dw", dw}});
    }
    /// Compares y, dx and dw with values that are computed here.
    void expect_results(const std::string& when) const
    {
        const auto xs = read(x), ws = read(w), dys = read(dy), ys = read(y), dxs = read(dx), dws = read(dw);
        for (std::size_t i = 0; i < xs.size(); ++i) {
            const float t = std::tanh(xs[i] * ws[i]), dz = dys[i] * (1 - t * t);
            ASSERT_NEAR(ys[i], t, 1e-5) << when << " y " << i;
            ASSERT_NEAR(dxs[i], dz * ws[i], 1e-5) << when << " dx " << i;
            ASSERT_NEAR(dws[i], dz * xs[i], 1e-5) << when << " dw " << i;
        }
    }
    void clear_results() { y = values(0, 9), dx = values(0, 9), dw = values(0, 9); }
    /// Calls both halves. Expects the outcome `expected` for each, and right results.
    void both_halves(Pair& pair, Outcome expected, const std::string& when)
    {
        const ForwardCall call = forward(pair);
        EXPECT_EQ(call.outcome, expected) << pair.report(PairHalf::forward).reason;
        EXPECT_EQ(backward(pair, call), expected) << pair.report(PairHalf::backward).reason;
        expect_results(when);
    }
    /// Makes the calls as one new process does.
    void step_in_a_new_cache(Outcome expected)
    {
        Cache cache{options()};
        Pair pair = wrap(cache);
        clear_results();
        both_halves(pair, expected, "in a new cache");
    }

    struct RecordedPart {
        std::string part, recording;
        std::string entry; ///< the digest of the entry
    };
    /// The parts that are in the pair's entries, with the backward parts first.
    [[nodiscard]] static std::vector<RecordedPart> parts(Cache& cache)
    {
        std::vector<RecordedPart> result;
        std::istringstream lines{cache.readable("step")};
        std::string entry;
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words{line};
            std::string field, value, of, recording;
            words >> field >> value >> of >> recording;
            if (field == "entry") entry = value;
            if (field == "recording") result.push_back({value, recording, entry});
        }
        std::ranges::sort(result, {}, &RecordedPart::part);
        return result;
    }
    /// The file of the forward entry, or of the backward entry that belongs to it. REQUIRES: there is only one forward
    /// entry.
    [[nodiscard]] std::filesystem::path file_of(const std::string& part) const
    {
        Cache cache{options(Policy::read_only)};
        const auto all = parts(cache);
        const auto forward = std::ranges::find(all, "forward", &RecordedPart::part);
        for (const auto& file : entries())
            for (const RecordedPart& one : all)
                if (one.part == part && one.recording == forward->recording && file.stem() == one.entry) return file;
        return {};
    }

    Program kernels = device.program("pair", k_pair_kernels);
    Buffer x = values(0.1F, 0.05F), w = values(0.2F, 0.3F), dy = values(0.05F, 1), y = values(0, 9), dx = values(0, 9),
           dw = values(0, 9);
    int forward_runs = 0, backward_runs = 0;
};

} // namespace warmgraph::test
