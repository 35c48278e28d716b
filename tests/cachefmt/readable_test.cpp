#include <algorithm>

#include <nlohmann/json.hpp>

#include "expect_error.hpp"
#include "sample_pair.hpp"
#include "warmgraph/cachefmt/readable.hpp"

namespace warmgraph::cachefmt::test::readable_test {
namespace {

using nlohmann::json;

TEST(Readable, ShowsEverySectionInAlignedColumns)
{
    const std::string text = to_readable(sample_entry());
    for (const char* line : {
             "function    decode\n",
             "model       TinyLlama_static_clgraphcache_1a2b3c4d\n",
             "kind        graph, format 5\n",
             "created     2026-11-20T10:11:12Z by warmgraph 0.1.0\n",
             "saves       812.5 ms a hit (the first call without the cache)\n",
             "recorded    in 1.96 s\n",
             "verified    bitwise\n",
             "scalar      position: proven at all 2,048 values\n",
             "scalar      scale: sampled at 412 values\n",
             "guards: 5 facts, 3 tensors, 3 values\n",
             "  driver.version       3.1          must_match  same or newer\n",
             "  env.OMP_NUM_THREADS  unknown      must_match  equal\n",
             "  logits  f32[2,128] strides 256,1 align 64 on opencl:0\n",
             "  view    f32[128] align 64 aliases logits at 256 bytes on opencl:0\n",
             "  temperature  f32   0.5\n",
             "  greedy       bool  true\n",
             "  shift        i8    -1\n",
             "bindings: 6 regions, 3 scalars\n",
             "  2  kv       state     64 KiB   256\n",
             "  0  position  i32\n",
             "images: 2\n",
             "  0  llm    3.9 KiB  01010101  02020202\n",
             "  1  aux    300 B    03030303  unknown\n",
             "nodes: 5, 5 edges\n",
             "  1  rope     4,1,1  64,1,1  0      kv + 1024, position + 1, local 128 B, 24 B {0: scratch + 64, 8: "
             "scale, 16: step - 1}, 3 B 090909\n",
             "  2  (copy)   -      -       1      1.0 KiB from scratch + 512 to logits\n",
             "  4  finish   1,1,1  1,1,1   2,3\n",
         })
        EXPECT_THAT(text, HasSubstr(line));
    EXPECT_THAT(text, Not(HasSubstr(" \n"))) << "blanks at the end of a line";
}

TEST(Readable, ShowsWhyATombstoneIsRefused)
{
    const std::string text = to_readable(sample_tombstone());
    EXPECT_THAT(text, HasSubstr("kind        tombstone, format 5\n"));
    EXPECT_THAT(text,
                HasSubstr("refused     recompiled\n            kernel rope (node 3): grid 4,1,1 against 8,1,1\n"));
    EXPECT_THAT(text, Not(HasSubstr("nodes:")));
}

TEST(Readable, LetsNoStoredTextDriveTheTerminal)
{
    Entry entry = sample_entry();
    entry.header.guards.facts[0].value = "\x1b[31mred\nnext\xff\xc2\x9b\u00e9";
    const std::string text = to_readable(entry);
    EXPECT_THAT(text, HasSubstr("\\x1b[31mred\\x0anext\\xff\\xc2\\x9b\u00e9"));
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Readable, CutsAValueThatWouldWidenTheTable)
{
    Entry entry = sample_entry();
    const std::string digest(64, 'a'), more = "\u00e9" + std::string(400, 'b');
    entry.header.guards.facts[0].value = digest;
    entry.header.guards.facts[1].value = more;
    const auto line_of = [](const std::string& text, std::string_view name) {
        const auto start = text.find("  " + std::string(name));
        EXPECT_NE(start, std::string::npos) << name;
        return text.substr(start, text.find('\n', start) - start);
    };
    const auto widest = [](const std::string& text) {
        std::size_t most = 0, columns = 0;
        for (const char c : text) {
            if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++columns;
            if (c == '\n') columns = 0;
            most = std::max(most, columns);
        }
        return most;
    };
    const std::string name = entry.header.guards.facts[1].name;
    for (const std::size_t wide : {120U, 200U}) {
        const std::string text = to_readable(entry, {Section::guards}, Inks::none, wide);
        EXPECT_THAT(text, HasSubstr(digest + "  ")) << "whole";
        EXPECT_THAT(line_of(text, name), HasSubstr("  \u00e9bbb"));
        EXPECT_THAT(line_of(text, name), HasSubstr("bbb...  "));
        EXPECT_EQ(widest(text), wide);
    }
    EXPECT_THAT(to_readable(entry, {}, Inks::none, 10), HasSubstr(digest + "  "))
        << "a terminal narrower than a digest";
    EXPECT_THAT(to_readable(entry, {}, Inks::none, 1000), HasSubstr(more));
    EXPECT_EQ(json::parse(to_json(entry))["guards"]["facts"][1]["value"], more);
}

TEST(Readable, NamesKernelsAsPeopleDoAndTellsMachinesTheWholeName)
{
    const std::string mangled = "_ZN2at6native18elementwise_kernelILi128ELi2ELi4EEEvPf";
    const std::string readable = "at::native::elementwise_kernel<128, 2, ...>";
    Entry entry = sample_entry();
    std::get<KernelNode>(entry.graph.nodes[4]).kernel = mangled;
    EXPECT_THAT(to_readable(entry), AllOf(HasSubstr("  4  " + readable + "  1,1,1"), Not(HasSubstr(mangled))));
    EXPECT_THAT(to_dot(entry), HasSubstr("4: " + readable + "\\ngrid"));
    const json node = json::parse(to_json(entry)).at("graph").at("nodes").at(4);
    EXPECT_EQ(node.at("kernel"), mangled);
    EXPECT_NE(node.at("name"), mangled) << "as people say it";
}

TEST(ReadableJson, HasTheDocumentedKeys)
{
    const Entry entry = sample_entry();
    const json object = json::parse(to_json(entry));
    EXPECT_EQ(object.at("format"), 5);
    EXPECT_EQ(object.at("kind"), "graph");
    EXPECT_EQ(object.at("key").at("function"), "decode");
    EXPECT_EQ(object.at("key").at("guards"), to_hex(entry.header.key.guards_digest));
    EXPECT_EQ(object.at("info").at("record_ms"), 1961.75);
    EXPECT_EQ(object.at("info").at("answer_ms"), 812.5);
    EXPECT_EQ(object.at("info").at("scalar_proofs").at(1), "scale: sampled at 412 values");
    EXPECT_EQ(object.at("info").at("library_constants"), 0);
    EXPECT_EQ(object.at("guards").at("facts").size(), 5U);
    EXPECT_TRUE(object.at("guards").at("facts").at(3).at("value").is_null());
    EXPECT_EQ(object.at("guards").at("tensors").at(1).at("strides"), json({256, 1}));
    EXPECT_TRUE(object.at("guards").at("tensors").at(0).at("distance").is_null());
    EXPECT_EQ(object.at("guards").at("tensors").at(1).at("distance"), 0);
    EXPECT_EQ(object.at("guards").at("tensors").at(2).at("distance"), 256);
    EXPECT_EQ(object.at("guards").at("values").at(2).at("value"), -1) << "a number";
    EXPECT_TRUE(object.at("recording").is_null());
    EXPECT_EQ(json::parse(to_json(backward_entry({1, 0xab}))).at("recording"),
              json({{"id", "000000000000000100000000000000ab"}, {"part", "backward"}}));
    const json& graph = object.at("graph");
    EXPECT_EQ(graph.at("digest"), to_hex(graph_digest(entry.graph)));
    EXPECT_EQ(graph.at("regions").at(2).at("kind"), "state");
    EXPECT_EQ(graph.at("scalars").at(1), json({{"name", "scale"}, {"type", "f32"}}));
    EXPECT_TRUE(graph.at("images").at(1).at("origin").is_null());
    const json& rope = graph.at("nodes").at(1);
    EXPECT_EQ(rope.at("kind"), "kernel");
    EXPECT_EQ(rope.at("grid"), json({4, 1, 1}));
    EXPECT_EQ(rope.at("params").at(0).at("slots").at(0).at("text"), "kv + 1024");
    EXPECT_EQ(rope.at("params").at(2), json({{"kind", "local"}, {"local_size", 128}}));
    EXPECT_EQ(rope.at("params").at(4).at("value"), "090909");
    EXPECT_EQ(graph.at("nodes").at(0).at("pattern"), "01010101");
    EXPECT_EQ(graph.at("nodes").at(2).at("size"), 1024);
    EXPECT_EQ(graph.at("edges").at(4), json({3, 4}));
}

TEST(Readable, ShowsWhatCudaAdds)
{
    const std::string text = to_readable(sample_cuda_entry());
    for (const char* line : {
             "constants   2 __constant__ variables of libraries' images, stored unchanged\n",
             "unproven    3 parameter words assumed to be addresses only by their value (adopted with one capture)\n",
             "bindings: 7 regions, 3 scalars, 2 events, 2 semaphores\n",
             "  6  staging  state (host)  4.0 KiB  64\n",
             "  1  done\n",
             "  1  shown\n",
             "  1      _ZN3llm4biasE  8 B\n",
             "  5   (event wait)         -      -        4                  ready\n",
             "  6   nvjet_gemm           2,1,1  128,1,1  5                  packed 32 B {8: kv - 256, 24: w + "
             "1048576}, "
             "shared "
             "232448 B, access policy window = 32 B {0: w}, cluster dimension = 2,1,1, priority = -5, function's max "
             "dynamic shared size bytes = 232448, function's non portable cluster size allowed = 1\n",
             "  7   tail                 1,1,1  32,1,1   6 (programmatic)   programmatic stream serialization = 1\n",
             "  8   (copy)               -      -        6 (from launch),7  2 slices of 4 rows of 64 B from staging "
             "(host) "
             "pitch "
             "64/256 to kv pitch 128/1024\n",
             "  9   (fill)               -      -        8                  3 rows of 32 B of scratch pitch 64 with "
             "02020202\n",
             "  10  (host)               -      -        9                  log_step\n",
             "  11  (event record)       -      -        10                 done\n",
             "  12  (memory operations)  -      -        11                 wait until kv + 8 >= 0x1, then flush, "
             "write 0x10000000000 to staging + 4088 (64 bits), barrier of the device\n",
             "  13  (semaphore wait)     -      -        12                 shown >= 7, no memory synchronisation\n",
             "  14  (semaphore signal)   -      -        13                 frame = step + 1, shown = position - 1 + "
             "0x5 "
             "* 2^32, no memory synchronisation\n",
         })
        EXPECT_THAT(text, HasSubstr(line));
}

TEST(ReadableJson, HasWhatCudaAdds)
{
    const json object = json::parse(to_json(sample_cuda_entry()));
    EXPECT_EQ(object.at("info").at("unproven"), 3);
    EXPECT_EQ(object.at("info").at("library_constants"), 2);
    EXPECT_EQ(object.at("info").at("unused_words"), 4);
    const json& graph = object.at("graph");
    EXPECT_EQ(graph.at("regions").at(6).at("space"), "host");
    EXPECT_EQ(graph.at("images").at(1).at("variables").at(1), json({{"name", "lut"}, {"size", 4}, {"addresses", 0}}));
    EXPECT_EQ(graph.at("events"), json({"ready", "done"}));
    const json& gemm = graph.at("nodes").at(6);
    EXPECT_EQ(gemm.at("shared_bytes"), 232448);
    EXPECT_EQ(gemm.at("packed"), true);
    EXPECT_EQ(gemm.at("attributes").at(0).at("slots").at(0).at("text"), "w");
    EXPECT_EQ(gemm.at("attributes").at(1).at("name"), "cluster dimension");
    EXPECT_EQ(gemm.at("attributes").at(1).at("value"), "020000000100000001000000");
    EXPECT_EQ(gemm.at("attributes").at(2).at("text"), "-5");
    EXPECT_EQ(gemm.at("function_attributes").at(1),
              json({{"id", 14}, {"name", "non portable cluster size allowed"}, {"value", 1}}));
    const json& copy = graph.at("nodes").at(8);
    EXPECT_EQ(copy.at("rows"), 4);
    EXPECT_EQ(copy.at("slices"), 2);
    EXPECT_EQ(copy.at("source_space"), "host");
    EXPECT_EQ(copy.at("destination_pitch"), json({{"row", 128}, {"slice", 1024}}));
    EXPECT_EQ(graph.at("nodes").at(9).at("pitch"), 64);
    EXPECT_EQ(graph.at("nodes").at(5), json({{"kind", "event wait"}, {"event", 0}, {"name", "ready"}}));
    EXPECT_EQ(graph.at("nodes").at(10), json({{"kind", "host"}, {"function", "log_step"}}));
    const json& batch = graph.at("nodes").at(12);
    EXPECT_EQ(batch.at("kind"), "memory operations");
    EXPECT_EQ(batch.at("operations").at(0).at("kind"), "wait_32");
    EXPECT_EQ(batch.at("operations").at(0).at("address").at("text"), "kv + 8");
    EXPECT_EQ(batch.at("operations").at(0).at("flags"), 1 << 30);
    EXPECT_EQ(batch.at("operations").at(1).at("value"), 1LL << 40);
    EXPECT_EQ(batch.at("operations").at(2), json({{"kind", "barrier"},
                                                  {"address", nullptr},
                                                  {"value", 0},
                                                  {"flags", 1},
                                                  {"text", "barrier of the device"}}));
    EXPECT_EQ(graph.at("semaphores"), json({"frame", "shown"}));
    EXPECT_EQ(graph.at("nodes").at(13), json({{"kind", "semaphore wait"},
                                              {"semaphores",
                                               {{{"semaphore", 1},
                                                 {"name", "shown"},
                                                 {"value", 7},
                                                 {"slot", nullptr},
                                                 {"flags", 2},
                                                 {"text", "shown >= 7, no memory synchronisation"}}}}}));
    EXPECT_EQ(graph.at("nodes").at(14).at("kind"), "semaphore signal");
    EXPECT_EQ(graph.at("nodes").at(14).at("semaphores").at(0).at("slot").at("text"), "step + 1");
    EXPECT_EQ(graph.at("edges").at(7), json({6, 7}));
    EXPECT_EQ(graph.at("edge_data").size(), 2U);
    EXPECT_EQ(graph.at("edge_data").at(0),
              json({{"edge", 7}, {"from_port", 1}, {"to_port", 0}, {"type", 1}, {"text", "programmatic"}}));
}

TEST(ReadableJson, OfATombstoneHasNoGraph)
{
    const json object = json::parse(to_json(sample_tombstone()));
    EXPECT_TRUE(object.at("graph").is_null());
    EXPECT_EQ(object.at("info").at("reason"), "recompiled");
    EXPECT_EQ(object.at("info").at("difference").size(), 1U);
}

TEST(ReadableJson, IsValidForTextThatIsNoUtf8)
{
    Entry entry = sample_entry();
    entry.header.guards.facts[0].value = "\xff\xfe";
    EXPECT_TRUE(json::accept(to_json(entry)));
}

TEST(ReadableDot, DrawsOneBoxForEachNode)
{
    const std::string dot = to_dot(sample_entry());
    for (const char* line : {"digraph \"decode\" {\n", "  n0 [label=\"0: fill 256 B\\nscratch\"];\n",
                             "  n1 [label=\"1: rope\\ngrid 4,1,1 block 64,1,1\\nkv + 1024\\nposition + 1\\nscratch + "
                             "64\\nscale\\nstep - 1\"];\n",
                             "  n2 [label=\"2: copy 1.0 KiB\\nscratch + 512\\n-> logits\"];\n",
                             "  n3 [label=\"3: empty\"];\n", "  n3 -> n4;\n"})
        EXPECT_THAT(dot, HasSubstr(line));
}

TEST(ReadableDot, DrawsWhatCudaAdds)
{
    const std::string dot = to_dot(sample_cuda_entry());
    for (const char* line :
         {"  n5 [label=\"5: event wait\\nready\"];\n",
          "\\nw + 1048576\\nshared 227 KiB\\naccess policy window = 32 B {0: w}",
          "  n8 [label=\"8: copy 2 slices of 4 rows of 64 B\\nstaging\\n-> kv\"];\n",
          "  n9 [label=\"9: fill 3 rows of 32 B\\nscratch\"];\n", "  n10 [label=\"10: host\\nlog_step\"];\n",
          "  n12 [label=\"12: memory operations\\nwait until kv + 8 >= 0x1, then flush\\nwrite 0x10000000000 to "
          "staging + "
          "4088 (64 bits)\\nbarrier of the device\"];\n",
          "  n14 [label=\"14: semaphore signal\\nframe = step + 1\\nshown = ", "  n6 -> n7 [label=\"programmatic\"];\n",
          "  n7 -> n8;\n"})
        EXPECT_THAT(dot, HasSubstr(line));
}

TEST(ReadableDot, QuotesNames)
{
    Entry entry = sample_entry();
    std::get<KernelNode>(entry.graph.nodes[4]).kernel = "a\"];x\\";
    EXPECT_THAT(to_dot(entry), HasSubstr("  n4 [label=\"4: a\\\"];x\\\\\\ngrid"));
}

TEST(Readable, ShowsOnlyTheSectionsThatAreAskedFor)
{
    const Entry entry = sample_entry();
    const std::string nodes = to_readable(entry, {Section::nodes});
    EXPECT_THAT(nodes, HasSubstr("nodes: 5, 5 edges\n"));
    EXPECT_THAT(nodes, HasSubstr(short_hex(entry.header.key.guards_digest))) << "which of the variants it is";
    for (const char* other : {"created", "guards:", "bindings:", "images:"}) EXPECT_THAT(nodes, Not(HasSubstr(other)));
    const json only = json::parse(to_json(entry, {Section::guards, Section::images}));
    EXPECT_TRUE(only.contains("guards") && only.contains("key") && only.at("graph").contains("images"));
    EXPECT_FALSE(only.contains("info") || only.at("graph").contains("nodes") || only.at("graph").contains("regions"));
    EXPECT_FALSE(json::parse(to_json(entry, {Section::guards})).contains("graph"));
    for (const char* name : {"header", "guards", "bindings", "images", "nodes"}) EXPECT_TRUE(section_of(name)) << name;
    EXPECT_FALSE(section_of("nod"));
}

TEST(Readable, PaintsForATerminalAndSaysTheSame)
{
    const std::string plain = to_readable(sample_entry());
    std::string painted = to_readable(sample_entry(), {}, Inks::terminal);
    EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
    EXPECT_THAT(painted, HasSubstr("\x1b[1mguards:\x1b[0m"));
    for (std::size_t at = 0; (at = painted.find('\x1b')) != std::string::npos;)
        painted.erase(at, painted.find('m', at) - at + 1);
    EXPECT_EQ(painted, plain);
    EXPECT_THAT(to_readable(sample_tombstone(), {}, Inks::terminal), HasSubstr("\x1b[31mtombstone\x1b[0m"));
}

TEST(Readable, ShowsParametersAsNumbers)
{
    Entry entry = sample_entry();
    auto& kernel = std::get<KernelNode>(entry.graph.nodes[4]);
    const auto param = [](const auto& number) {
        const auto bytes = std::as_bytes(std::span(&number, 1));
        Param made;
        made.kind = ParamKind::value;
        made.value.assign(bytes.begin(), bytes.end());
        return made;
    };
    kernel.params = {param(std::int32_t{128}), param(std::int32_t{-1}), param(1.5F), param(0.25), param(0xdeadbeefU)};
    EXPECT_THAT(to_readable(entry), HasSubstr("128 (4 B), -1 (4 B), 0x3fc00000 (4 B, 1.5 as a float), "
                                              "0x3fd0000000000000 (8 B, 0.25 as a double), 0xdeadbeef (4 B)\n"));
    const json params = json::parse(to_json(entry)).at("graph").at("nodes").at(4).at("params");
    EXPECT_EQ(params.at(0).at("number"), 128);
    EXPECT_EQ(params.at(0).at("value"), "80000000");
}

TEST(TensorText, IsShort)
{
    const Guards guards{.facts = {},
                        .tensors = {{"ids", DType::i32, {1, 64}, {64, 1}, "opencl:0", 128, 0},
                                    {"s", DType::f32, {}, {}, "opencl:0", 4, 1}},
                        .values = {}};
    EXPECT_EQ(to_text(guards.tensors[0], guards), "i32[1,64] align 128");
    EXPECT_EQ(to_text(guards.tensors[1], guards), "f32[] align 4");
}

} // namespace
} // namespace warmgraph::cachefmt::test::readable_test
