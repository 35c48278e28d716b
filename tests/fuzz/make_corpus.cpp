// fuzz_make_corpus FOLDER writes the inputs in tests/fuzz/corpus, beside the inputs that the fuzzer found. Run it again
// when the format changes. fuzz_make_corpus --check FOLDER fails when the folder's inputs have another format.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "flat_writer.hpp"
#include "report_parts.hpp"
#include "sample_best_config.hpp"
#include "sample_capture.hpp"
#include "sample_pair.hpp"
#include "sample_profile.hpp"
#include "sample_program.hpp"
#include "torch_keys.hpp"
#include "warmgraph/bundle/writer.hpp"
#include "warmgraph/profile/profile_file.hpp"

namespace {

using namespace warmgraph;

void write(const std::filesystem::path& path, ByteView bytes)
{
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

Bytes to_bytes(std::string_view text) { return {as_bytes(text).begin(), as_bytes(text).end()}; }

constexpr std::string_view k_usage =
    R"({"hits": 3, "misses": 1, "recordings": 1, "refusals": 0, "saved_ms": 12.5,)"
    R"( "last_used": "2026-11-20T10:11:12Z", "cold": [["look up", 0.5]], "warm": [["load", 4]],)"
    R"( "events": [{"kind": "miss", "reason": "no_entry", "count": 1, "bytes": 0}]})";

/// The guards of a call, and a miss with each kind of member.
constexpr std::string_view k_misses =
    R"({"facts":[{"name":"driver.version","role":"must_match","value":"1"}],"tensors":[{"name":"x","dtype":"i32",)"
    R"("sizes":[1],"strides":[1],"device":"d","alignment":1,"alias_group":0}],"values":[]})"
    "\n"
    R"({"id":"a","time":"2026-11-20T10:11:12Z","host":"h","process":7,"policy":"read_write","reason":"<b>&</script>",)"
    R"("end":"recorded","call":"0000000000000000000000000000000000000000000000000000000000000001","variants":2,)"
    R"("nearest":"0000000000000000000000000000000000000000000000000000000000000002","more":1,"agree":9,"differences":)"
    R"([{"fact":"x","recorded":"1","now":"2","cure":"pad it"}]})"
    "\n"
    R"({"id":"b","time":"","host":"","process":0,"policy":"","reason":"","end":"ran as it is","call":)"
    R"("0000000000000000000000000000000000000000000000000000000000000001","variants":0,"nearest":null,"more":0,)"
    R"("agree":0,"differences":[]})"
    "\n";

/// Answers of a Redis server.
constexpr std::pair<std::string_view, std::string_view> k_answers[]{
    {"get", "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n$3\r\nabc\r\n:3\r\n:1\r\n"},
    {"put", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$-1\r\n:0\r\n"},
    {"error", "-WRONGPASS invalid username-password pair or user is disabled.\r\n-OOM command not allowed\r\n"},
    {"heads", "*2\r\n$2\r\nab\r\n$12\r\n\x64zzzzzzzabcd\r\n"},
    {"scan", "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
    {"nested", "*1\r\n*1\r\n*2\r\n*-1\r\n*0\r\n"},
    {"long", "$4096\r\nab\r\n"},
};

constexpr std::string_view k_manifest =
    R"({"arch": ["sm_80", "sm_90a"], "programs": [{"name": "a", "backend": "cuda", "source": "a.cu", "options": "-O3",)"
    R"( "include": ["include"]}, {"name": "b", "backend": "opencl", "text": "x"}, {"name": "c", "backend": "cuda",)"
    R"( "text": "y", "arch": ["sm_120"]}]})";

std::string text_of(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

bool is_accepted(const std::string& name, ByteView bytes, const cachefmt::EntryKey& key)
{
    const auto decoded = cachefmt::decode(bytes, key);
    if (!decoded)
        std::fprintf(stderr, "%s is refused (%s): run fuzz_make_corpus tests/fuzz/corpus\n", name.c_str(),
                     decoded.error().message.c_str());
    return decoded.has_value();
}

/// Makes a bundle of two entries and an image. Members smaller than `compress_above` are not compressed.
Bytes sample_bundle(std::uint64_t compress_above, const SigningKey* key)
{
    Bytes bytes;
    bundle::Writer writer(bundle::into_bytes(bytes), {.compress_above = compress_above, .sign_with = key});
    const Bytes code(300, std::byte{'c'});
    bool added = writer.add(store::ArtifactKind::images, store::ImageName{sha256(code)}, code).value_or(false);
    for (const cachefmt::Entry& entry : {cachefmt::test::sample_entry(), cachefmt::test::sample_cuda_entry()}) {
        cachefmt::Entry named = entry;
        named.header.key.function.model_info += "abcd"; // so that its name has the length of a real one
        added &=
            writer.add(store::ArtifactKind::entries, named.header.key, cachefmt::encode(named).value()).value_or(false);
    }
    fuzz::require(added && writer.finish().has_value(), "the sample bundle can be made");
    return bytes;
}

/// Makes a bundle of an entry and all objects that the entry needs, so that a folder accepts it.
Bytes bundle_of_a_whole_entry()
{
    Bytes bytes;
    bundle::Writer writer(bundle::into_bytes(bytes), {.compress_above = 1 << 30});
    cachefmt::Entry entry = cachefmt::test::forward_entry();
    bool added = true;
    for (cachefmt::ImageRef& image : entry.graph.images) {
        const Bytes code(image.size, std::byte{'c'});
        image.digest = sha256(code);
        added &= writer.add(store::ArtifactKind::images, store::ImageName{image.digest}, code).value_or(false);
    }
    added &=
        writer.add(store::ArtifactKind::entries, entry.header.key, cachefmt::encode(entry).value()).value_or(false);
    fuzz::require(added && writer.finish().has_value(), "the bundle of a whole entry can be made");
    return bytes;
}

/// Makes a bundle with one object of each kind that needs no other object.
Bytes bundle_of_artifacts(const SigningKey* key)
{
    using store::ArtifactKind;
    using store::ArtifactName;
    const auto program = precompile::test::sample_program();
    const auto best = autotune::test::sample_best_config();
    const auto module = autotune::test::sample_module();
    const auto profile = profile::test::sample_profile();
    Bytes bytes;
    bundle::Writer writer(bundle::into_bytes(bytes), {.compress_above = 1 << 30});
    const auto add = [&](const ArtifactName& name, ByteView object) {
        return writer.add(name.kind, name, object).value_or(false);
    };
    const bool added =
        add({ArtifactKind::compiled, precompile::key_of(program.ingredients)},
            precompile::encode(program, key).value()) &&
        add({ArtifactKind::tuned, best.key}, as_bytes(autotune::encode(best))) &&
        add({ArtifactKind::tuned, module.key, store::k_module_form}, as_bytes(autotune::encode(module))) &&
        add({ArtifactKind::profiles, profile.key}, as_bytes(profile::encode(profile)));
    fuzz::require(added && writer.finish().has_value(), "the sample bundle of artifacts can be made");
    return bytes;
}

int check(const std::filesystem::path& folder)
{
    bool ok = true;
    for (const std::string name : {"opencl", "cuda", "compressed", "signed", "tombstone"})
        ok &= is_accepted("entry/" + name, as_bytes(text_of(folder / "entry" / name)),
                          cachefmt::test::sample_entry().header.key);
    for (const std::string name : {"full", "descended"})
        if (!autotune::decode(as_bytes(text_of(folder / "best_config" / name)))) {
            std::fprintf(stderr, "best_config/%s is refused: run fuzz_make_corpus tests/fuzz/corpus\n", name.c_str());
            ok = false;
        }
    ok &= precompile::decode(as_bytes(text_of(folder / "compiled" / "full"))).has_value();
    ok &= autotune::decode_module(as_bytes(text_of(folder / "best_config" / "module"))).has_value();
    for (const std::string name : {"full", "empty"})
        if (!profile::decode(as_bytes(text_of(folder / "profile" / name)))) {
            std::fprintf(stderr, "profile/%s is refused: run fuzz_make_corpus tests/fuzz/corpus\n", name.c_str());
            ok = false;
        }
    for (const std::string name : {"opencl", "cuda", "tombstone"})
        ok &= is_accepted("report/" + name, fuzz::split(as_bytes(text_of(folder / "report" / name))).entry,
                          fuzz::report_key());
    if (!decode_capture(as_bytes(text_of(folder / "capture" / "each_kind")))) {
        std::fprintf(stderr, "capture/each_kind is refused: run fuzz_make_corpus tests/fuzz/corpus\n");
        ok = false;
    }
    for (const std::string name : {"ed25519", "hmac-sha256", "stranger"})
        if (!store::inspect_torch(as_bytes(text_of(folder / "torch_artifacts" / name)))) {
            std::fprintf(stderr, "torch_artifacts/%s is refused: run fuzz_make_corpus tests/fuzz/corpus\n",
                         name.c_str());
            ok = false;
        }
    for (const std::string name : {"plain", "compressed", "signed", "artifacts", "whole"}) {
        const std::string text = text_of(folder / "bundle" / name);
        const auto opened = bundle::Bundle::open(bundle::over_bytes(as_bytes(text)));
        const bool opens = opened && std::ranges::all_of((*opened)->members(), [&](const bundle::Member& member) {
                               return (*opened)->verify(member).has_value();
                           });
        if (!opens)
            std::fprintf(stderr, "bundle/%s is refused: run fuzz_make_corpus tests/fuzz/corpus\n", name.c_str());
        ok &= opens;
    }
    return ok ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc == 3 && std::string_view{argv[1]} == "--check") return check(argv[2]);
    if (argc != 2) return 2;
    const std::filesystem::path folder = argv[1];
    const cachefmt::Entry opencl = cachefmt::test::sample_entry(), cuda = cachefmt::test::sample_cuda_entry(),
                          tombstone = cachefmt::test::sample_tombstone();
    cachefmt::Entry renamed = cuda; // gets the key that the fuzz target uses
    renamed.header.key = opencl.header.key;
    const auto key = SigningKey::parse("ci:ed25519:" + std::string(64, 'b'));
    write(folder / "entry" / "opencl", *cachefmt::encode(opencl));
    write(folder / "entry" / "cuda", *cachefmt::encode(renamed));
    write(folder / "entry" / "compressed", *cachefmt::encode(renamed, {.compress_above = 0}));
    write(folder / "entry" / "signed", *cachefmt::encode(opencl, {.sign_with = &*key}));
    write(folder / "entry" / "tombstone", *cachefmt::encode(tombstone));
    write(folder / "header" / "opencl", cachefmt::write_header(opencl.header));
    write(folder / "header" / "tombstone", cachefmt::write_header(tombstone.header));
    write(folder / "payload" / "opencl", cachefmt::write_payload(opencl.graph));
    write(folder / "payload" / "cuda", cachefmt::write_payload(cuda.graph));
    write(folder / "bundle" / "plain", sample_bundle(1 << 30, nullptr));
    write(folder / "bundle" / "compressed", sample_bundle(0, nullptr));
    write(folder / "bundle" / "signed", sample_bundle(1 << 30, &*key));
    write(folder / "bundle" / "artifacts", bundle_of_artifacts(&*key));
    write(folder / "bundle" / "whole", bundle_of_a_whole_entry());
    write(folder / "usage" / "full", as_bytes(k_usage));
    write(folder / "usage" / "odd", as_bytes(R"({"hits": -1, "saved_ms": 1e999, "last_used": "\ud800"})"));
    autotune::BestConfig descended = autotune::test::sample_best_config();
    descended.found_by = autotune::FoundBy::coordinate_descent;
    write(folder / "best_config" / "full", as_bytes(autotune::encode(autotune::test::sample_best_config())));
    write(folder / "best_config" / "descended", as_bytes(autotune::encode(descended)));
    write(folder / "best_config" / "module", as_bytes(autotune::encode(autotune::test::sample_module())));
    write(folder / "best_config" / "odd", as_bytes(R"({"format": 1, "config": {"A": 1e999}, "timings": [[]]})"));
    write(folder / "compiled" / "full", precompile::encode(precompile::test::sample_program()).value());
    write(folder / "compiled" / "signed", precompile::encode(precompile::test::sample_program(), &*key).value());
    write(folder / "compiled" / "text",
          as_bytes("/* */ #include <a.h> // \"\n%:include \"b.h\"\n# /**/ include C\n#if __has_include(<d.h>)\n"));
    write(folder / "compiled" / "options", as_bytes("-I a -Ib --include-path=c -include 'd e' -D X=\"1 2\" @f"));
    for (const std::string kind : {"ed25519", "hmac-sha256"})
        write(folder / "torch_artifacts" / kind, fuzz::sample_torch(fuzz::torch_key(kind)));
    write(folder / "torch_artifacts" / "stranger", fuzz::sample_torch(fuzz::torch_key("ed25519", 'c')));
    write(folder / "manifest" / "full", as_bytes(k_manifest));
    write(folder / "manifest" / "odd",
          as_bytes(R"({"programs": [{"name": "a", "backend": "cuda", "arch": [1e999]}]})"));
    write(folder / "capture" / "each_kind", encode(test::sample_capture()));
    write(folder / "capture" / "nothing", encode(StoredCapture{}));
    write(folder / "profile" / "full", as_bytes(profile::encode(profile::test::sample_profile())));
    write(folder / "profile" / "empty", as_bytes(profile::encode(profile::test::empty_profile())));
    write(folder / "profile" / "odd",
          as_bytes(R"({"format": 1, "arguments": {"x": "f32"}, "parts": [{"calls": [[]]}]})"));
    write(folder / "misses" / "two", as_bytes(k_misses));
    write(folder / "misses" / "odd", as_bytes("\n{}\n[]\n"));
    for (const auto& [name, text] : k_answers) write(folder / "resp" / name, as_bytes(text));
    for (const auto& [name, entry] :
         {std::pair{"opencl", &opencl}, std::pair{"cuda", &cuda}, std::pair{"tombstone", &tombstone}}) {
        cachefmt::Entry reported = *entry; // gets the key that the fuzz target uses
        reported.header.key = fuzz::report_key();
        reported.header.guards = opencl.header.guards;
        write(folder / "report" / name,
              fuzz::joined({to_bytes(k_usage), to_bytes(k_misses), *cachefmt::encode(reported)}));
    }
    return 0;
}
