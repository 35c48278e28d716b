// warmgraph_remotes: what a cache in a shared store costs and saves, with servers on this machine's loopback address.
//
// usage: warmgraph_remotes [--graphs 32] [--json FILE]
//   fetch: the graphs of one cache into an empty folder, through the library and, beside it, the same bytes from the same
//   server by bare reads. look-ups: 1,000 that no folder has, with stores that are dead, silent or lie.
//   start: the sample's service on a machine with an empty folder, with and without a remote.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "../tests/remote/fault_server.hpp"
#include "../tests/remote/http_servers.hpp"
#include "../tests/remote/redis_server.hpp"
#include "processes.hpp"
#include "table.hpp"
#include "temp_dir.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/remote/attach.hpp"
#include "warmgraph/remote/backends.hpp"
#include "warmgraph/remote/uploads.hpp"

namespace {

namespace cachefmt = warmgraph::cachefmt;
namespace fs = std::filesystem;
namespace remote = warmgraph::remote;
namespace store = warmgraph::store;
using warmgraph::Bytes;
using warmgraph::test::TempDir;

template <class T>
T must(warmgraph::Result<T> result)
{
    if (!result) throw std::runtime_error(result.error().message);
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

double ms_of(const std::function<void()>& work)
{
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double median_ms(const std::function<double()>& run)
{
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) times.push_back(run());
    std::ranges::sort(times);
    return times[times.size() / 2];
}

const cachefmt::FunctionKey k_function{"bench_static_clgraphcache_0123456789ab", "world1global_rank0", "decode"};

Bytes random_bytes(std::mt19937_64& random, std::size_t size)
{
    Bytes bytes(size);
    for (std::byte& byte : bytes) byte = std::byte(random());
    return bytes;
}

/// A graph of 6,000 nodes, about 100 KB that do not compress, and device code of 150 KB.
struct Graph {
    cachefmt::Entry entry;
    Bytes image;
};
std::vector<Graph> make_graphs(std::size_t count)
{
    std::mt19937_64 random(7);
    std::vector<Graph> graphs(count);
    for (std::size_t i = 0; i < count; ++i) {
        auto& [entry, image] = graphs[i];
        image = random_bytes(random, 150'000);
        entry.header.guards.facts = {{"config.batch", std::to_string(i), cachefmt::Role::must_match}};
        entry.header.key = {k_function, cachefmt::guards_digest(entry.header.guards)};
        entry.header.info.answer_ms = 10'000;
        entry.header.info.node_count = 6000;
        entry.header.info.image_count = 1;
        entry.graph.regions = {{"output", cachefmt::RegionKind::output, 1024, 16, {}}};
        entry.graph.images = {{warmgraph::sha256(image), image.size(), {}, "kernels"}};
        for (int n = 0; n < 6000; ++n)
            entry.graph.nodes.emplace_back(cachefmt::FillNode{{}, random_bytes(random, 16), 1024});
    }
    return graphs;
}

/// All objects of the graphs, by name, as bare reads fetch them.
std::vector<store::Name> names_of(const std::vector<Graph>& graphs)
{
    std::vector<store::Name> names;
    for (const Graph& graph : graphs) {
        names.emplace_back(graph.entry.header.key);
        names.emplace_back(store::ImageName{warmgraph::sha256(graph.image)});
    }
    return names;
}

class Bench {
public:
    explicit Bench(std::size_t count) : m_graphs(make_graphs(count))
    {
        m_fetch.row({"", "sent", "bare reads", "start", "start / bare"});
        m_lookups.row({"", "all", "added", "failures"});
        m_left.row({"", "read", "left"});
        m_start.row({"", "first token", "sooner"});
    }

    void fetch(const std::string& name, const remote::Settings& given)
    {
        remote::Settings settings = given;
        settings.allow_unsigned = true;
        const double send = ms_of([&] { publish(settings); });
        const auto backend = must(remote::backend_of(settings));
        const auto read_all = [&] {
            return ms_of([&] {
                for (const store::Name& one : names_of(m_graphs))
                    if (!must(backend->get(one, {1ULL << 30}))) throw std::runtime_error("an object is missing");
            });
        };
        const auto start = [&] {
            const TempDir folder;
            const auto opened = must(store::LocalStore::open(folder.path()));
            static_cast<void>(remote::attach(*opened, {settings}, {}));
            return ms_of([&] { use(*opened); });
        };
        static_cast<void>(read_all()); // connects
        const double raw = median_ms(read_all), whole = median_ms(start);
        m_fetch.row({name, fmt::format("{:.1f} ms", send), fmt::format("{:.1f} ms", raw),
                     fmt::format("{:.1f} ms", whole), fmt::format("{:.2f}x", whole / raw)});
        json["fetch"][name] = {{"send_ms", send}, {"raw_ms", raw}, {"start_ms", whole}, {"ratio", whole / raw}};
    }

    /// The folder itself, for comparison.
    void fetch_local()
    {
        const TempDir folder;
        const auto opened = must(store::LocalStore::open(folder.path()));
        const double publish_ms = ms_of([&] { publish_into(*opened); });
        const double whole = median_ms([&] { return ms_of([&] { use(*opened); }); });
        m_fetch.row({"local folder", fmt::format("{:.1f} ms", publish_ms), "", fmt::format("{:.1f} ms", whole), ""});
        json["fetch"]["local"] = {{"publish_ms", publish_ms}, {"start_ms", whole}};
    }

    /// 1,000 look-ups of entries that no one has.
    void look_up(const std::string& name, const std::optional<remote::Settings>& settings)
    {
        const TempDir folder;
        const auto opened = must(store::LocalStore::open(folder.path()));
        std::vector<std::shared_ptr<remote::RemoteTier>> tiers;
        if (settings) tiers = remote::attach(*opened, {*settings}, {});
        const double time = ms_of([&] {
            for (int i = 0; i < 1000; ++i) {
                cachefmt::EntryKey key{k_function, warmgraph::sha256(warmgraph::as_bytes(std::to_string(i)))};
                key.function.function = "unknown";
                if (must(opened->header(key)) || !must(opened->variants(key.function)).empty())
                    throw std::runtime_error("a store gave what it cannot have");
            }
        });
        if (!settings) m_without = time;
        std::string why;
        if (settings)
            for (const auto& [word, count] : tiers.front()->counts().errors) why += fmt::format(" {} {}", count, word);
        m_lookups.row({name, fmt::format("{:.1f} ms", time), settings ? fmt::format("{:.1f} ms", time - m_without) : "",
                       why.empty() ? "" : why.substr(1)});
        json["look-ups"][name] = {{"ms", time}, {"added_ms", time - m_without}, {"errors", why}};
    }

    /// Bytes that a header saved: a machine that has no key to accept these graphs, and one with other guards.
    void left(const remote::Settings& given)
    {
        remote::Settings settings = given;
        const TempDir folder;
        const auto opened = must(store::LocalStore::open(folder.path()));
        const auto tiers = remote::attach(*opened, {settings}, {});
        for (const Graph& graph : m_graphs) static_cast<void>(opened->entry(graph.entry.header.key));
        const auto unsigned_ones = tiers.front()->counts();
        settings.allow_unsigned = true;
        const TempDir other;
        const auto second = must(store::LocalStore::open(other.path()));
        const auto again = remote::attach(*second, {settings}, {});
        static_cast<void>(must(second->variants(k_function)));
        const auto others = again.front()->counts();
        m_left.row({"not signed", fmt::format("{} KB", unsigned_ones.bytes_read / 1000),
                    fmt::format("{} KB", unsigned_ones.bytes_left / 1000)});
        m_left.row({"other guards", fmt::format("{} KB", others.bytes_read / 1000),
                    fmt::format("{} KB", others.bytes_left / 1000)});
        json["left"] = {{"unsigned", {{"read", unsigned_ones.bytes_read}, {"left", unsigned_ones.bytes_left}}},
                        {"other_guards", {{"read", others.bytes_read}, {"left", others.bytes_left}}}};
    }

    /// The sample on a machine with an empty folder: without a remote, then with one that another machine filled.
    void start(const remote::Settings& settings, const std::string& url)
    {
        const TempDir first, second, third;
        const auto run = [&](const TempDir& folder, const std::string& remotes) {
            ::setenv("WARMGRAPH_REMOTE", remotes.c_str(), 1);
            const auto result = warmgraph::bench::result_of(
                warmgraph::bench::program_of(WARMGRAPH_LLM_BINARY),
                {"--prompt", "Once upon a time", "--cache-dir", (folder.path() / "cache").string()});
            ::unsetenv("WARMGRAPH_REMOTE");
            return result.at("time_to_first_token_ms").get<double>();
        };
        const double recorded = run(first, "");
        static_cast<void>(run(second, url)); // fills the remote
        const double fetched = run(third, url), local = run(third, url);
        m_start.row({"recorded, without a remote", llm::milliseconds(recorded), ""});
        m_start.row({settings.label + ", empty folder", llm::milliseconds(fetched),
                     fmt::format("{:.1f}x", recorded / fetched)});
        m_start.row({"the same folder again", llm::milliseconds(local), fmt::format("{:.1f}x", recorded / local)});
        json["start"] = {{"recorded_ms", recorded}, {"fetched_ms", fetched}, {"local_ms", local}};
    }

    void print(const std::string& file) const
    {
        const auto colour = llm::colour_of_stdout();
        fmt::print("{} graphs into an empty folder (entries of 110 KB, images of 150 KB)\n{}\n", m_graphs.size(),
                   m_fetch.text(colour));
        fmt::print("1,000 look-ups of a graph that is nowhere\n{}\n", m_lookups.text(colour));
        fmt::print("bytes that a header saved\n{}\n", m_left.text(colour));
        fmt::print("the sample's first token, PoCL\n{}", m_start.text(colour));
        if (!file.empty()) std::ofstream(file) << json.dump(2) << '\n';
    }

private:
    void publish_into(store::LocalStore& folder)
    {
        for (const Graph& graph : m_graphs) {
            must(folder.publish_image(graph.image));
            must(folder.publish(graph.entry));
        }
    }
    void publish(const remote::Settings& settings)
    {
        const TempDir folder;
        const auto opened = must(store::LocalStore::open(folder.path()));
        publish_into(*opened);
        remote::RemoteTier tier(must(remote::backend_of(settings)), remote::options_of(settings, {}));
        for (const Graph& graph : m_graphs) {
            must(remote::send(*opened, tier, store::ImageName{warmgraph::sha256(graph.image)}));
            must(remote::send(*opened, tier, graph.entry.header.key));
        }
    }
    /// Reads what a start reads: the header, the entry, its code.
    void use(store::LocalStore& folder) const
    {
        for (const Graph& graph : m_graphs) {
            if (!must(folder.header(graph.entry.header.key))) throw std::runtime_error("a header is missing");
            const auto entry = must(folder.entry(graph.entry.header.key));
            if (!entry) throw std::runtime_error("an entry is missing");
            must(folder.image_of_entry(entry->graph.images.front()));
        }
    }

    std::vector<Graph> m_graphs;
    double m_without = 0;
    llm::Table m_fetch, m_lookups, m_left, m_start;
    nlohmann::ordered_json json;
};

remote::Settings local(remote::Scheme scheme, std::uint16_t port, const std::string& label)
{
    remote::Settings settings;
    settings.scheme = scheme;
    settings.host = "127.0.0.1";
    settings.port = port;
    settings.label = label;
    settings.allow_unsigned = true;
    return settings;
}

void run(std::size_t count, const std::string& file)
{
    using namespace warmgraph::test;
    const TempDir folder;
    Bench bench(count);
    RedisServer redis;
    Nginx nginx(folder.path() / "nginx");
    S3Server s3(folder.path() / "s3");
    bench.fetch_local();
    bench.fetch("Redis", redis.settings());
    bench.fetch("HTTP (nginx)", nginx.settings(nginx.ports().open));
    bench.fetch("S3 (s3_server.py)", s3.settings());
    bench.look_up("no remote", std::nullopt);
    bench.look_up("Redis", local(remote::Scheme::redis, redis.settings().port, "redis://alive"));
    const std::uint16_t dead = free_port();
    bench.look_up("dead: Redis", local(remote::Scheme::redis, dead, "redis://dead"));
    bench.look_up("dead: HTTP", local(remote::Scheme::http, dead, "http://dead"));
    FaultServer silent([](FaultPeer& peer) { peer.waits_for_the_end(); });
    bench.look_up("silent: HTTP", local(remote::Scheme::http, silent.port(), "http://silent"));
    FaultServer lying([](FaultPeer& peer) {
        if (!peer.reads_request()) return;
        peer.sends("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nnot bytes");
    });
    bench.look_up("lying: HTTP", local(remote::Scheme::http, lying.port(), "http://lying"));
    bench.left(redis.settings());
    bench.start(redis.settings(), fmt::format("redis://127.0.0.1:{}/1?allow-unsigned", redis.settings().port));
    bench.print(file);
}

} // namespace

int main(int count, char** words)
try {
    CLI::App app("what a cache in a shared store costs and saves");
    std::size_t graphs = 32;
    std::string file;
    app.add_option("--graphs", graphs, "graphs of the cache that is fetched");
    app.add_option("--json", file, "write the figures to this file");
    CLI11_PARSE(app, count, words);
    warmgraph::log().set_level(spdlog::level::err); // the failures are the subject
    run(graphs, file);
    return EXIT_SUCCESS;
} catch (const std::exception& error) {
    std::cerr << "warmgraph_remotes: " << error.what() << '\n';
    return EXIT_FAILURE;
}
