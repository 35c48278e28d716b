// Faults in a sample graph. Each must be refused by validate() and decode(), with a text that names the fault.
#pragma once

#include <functional>
#include <ostream>

#include "expect_error.hpp"
#include "flat_writer.hpp"
#include "sample_entry.hpp"

namespace warmgraph::cachefmt::test {

struct Hostile {
    const char* name;
    std::function<void(Graph&)> spoil;
    const char* message;
    friend std::ostream& operator<<(std::ostream& out, const Hostile& hostile) { return out << hostile.name; }
};

inline void expect_refused_by_name(Entry entry, const Hostile& hostile)
{
    using warmgraph::test::failed_with;
    using warmgraph::test::succeeded;
    ASSERT_TRUE(succeeded(validate(entry.graph)));
    hostile.spoil(entry.graph);
    settle(entry);
    EXPECT_TRUE(failed_with(validate(entry.graph), ErrorCode::corrupt, hostile.message));

    const Bytes payload = write_payload(entry.graph);
    const Bytes bytes = assemble(entry.header.key, write_header(entry.header), payload, payload.size());
    EXPECT_TRUE(succeeded(decode_header(bytes, entry.header.key)));
    EXPECT_TRUE(failed_with(decode(bytes, entry.header.key), ErrorCode::corrupt, hostile.message));
}

} // namespace warmgraph::cachefmt::test
