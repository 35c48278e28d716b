// External semaphores when driver calls fail.
#include <map>

#include "semaphores_fixture.hpp"
#include "stride.hpp"

namespace warmgraph::test::semaphores_fault_test {
namespace {

// Promise G1: if any driver call fails, the result is right, and the frame is signalled only once.
TEST_F(Semaphores, FaultsOfTheDriverNeitherLoseNorRepeatASignal)
{
    struct Answer {
        Outcome outcome = Outcome::eager; ///< outcome of the second call
        std::optional<std::string> thrown, thrown_second;
        std::vector<int32_t> values;
        std::uint64_t shown = 0;
        long calls = 0;
        bool was_hit = false;
        std::string failed_call, reason;
        std::vector<std::string> names; ///< names of the driver calls
    };
    const auto call = [&](long failing, CUresult status) {
        const Device device{"cuda:0"};
        const Program program = device.program("small", k_fake_cuda_program);
        const Channel here = channel(12);
        const Buffer x = device.upload<int32_t>(std::vector<int32_t>(k_semaphore_count, 5)),
                     y = device.allocate(k_semaphore_bytes);
        Cache cache{options()};
        const Callable own = work(program, here);
        bool callable_threw = false;
        Function f = cache.wrap("f", device, spec_of(program, here), [&](Recorder& r) {
            try {
                own(r);
            } catch (...) {
                callable_threw = true;
                throw;
            }
        });
        fake.reset();
        if (failing > 0) fake.fail_at(failing, status);
        Answer answer;
        const auto failure_of = [](const auto& call_it) -> std::optional<std::string> {
            try {
                call_it();
            } catch (const std::exception& failure) {
                return failure.what();
            }
            return std::nullopt;
        };
        answer.thrown = failure_of([&] { f({{"x", x}, {"y", y}, {"frame", std::uint64_t{11}}}); });
        answer.thrown_second =
            failure_of([&] { answer.outcome = f({{"x", x}, {"y", y}, {"frame", std::uint64_t{12}}}); });
        EXPECT_TRUE(callable_threw || (!answer.thrown && !answer.thrown_second));
        answer.calls = fake.calls();
        for (long i = 0; failing == 0 && i < answer.calls; ++i) answer.names.push_back(fake.call(i));
        answer.was_hit = fake.was_hit();
        if (failing > 0) answer.failed_call = fake.call(failing - 1);
        answer.reason = f.report().reason;
        // This must come before reset(), which forgets the error of a misused semaphore.
        fake.fail_at(1'000'000'000, CUDA_ERROR_UNKNOWN);
        device.synchronize();
        answer.values = y.read<int32_t>();
        answer.shown = fake.value_of(here.shown);
        fake.reset();
        return answer;
    };
    const auto cache = dir.path() / "cache", recorded = dir.path() / "recorded";
    const auto forget = [&] { std::filesystem::remove_all(cache); };
    static_cast<void>(call(0, CUDA_SUCCESS)); // does the work that a process does only once (CUPTI)
    for (const bool replays : {false, true}) {
        if (!replays) forget();
        const Answer undisturbed = call(0, CUDA_SUCCESS);
        ASSERT_EQ(undisturbed.outcome, replays ? Outcome::replayed : Outcome::recorded) << undisturbed.reason;
        if (!replays) std::filesystem::copy(cache, recorded, std::filesystem::copy_options::recursive);
        const std::string before = fake.live();
        std::map<std::string, std::uint64_t> of_entry;
        for (long failing = 1; failing <= undisturbed.calls; failing += failing < 200 ? 1 : 5) {
            if (!is_taken(++of_entry[undisturbed.names.at(static_cast<std::size_t>(failing) - 1)])) continue;
            forget();
            if (replays) std::filesystem::copy(recorded, cache, std::filesystem::copy_options::recursive);
            const CUresult status = failing % 2 == 0 ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_OUT_OF_MEMORY;
            const Answer answer = call(failing, status);
            SCOPED_TRACE(fmt::format("call {} of {}, {}: {} ({})", failing, undisturbed.calls, answer.failed_call,
                                     to_string(answer.outcome), answer.reason));
            ASSERT_TRUE(answer.was_hit);
            ASSERT_EQ(fake.live(), before);
            ASSERT_EQ(answer.values, std::vector<int32_t>(k_semaphore_count, 6)); // both calls give the right values
            // The answer itself may fail; then the caller gets its error. It may have signalled before it failed.
            ASSERT_FALSE(replays && (answer.thrown || answer.thrown_second));
            if (answer.thrown_second) {
                ASSERT_THAT(answer.shown, AnyOf(11U, 12U));
            } else {
                ASSERT_EQ(answer.shown, 12U);
            }
        }
    }
}

} // namespace
} // namespace warmgraph::test::semaphores_fault_test
