// Guards in which every field is set, and all single changes of them that must be noticed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::guards::test {

inline Guards sample_guards()
{
    Guards guards;
    guards.facts = {{"backend", "opencl", Role::must_match},
                    {"code.build_id", "0badcafe", Role::must_match},
                    {"config.dtype", "f32", Role::must_match},
                    {"device.architecture", "skylake", Role::must_match},
                    {"device.name", "pthread-skylake", Role::advisory},
                    {"device.units", "2", Role::must_match},
                    {"driver.version", "580.159.04", Role::must_match},
                    {"env.OMP_NUM_THREADS", "4", Role::must_match},
                    {"format", "1", Role::must_match},
                    {"function", "decode", Role::identity},
                    {"host", "node7", Role::advisory},
                    {"library.cublas", "13.0.2", Role::must_match},
                    {"model", "tiny-llama", Role::identity},
                    {"runtime.version", "13.0", Role::must_match},
                    {"world_size", "1", Role::identity}};
    guards.tensors = {{"token", DType::i32, {1}, {1}, "opencl:0", 256, 0},
                      {"kv", DType::f16, {2, 4, 8}, {32, 8, 1}, "opencl:0", 128, 1, 0},
                      {"kv_view", DType::f16, {4, 8}, {8, 1}, "opencl:0", 64, 1, 64},
                      {"logits", DType::f32, {1, 256}, {256, 1}, "opencl:0", 256, 3}};
    guards.values = {{"layers", DType::i64, 12}, {"scale", DType::f32, 0x3f800000}};
    return guards;
}

struct Mutation {
    std::string fact; ///< the name of the fact that evaluate() must report
    std::function<void(Guards&)> apply;
};

inline std::vector<Mutation> mutations_of_facts(const Guards& guards)
{
    std::vector<Mutation> list;
    for (std::size_t i = 0; i < guards.facts.size(); ++i) {
        const Fact& fact = guards.facts[i];
        if (fact.role == Role::advisory) continue;
        list.push_back({fact.name, [i](Guards& g) { g.facts[i].value += "0"; }});
        list.push_back({fact.name, [i](Guards& g) { g.facts[i].value.clear(); }});
        list.push_back({fact.name, [i](Guards& g) { g.facts[i].value = cachefmt::k_unknown; }});
        list.push_back({fact.name, [name = fact.name](Guards& g) {
                            std::erase_if(g.facts, [&](const Fact& f) { return f.name == name; });
                        }});
    }
    list.push_back({"config.extra", [](Guards& g) {
                        g.facts.push_back({"config.extra", "1", Role::must_match});
                        canonicalize(g.facts);
                    }});
    return list;
}

inline std::vector<Mutation> mutations_of_tensors(const Guards& guards)
{
    std::vector<Mutation> list;
    for (std::size_t i = 0; i < guards.tensors.size(); ++i) {
        const std::string input = "input " + guards.tensors[i].name;
        list.push_back({input + ": dtype", [i](Guards& g) { g.tensors[i].dtype = DType::i64; }});
        for (std::size_t d = 0; d < guards.tensors[i].sizes.size(); ++d) {
            list.push_back({input + ": sizes", [i, d](Guards& g) { ++g.tensors[i].sizes[d]; }});
            list.push_back({input + ": strides", [i, d](Guards& g) { ++g.tensors[i].strides[d]; }});
        }
        list.push_back({input + ": device", [i](Guards& g) { g.tensors[i].device = "opencl:1"; }});
        list.push_back({input + ": alignment", [i](Guards& g) { g.tensors[i].alignment /= 2; }});
    }
    list.push_back({"input kv_view: aliasing", [](Guards& g) { g.tensors[2].alias_group = 2; }});
    list.push_back({"input kv_view: aliasing", [](Guards& g) { g.tensors[2].alias_group = 0; }});
    list.push_back({"input logits: aliasing", [](Guards& g) { g.tensors[3].alias_group = 1; }});
    list.push_back({"input logits: aliasing", [](Guards& g) { g.tensors[3].alias_group = 99; }});
    list.push_back({"input kv_view: distance in its group", [](Guards& g) { g.tensors[2].distance = 128; }});
    list.push_back({"input kv_view: distance in its group", [](Guards& g) { g.tensors[2].distance = -64; }});
    list.push_back({"input logits", [](Guards& g) { g.tensors.pop_back(); }});
    list.push_back(
        {"input mask", [](Guards& g) { g.tensors.push_back({"mask", DType::u8, {4}, {1}, "opencl:0", 256, 4}); }});
    return list;
}

inline std::vector<Mutation> mutations_of_values()
{
    return {{"value layers", [](Guards& g) { ++g.values[0].bits; }},
            {"value layers", [](Guards& g) { g.values[0].dtype = DType::i32; }},
            {"value scale", [](Guards& g) { g.values[1].bits ^= 1; }},
            {"value scale", [](Guards& g) { g.values.pop_back(); }},
            {"value heads", [](Guards& g) { g.values.push_back({"heads", DType::i64, 4}); }},
            {"values: order", [](Guards& g) { std::swap(g.values[0], g.values[1]); }}};
}

inline std::vector<Mutation> all_mutations(const Guards& guards)
{
    std::vector<Mutation> list = mutations_of_facts(guards);
    for (auto& more : {mutations_of_tensors(guards), mutations_of_values()})
        list.insert(list.end(), more.begin(), more.end());
    return list;
}

} // namespace warmgraph::guards::test
