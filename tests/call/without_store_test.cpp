// Tests Lookup, Publisher and RecordJobs when caching is off: they report this, and keep nothing.
#include "call_fixture.hpp"
#include "warmgraph/call/lookup.hpp"
#include "warmgraph/call/publisher.hpp"
#include "warmgraph/call/record_jobs.hpp"

namespace warmgraph::test::without_store_test {
namespace {

class WithoutStore : public CallTest {
protected:
    std::shared_ptr<Declaration> declaration = declare([](Recorder&) {});
    Counters counters;
    store::TouchedNames touched;
    PreloadState preload;
    replay::ModuleCache modules;
    std::shared_ptr<Programs> programs = std::make_shared<Programs>(nullptr, cachefmt::Trust{}, "it is off");
    const replay::ImageSource no_images = [](const cachefmt::ImageRef&) -> Result<Bytes> {
        return fail(ErrorCode::not_found, "there is none");
    };
    Lookup lookup{declaration, {nullptr, "the disk is full", true, {}, no_images, {}, counters, preload, modules}};
    Publisher publisher{declaration, {nullptr, nullptr, {}, "the disk is full", programs, touched, counters}};
    RecordJobs jobs{declaration, publisher, programs, modules, counters, {}};
    FirstCall first_call = new_first_call();
};

TEST_F(WithoutStore, ACallRunsAsItIsAndTheReasonSaysWhy)
{
    const Plan plan = lookup.decide(first_call, false);
    EXPECT_EQ(plan.action, Plan::Action::run_as_it_is);
    EXPECT_THAT(plan.reason, HasSubstr("the disk is full"));
    EXPECT_FALSE(lookup.may_have_candidates());
}

TEST_F(WithoutStore, NothingIsPublished)
{
    EXPECT_THAT(publisher.why_not(), HasSubstr("the disk is full"));
    EXPECT_FALSE(publisher.recompiled(first_call.digest));
    EXPECT_EQ(jobs.wait_for_lock(first_call.digest), nullptr);
}

TEST_F(WithoutStore, AFailureIsCounted)
{
    lookup.note_failure("replay", {ErrorCode::driver_failed, "it broke"});
    EXPECT_EQ(counters.snapshot().cache_faults, 1U);
}

TEST_F(WithoutStore, OneJobIsUnderWayAtATime)
{
    EXPECT_FALSE(jobs.has_pending());
    jobs.begin();
    EXPECT_TRUE(jobs.has_pending());
    EXPECT_EQ(jobs.take_answered(), nullptr);
    EXPECT_EQ(jobs.take_pending(*device->default_stream), nullptr);
    jobs.finish();
    EXPECT_FALSE(jobs.has_pending());
}

TEST_F(WithoutStore, WhatMustHitIsNotAdopted)
{
    jobs.require_adoptable(first_call);
    declaration->policy = Policy::require_hit;
    EXPECT_TRUE(failed_with(thrown_by([&] { jobs.require_adoptable(first_call); }), ErrorCode::miss_forbidden));
}

} // namespace
} // namespace warmgraph::test::without_store_test
