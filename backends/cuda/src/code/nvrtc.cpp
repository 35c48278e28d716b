#include "code/nvrtc.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/ranges.h>

#include <dlfcn.h>

#include "device/facts.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::backends::cuda {
namespace {

std::vector<std::string> usual_names()
{
    std::vector<std::string> names;
    for (const char* folder : {"", "/usr/local/cuda/lib64/"}) {
        for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
            names.push_back(std::string(folder) + name);
    }
    return names;
}

bool names_architecture(const std::string& option)
{
    return option.starts_with("--gpu-architecture") || option.starts_with("-arch");
}

} // namespace

/// An nvrtcProgram, owned.
class Nvrtc::Program {
public:
    Program(const Nvrtc& nvrtc, const std::string& source)
        : m_nvrtc(nvrtc), m_made(nvrtc.m_create(&m_program, source.c_str(), "warmgraph.cu", 0, nullptr, nullptr))
    {
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program()
    {
        if (m_program != nullptr) m_nvrtc.m_destroy(&m_program);
    }
    [[nodiscard]] nvrtcResult made() const noexcept { return m_made; }
    [[nodiscard]] nvrtcProgram get() const noexcept { return m_program; }
    [[nodiscard]] std::string log_text() const
    {
        std::size_t size = 0;
        if (m_nvrtc.m_log_size(m_program, &size) != NVRTC_SUCCESS || size < 2) return {};
        std::string text(size, '\0');
        if (m_nvrtc.m_log(m_program, text.data()) != NVRTC_SUCCESS) return {};
        text.pop_back(); // remove the terminating zero
        return text;
    }

private:
    const Nvrtc& m_nvrtc;
    nvrtcProgram m_program = nullptr;
    nvrtcResult m_made;
};

bool Nvrtc::resolve(void* library)
{
    bool complete = true;
    const auto find = [&]<class Function>(const char* name, Function& target) {
        target = reinterpret_cast<Function>(::dlsym(library, name));
        complete = complete && target != nullptr;
    };
    find("nvrtcGetErrorString", m_error_string);
    find("nvrtcVersion", m_get_version);
    find("nvrtcCreateProgram", m_create);
    find("nvrtcDestroyProgram", m_destroy);
    find("nvrtcCompileProgram", m_compile);
    find("nvrtcGetCUBINSize", m_cubin_size);
    find("nvrtcGetCUBIN", m_cubin);
    find("nvrtcGetProgramLogSize", m_log_size);
    find("nvrtcGetProgramLog", m_log);
    const bool is_complete = complete;
    find("nvrtcGetNumSupportedArchs", m_arch_count);
    find("nvrtcGetSupportedArchs", m_archs);
    return is_complete;
}

Result<std::shared_ptr<const Nvrtc>> Nvrtc::open(const std::vector<std::string>& names)
{
    std::string why;
    for (const std::string& name : names) {
        void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            const char* const text = ::dlerror();
            if (why.empty() && text != nullptr) why = text;
            continue;
        }
        auto nvrtc = std::make_shared<Nvrtc>();
        int major = 0, minor = 0;
        if (!nvrtc->resolve(library) || nvrtc->m_get_version(&major, &minor) != NVRTC_SUCCESS) {
            why = fmt::format("{} lacks functions of NVRTC 12", name);
            continue;
        }
        nvrtc->m_path = name;
        nvrtc->m_version = fmt::format("{}.{}", major, minor);
        return nvrtc;
    }
    return fail(ErrorCode::not_found,
                "NVRTC, which compiles CUDA sources, was not found ({}; tried {}); install the CUDA toolkit's "
                "libnvrtc, or set WARMGRAPH_NVRTC to its file",
                why, fmt::join(names, ", "));
}

Result<std::shared_ptr<const Nvrtc>> Nvrtc::load(const std::string& library)
{
    // Never destroyed: threads may outlive main().
    static std::mutex& mutex = *new std::mutex;
    static auto& loaded = *new std::map<std::string, std::shared_ptr<const Nvrtc>>;
    const std::string asked = !library.empty() ? library : environment("WARMGRAPH_NVRTC").value_or("");
    const std::scoped_lock lock(mutex);
    if (const auto found = loaded.find(asked); found != loaded.end()) return found->second;
    auto opened = open(asked.empty() ? usual_names() : std::vector{asked});
    if (opened) loaded.emplace(asked, *opened);
    return opened;
}

Result<Bytes> Nvrtc::compile(std::string_view source, const std::vector<std::string>& options,
                             const std::string& architecture) const
{
    if (source.find('\0') != std::string_view::npos)
        return fail(ErrorCode::invalid_argument, "kernel source has a zero byte, expected text");
    const Program program(*this, std::string(source));
    if (program.made() != NVRTC_SUCCESS)
        return fail(ErrorCode::compile_failed, "NVRTC {} cannot take the source: {}", m_version,
                    m_error_string(program.made()));
    const std::string ours = "--gpu-architecture=" + architecture;
    std::vector<const char*> all;
    if (std::ranges::none_of(options, names_architecture)) all.push_back(ours.c_str());
    for (const std::string& option : options) all.push_back(option.c_str());
    const nvrtcResult compiled = m_compile(program.get(), static_cast<int>(all.size()), all.data());
    const std::string text = program.log_text();
    if (compiled != NVRTC_SUCCESS) {
        return fail(ErrorCode::compile_failed,
                    "kernel source does not compile: {} (NVRTC {}, options: {}); the compiler's log:\n{}",
                    m_error_string(compiled), m_version, fmt::join(all, " "), text);
    }
    if (!text.empty()) log().debug("NVRTC's log: {}", text);
    std::size_t size = 0;
    nvrtcResult taken = m_cubin_size(program.get(), &size);
    Bytes cubin(size);
    if (taken == NVRTC_SUCCESS && size > 0) taken = m_cubin(program.get(), reinterpret_cast<char*>(cubin.data()));
    if (taken != NVRTC_SUCCESS || size == 0) {
        return fail(ErrorCode::compile_failed,
                    "NVRTC {} gives no cubin ({}): name a real architecture (sm_90), not a virtual one (compute_90)",
                    m_version, m_error_string(taken));
    }
    return cubin;
}

Digest Nvrtc::origin_of(std::string_view source, std::string_view options, const std::string& architecture) const
{
    Sha256 origin;
    return origin.update_field(source)
        .update_field(options)
        .update_field(m_version)
        .update_field(architecture)
        .finish();
}

std::optional<std::string> Nvrtc::identity() const
{
    constexpr std::size_t k_digits = 16;
    const auto build = build_id_of(reinterpret_cast<const void*>(m_compile)); // NOLINT: a function's address
    if (!build) return std::nullopt;
    return fmt::format("NVRTC {} (build {})", m_version, build->substr(0, k_digits));
}

Result<std::string> Nvrtc::compiler() const
{
    for (const char* flags : k_flag_variables)
        if (const auto text = environment(flags); text && !text->empty())
            return fail(ErrorCode::unsupported, "{} is set, which may name files that only NVRTC reads", flags);
    auto known = identity();
    if (!known) return fail(ErrorCode::unsupported, "{} does not report its build", m_path);
    return std::move(*known);
}

std::vector<std::string> Nvrtc::architectures() const
{
    int count = 0;
    if (m_arch_count == nullptr || m_archs == nullptr || m_arch_count(&count) != NVRTC_SUCCESS || count <= 0) return {};
    std::vector<int> numbers(static_cast<std::size_t>(count));
    if (m_archs(numbers.data()) != NVRTC_SUCCESS) return {};
    std::vector<std::string> names;
    for (const int number : numbers) names.push_back(fmt::format("sm_{}", number));
    return names;
}

std::optional<std::string> named_architecture(const std::vector<std::string>& options)
{
    for (std::size_t i = 0; i < options.size(); ++i) {
        if (!names_architecture(options[i])) continue;
        const std::size_t equals = options[i].find('=');
        if (equals != std::string::npos) return options[i].substr(equals + 1);
        if (i + 1 < options.size()) return options[i + 1];
    }
    return std::nullopt;
}

Result<std::vector<std::string>> split_options(std::string_view options)
{
    std::vector<std::string> words;
    char quote = '\0';
    bool in_word = false;
    for (const char letter : options) {
        const bool is_blank = letter == ' ' || letter == '\t' || letter == '\n';
        if (quote == '\0' && is_blank) {
            in_word = false;
            continue;
        }
        if (!in_word) words.emplace_back();
        in_word = true;
        if (quote == letter) {
            quote = '\0';
        } else if (quote == '\0' && (letter == '\'' || letter == '"')) {
            quote = letter;
        } else {
            words.back() += letter;
        }
    }
    if (quote != '\0')
        return fail(ErrorCode::invalid_argument, "a quotation mark {} in the options has no closing one: {}", quote,
                    options);
    return words;
}

} // namespace warmgraph::backends::cuda
