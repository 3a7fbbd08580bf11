"""How the page of a report looks: one style sheet, for light and dark, wide and narrow."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1d2430; --soft: #5b6676; --line: #dfe3e9; --paper: #f5f6f8; --card: #ffffff;
  --accent: #3b82c4; --good: #1f7a45; --good-paper: #e3f4e9; --bad-paper: #eef0f3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e8ee; --soft: #9aa5b4; --line: #333b47; --paper: #14181e; --card: #1c222b;
    --accent: #6ba8dd; --good: #7fd3a0; --good-paper: #1d3a2a; --bad-paper: #29303a;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
main { max-width: 1120px; margin: 0 auto; padding: 32px 16px 64px; }
header, section {
  background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 20px 24px; margin-bottom: 16px;
}
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 8px; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 0 0 12px; }
h3 { font-size: 1rem; margin: 16px 0 8px; }
p { margin: 0 0 12px; }
.kicker, .note, figcaption, dt, .tile span, small { color: var(--soft); }
.kicker { margin: 0; font-size: .85rem; letter-spacing: .04em; }
.note, figcaption { font-size: .875rem; max-width: 46rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(88px, 1fr)); gap: 8px; margin: 16px 0; }
.tile { border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px; }
.tile b { display: block; font-size: 1.75rem; line-height: 1.15; font-variant-numeric: tabular-nums; }
.tile span { font-size: .875rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(220px, 1fr)); gap: 8px 24px; margin: 0; }
dt { font-size: .8rem; }
dd { margin: 0; overflow-wrap: anywhere; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 8px 32px; }
.pair > * { min-width: 0; }
figure { margin: 0 0 12px; }
figure svg { display: block; width: 100%; max-width: 720px; height: auto; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
figure svg text { fill: var(--ink) !important; font-family: inherit !important; }
.scroll { overflow-x: auto; margin-bottom: 12px; }
.plain td:first-child { white-space: nowrap; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { text-align: left; padding: 5px 10px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; color: var(--soft); font-size: .8rem; vertical-align: bottom; }
th:last-child, td:last-child { padding-right: 0; }
td bdi { overflow-wrap: anywhere; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
table.bars td:first-child { white-space: nowrap; }
table.bars td:nth-child(2) { width: 34%; min-width: 60px; vertical-align: middle; }
.bar { display: block; height: 10px; min-width: 1px; border-radius: 3px; background: var(--accent); }
.samples { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 8px 32px; }
article { border-top: 1px solid var(--line); padding: 10px 0; min-width: 0; overflow-wrap: anywhere; }
article p { margin: 0 0 8px; font-size: .9rem; }
article ul { list-style: none; display: flex; flex-wrap: wrap; gap: 6px; padding: 0; margin: 0 0 8px; }
article li { background: var(--bad-paper); border-radius: 6px; padding: 2px 8px; font-size: .875rem; }
article li.right { background: var(--good-paper); color: var(--good); }
pre {
  margin: 0 0 12px; padding: 12px; border-radius: 6px; background: var(--paper); font-size: .85rem;
  white-space: pre-wrap; overflow-wrap: anywhere;
}
@media (max-width: 520px) {
  main { padding: 8px 8px 32px; }
  header, section { padding: 14px; }
  .tiles { grid-template-columns: repeat(3, 1fr); }
  dl { grid-template-columns: repeat(auto-fill, minmax(140px, 1fr)); gap: 8px 12px; }
  table { font-size: .8rem; }
  th { font-size: .75rem; }
  th, td { padding-right: 6px; }
  table.bars td:first-child { white-space: normal; }
  table.bars td:nth-child(2) { width: 18%; min-width: 30px; }
}
"""
