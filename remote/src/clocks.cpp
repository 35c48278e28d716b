#include "clocks.hpp"

#include <cstdio>
#include <string_view>

#include "warmgraph/remote/backends.hpp"

namespace warmgraph::remote {

StoreTime time_of_date(const std::string& date)
{
    constexpr std::string_view k_months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int day = 0, year = 0, hour = 0, minute = 0, second = 0, end = 0;
    char month[4]{};
    // The words are English in each locale.
    if (std::sscanf(date.c_str(), "%*3s, %2d %3s %4d %2d:%2d:%2d GMT%n", &day, month, &year, &hour, &minute, &second,
                    &end) != 6 ||
        static_cast<std::size_t>(end) != date.size())
        return std::nullopt;
    const std::size_t at = k_months.find(month);
    using namespace std::chrono;
    const year_month_day ymd{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(at / 3 + 1)),
                             std::chrono::day(static_cast<unsigned>(day))};
    if (at == std::string_view::npos || at % 3 != 0 || !ymd.ok() || hour > 23 || minute > 59 || second > 60)
        return std::nullopt;
    return sys_days(ymd) + hours(hour) + minutes(minute) + seconds(second);
}

Result<std::optional<std::chrono::seconds>> clock_ahead(const Settings& settings)
{
    using std::chrono::seconds;
    if (settings.scheme == Scheme::file) return std::nullopt;
    const bool is_http =
        settings.scheme == Scheme::http || settings.scheme == Scheme::https || settings.scheme == Scheme::s3;
    const auto time = is_http ? http_time(settings) : redis_time(settings);
    if (!time) return std::unexpected(time.error());
    if (!*time) return std::nullopt;
    return **time - std::chrono::floor<seconds>(std::chrono::system_clock::now());
}

} // namespace warmgraph::remote
