// Real HTTP servers for tests: nginx as a WebDAV server, and an S3 server that checks signatures (s3_server.py).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "certificate.hpp"
#include "loopback.hpp"
#include "warmgraph/remote/backends.hpp"

namespace warmgraph::test {

namespace fs = std::filesystem;

/// Settings with times in which a loaded machine answers.
inline remote::Settings patient(remote::Scheme scheme)
{
    using namespace std::chrono_literals;
    remote::Settings settings;
    settings.scheme = scheme;
    settings.host = "127.0.0.1";
    settings.connect_timeout = 20s;
    settings.header_timeout = 20s;
    settings.payload_timeout = 60s;
    return settings;
}

/// nginx with WebDAV, with four servers over the same files. The log has each request on a line.
class Nginx {
public:
    struct Ports {
        std::uint16_t open = 0;    ///< for all, makes folders by itself
        std::uint16_t locked = 0;  ///< wants k_user and k_password
        std::uint16_t tls = 0;     ///< https, with the certificate of certificate()
        std::uint16_t folders = 0; ///< wants the folders above an object to be there, as plain WebDAV servers do
    };
    static constexpr const char* k_user = "warm";
    static constexpr const char* k_password = "canary p@ss/w\xc3\xb6rd";

    explicit Nginx(const fs::path& folder) : m_folder(folder)
    {
        fs::create_directories(folder / "root");
        make_certificate(certificate(), folder / "key");
        std::ofstream(folder / "users") << k_user << ":{PLAIN}" << k_password << '\n';
        for (int i = 0; i < 10; ++i) { // another process may take a port before nginx does
            m_ports = {free_port(), free_port(), free_port(), free_port()};
            if (start()) return;
        }
        throw std::runtime_error("nginx does not start: " + text_of_file(folder / "output"));
    }
    [[nodiscard]] const Ports& ports() const noexcept { return m_ports; }
    [[nodiscard]] fs::path root() const { return m_folder / "root"; }
    /// For 127.0.0.1, signed by itself: valid only for those who trust it.
    [[nodiscard]] fs::path certificate() const { return m_folder / "certificate"; }
    void stop() { m_process.stop(); }
    [[nodiscard]] bool start()
    {
        std::ofstream(m_folder / "nginx.conf") << configuration();
        const std::string program = fs::exists("/usr/sbin/nginx") ? "/usr/sbin/nginx" : "nginx";
        m_process = ServerProcess({program, "-p", m_folder.string(), "-c", (m_folder / "nginx.conf").string(), "-e",
                                   (m_folder / "errors").string()},
                                  m_folder / "output");
        return m_process.waits_on(m_ports.folders) && answers(m_ports.open) && answers(m_ports.locked);
    }
    /// The lines "METHOD path status" since the last call.
    [[nodiscard]] std::vector<std::string> requests()
    {
        // nginx writes a line after it has answered. Once the line of a last request is there, all earlier ones are.
        const std::string last = fmt::format("/last-{}", m_seen);
        static_cast<void>(ask(m_ports.open, "GET " + last + " HTTP/1.0\r\n\r\n"));
        for (;;) {
            std::ifstream log(m_folder / "requests");
            std::vector<std::string> lines;
            for (std::string line; std::getline(log, line);) lines.push_back(line);
            if (lines.empty() || !lines.back().contains(last + " ")) continue;
            std::vector<std::string> fresh(lines.begin() + static_cast<std::ptrdiff_t>(m_seen), lines.end() - 1);
            m_seen = lines.size();
            return fresh;
        }
    }
    [[nodiscard]] remote::Settings settings(std::uint16_t port) const
    {
        remote::Settings settings = patient(remote::Scheme::http);
        settings.port = port;
        settings.path = "/caches/of a team";
        settings.name_space = "v7/";
        settings.label = fmt::format("http://127.0.0.1:{}/caches", port);
        return settings;
    }

private:
    [[nodiscard]] std::string configuration() const
    {
        const auto server = [&](std::uint16_t port, const std::string& more) {
            return fmt::format("  server {{ listen 127.0.0.1:{}; root {}/root; dav_methods PUT DELETE MKCOL; {} }}\n",
                               port, m_folder.string(), more);
        };
        std::string text = "daemon off; master_process off; pid nginx.pid;\nevents { worker_connections 64; }\nhttp {\n"
                           "  log_format short '$request_method $uri $status'; access_log requests short;\n"
                           "  client_max_body_size 64m; client_body_temp_path temporary;\n";
        for (const char* kind : {"proxy", "fastcgi", "uwsgi", "scgi"})
            text += fmt::format("  {}_temp_path {};\n", kind, kind);
        text += server(m_ports.open, "create_full_put_path on;");
        text += server(m_ports.locked, "create_full_put_path on; auth_basic warmgraph; auth_basic_user_file " +
                                           (m_folder / "users").string() + ";");
        const std::string tls = fmt::format("ssl_certificate {}; ssl_certificate_key {};", certificate().string(),
                                            (m_folder / "key").string());
        text += fmt::format("  server {{ listen 127.0.0.1:{} ssl; root {}/root; dav_methods PUT DELETE; "
                            "create_full_put_path on; {} }}\n",
                            m_ports.tls, m_folder.string(), tls);
        return text + server(m_ports.folders, "") + "}\n";
    }

    fs::path m_folder;
    Ports m_ports;
    std::size_t m_seen = 0;
    ServerProcess m_process;
};

/// s3_server.py, with one bucket in memory.
class S3Server {
public:
    static constexpr const char* k_key = "AKIDWARMGRAPH";
    static constexpr const char* k_secret = "canary/secret+key";
    static constexpr const char* k_bucket = "models";

    explicit S3Server(const fs::path& folder, const std::string& token = "") : m_folder(folder)
    {
        fs::create_directories(folder);
        for (int i = 0; i < 10; ++i) {
            m_port = free_port();
            m_process = ServerProcess({"python3", WARMGRAPH_S3_SERVER, std::to_string(m_port), k_key, k_secret,
                                       k_bucket, (folder / "requests").string(), token},
                                      folder / "output");
            if (m_process.waits_on(m_port)) return;
        }
        throw std::runtime_error("s3_server.py does not start: " + text_of_file(folder / "output"));
    }
    [[nodiscard]] remote::Settings settings() const
    {
        remote::Settings settings = patient(remote::Scheme::s3);
        settings.endpoint = fmt::format("http://127.0.0.1:{}", m_port);
        settings.bucket = k_bucket;
        settings.path = "warm graph/ci";
        settings.region = "eu-central-1";
        settings.credentials.user = k_key;
        settings.credentials.password = k_secret;
        settings.label = "s3://models/warm graph/ci";
        return settings;
    }
    [[nodiscard]] std::uint16_t port() const noexcept { return m_port; }
    [[nodiscard]] std::string requests() const { return text_of_file(m_folder / "requests"); }

private:
    fs::path m_folder;
    std::uint16_t m_port = 0;
    ServerProcess m_process;
};

} // namespace warmgraph::test
