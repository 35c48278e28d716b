// Runs the training sample in new processes, cold and warm.
#include <sstream>

#include "process_fixture.hpp"

namespace llm::train_test {
namespace {

using testing::HasSubstr;

class Training : public Process {
protected:
    struct Run {
        std::vector<std::string> steps; ///< the output lines that describe a step
        std::string output;
        [[nodiscard]] double loss(std::size_t step) const
        {
            const std::string& line = steps.at(step);
            return std::stod(line.substr(line.find("loss ") + 5));
        }
    };
    [[nodiscard]] Run train(std::vector<std::string> arguments)
    {
        const ProcessResult ended = run_on_backend(carried(TRAIN_BINARY), arguments);
        EXPECT_EQ(ended.code, 0) << ended.errors;
        Run result{{}, ended.output + ended.errors};
        std::istringstream lines{ended.output};
        for (std::string line; std::getline(lines, line);)
            if (line.starts_with("step ")) result.steps.push_back(line);
        return result;
    }
};

TEST_F(Training, AHundredStepsStartColdAndWarmWithTheSameLosses)
{
    const Run cold = train({});
    ASSERT_EQ(cold.steps.size(), 100U);
    EXPECT_THAT(cold.output, HasSubstr("forward recorded, backward recorded, update recorded"));
    EXPECT_THAT(cold.output, HasSubstr("0 hits, 2 misses"));
    EXPECT_LT(cold.loss(99), cold.loss(0) / 2) << "it learns";
    EXPECT_EQ(entries_of("step").size(), 2U) << "forward and backward";

    m_environment["WARMGRAPH_POLICY"] = "require_hit";
    const Run warm = train({});
    EXPECT_THAT(warm.output, HasSubstr("forward replayed, backward replayed, update replayed"));
    EXPECT_THAT(warm.output, HasSubstr("2 hits, 0 misses"));
    EXPECT_EQ(warm.steps, cold.steps);

    m_environment["WARMGRAPH_POLICY"] = "off";
    EXPECT_EQ(train({}).steps, cold.steps) << "and without a cache";
}

TEST_F(Training, ReplayedGradientsAreThoseOfFiniteDifferences)
{
    static_cast<void>(train({"--steps", "1"}));
    m_environment["WARMGRAPH_POLICY"] = "require_hit";
    EXPECT_THAT(train({"--steps", "3", "--check-gradients"}).output, HasSubstr("from finite differences"));
}

} // namespace
} // namespace llm::train_test
