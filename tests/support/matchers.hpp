// The matchers that are used most, in the namespace around the namespaces of all tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warmgraph {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

} // namespace warmgraph
