#include <fmt/core.h>

#include <holdfast/base/report.hpp>

namespace holdfast::report {
namespace {

constexpr std::string_view kit_style = R"css(
:root {
  color-scheme: light dark;
  --page: #fbfbfa; --card: #ffffff; --edge: #e4e3df; --ink: #1c1d1f; --soft: #6a6c70;
  --grid: #e8e8e6; --a: #2563c9; --b: #c8731c; --c: #22805a; --d: #c2331f; --marker: #8e44ad;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #141517; --card: #1c1e21; --edge: #303338; --ink: #ecedee; --soft: #9b9ea5;
    --grid: #2a2d31; --a: #6ea3ff; --b: #f0a35e; --c: #5fd0a0; --d: #ff7a66; --marker: #c792ea;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 2.5rem 1.25rem 4rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif;
}
main { max-width: 980px; margin: 0 auto; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; letter-spacing: -.01em; }
svg { display: block; width: 100%; height: auto; }
table { border-collapse: collapse; }
th { color: var(--soft); font-weight: 600; text-align: right; }
td { text-align: right; font-variant-numeric: tabular-nums; }
td:first-child, th:first-child { text-align: left; }
figure { margin: 1.6rem 0; } figcaption { font-weight: 600; }
.legend { margin: .1rem 0 .3rem; color: var(--soft); font-size: .85rem; }
.legend span { margin-right: 1.2rem; }
.legend i {
  display: inline-block; width: .8rem; height: .8rem; border-radius: 2px;
  margin-right: .35rem; vertical-align: -1px; background: var(--soft);
}
.legend i.a { background: var(--a); } .legend i.b { background: var(--b); }
.legend i.c { background: var(--c); } .legend i.d { background: var(--d); }
.legend i.f { background: var(--marker); }
.grid { stroke: var(--grid); } .tick { fill: var(--soft); font-size: 12px; }
.tick.middle { text-anchor: middle; } .tick.end { text-anchor: end; }
.line { fill: none; stroke-width: 1.8; } .band { opacity: .22; stroke: none; }
.level { stroke-dasharray: 5 4; stroke-width: 1.4; } .fault { stroke: var(--marker); }
.line.a, .level.a { stroke: var(--a); } .line.b, .level.b { stroke: var(--b); }
.line.c, .level.c { stroke: var(--c); } .line.d, .level.d { stroke: var(--d); }
.band.a, .column.a, .cell-of-map.a { fill: var(--a); } .column.b { fill: var(--b); }
.column.c { fill: var(--c); } .column.d { fill: var(--d); }
)css";

}  // namespace

std::string page(std::string_view title, std::string_view style, std::string_view body) {
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
        "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
        "<style>{}{}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
        escaped(title),
        kit_style,
        style,
        body);
}

}  // namespace holdfast::report
