#include "conformance.hpp"
#include "warmgraph/backends/fake.hpp"

namespace warmgraph::backends::test {

std::vector<Subject> subjects()
{
    const std::string program = "kernel iota(memory x, value n)\n"
                                "kernel add_scalar(memory x, value amount, value n)\n"
                                "kernel scale(memory x, value factor, value n)\n"
                                "kernel copy(memory to, memory from, value n)\n"
                                "kernel add(memory out, memory a, memory b, value n)\n"
                                "kernel sum(memory out, memory x, local scratch, value n)\n";
    return {{"fake", [] { return make_fake_backend()->open(""); }, program, program + "kernel explode(value n)\n",
             "line 7"}};
}

} // namespace warmgraph::backends::test
