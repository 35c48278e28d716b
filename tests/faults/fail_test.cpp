// Promise D4: a file operation of a real program fails, or also all later ones. The program's own result is right, it
// ends normally, and the folder that it leaves can be used.
#include <cerrno>

#include "victim_fixture.hpp"

namespace warmgraph::test::fail_test {
namespace {

struct Failing {
    const char* name;
    const char* action;
    bool is_warm;
    Interference how;
    std::vector<int> errors;  ///< the values of errno, which are used in turn
    std::uint64_t operations; ///< an upper bound; the loop ends when the program has fewer operations
};

void PrintTo(const Failing& failing, std::ostream* out) { *out << failing.name; }

class FailingAtEach : public VictimTest, public testing::WithParamInterface<Failing> {
protected:
    /// Makes the nth operation fail. Returns false when the program had fewer operations.
    bool fail_at(std::uint64_t nth, bool for_ever)
    {
        const Failing& failing = GetParam();
        if (failing.is_warm)
            start_warm();
        else
            start_anew();
        Interference how = failing.how;
        how.nth = nth;
        how.for_ever = for_ever;
        how.error = failing.errors[nth % failing.errors.size()];
        const ProcessResult ended = run(failing.action, how);
        SCOPED_TRACE(fmt::format("{} {} {}", interfered_with(), how.does == "short" ? "" : ::strerror(how.error),
                                 for_ever ? "for ever" : "once"));
        const bool injected = m_report->injected > 0;
        EXPECT_EQ(ended.status, 0) << ended.errors;
        // If the cache can only be read, it must still be used.
        const bool is_readable = failing.is_warm && how.counts != "all" && how.counts != "opens";
        if (is_readable && std::string_view(failing.action) == "run") {
            EXPECT_TRUE(ended.says("replayed replayed")) << ended.output << ended.errors;
        }
        expect_nothing_torn();
        expect_usable();
        return injected;
    }
};

TEST_P(FailingAtEach, FileOperationTheProgramIsRightAndTheCacheUsable)
{
    if (GetParam().is_warm) keep_warm();
    for (const bool for_ever : {false, true}) {
        for (std::uint64_t nth = 1;; ++nth) {
            const bool injected = fail_at(nth, for_ever);
            if (HasFailure()) return; // all further rounds would fail in the same way
            if (injected) continue;
            EXPECT_GT(nth, GetParam().operations) << "hardly anything was made to fail";
            break;
        }
    }
}

const Interference k_any{.does = "fail", .counts = "all"}, k_opens{.does = "fail", .counts = "opens"},
    k_changes{.does = "fail", .counts = "changes"}, k_short{.does = "short", .counts = "writes"};

INSTANTIATE_TEST_SUITE_P(Each, FailingAtEach,
                         testing::Values(Failing{"ColdAny", "run", false, k_any, {EIO, ESTALE}, 80},
                                         Failing{"ColdOpening", "run", false, k_opens, {EACCES, EMFILE}, 20},
                                         Failing{"ColdChanging", "run", false, k_changes, {ENOSPC, EROFS}, 40},
                                         Failing{"ColdShortWrite", "run", false, k_short, {0}, 3},
                                         Failing{"WarmAny", "run", true, k_any, {EIO, ESTALE}, 20},
                                         Failing{"WarmOpening", "run", true, k_opens, {EACCES, EMFILE}, 10},
                                         Failing{"WarmChanging", "run", true, k_changes, {ENOSPC, EROFS}, 5},
                                         Failing{"Overwriting", "refresh", true, k_changes, {EIO, ENOSPC}, 20},
                                         Failing{"Evicting", "evict", true, k_changes, {EIO, EACCES}, 20}),
                         [](const auto& failing) { return failing.param.name; });

} // namespace
} // namespace warmgraph::test::fail_test
