"""A bar chart as SVG, in a handful of lines: one bar a side, the longest first."""

from __future__ import annotations

from html import escape

WIDTH, BAR, GAP, LABEL, VALUE = 720, 20, 8, 150, 110
OURS, THEIRS = "#1f6feb", "#9aa4b2"


def bar_chart(title: str, values: dict[str, float], ours: str) -> str:
    """The chart; the bar named `ours` stands out."""
    ordered = sorted(values.items(), key=lambda pair: -pair[1])
    most = max(values.values())
    height = 34 + len(ordered) * (BAR + GAP)
    rows = [_row(34 + n * (BAR + GAP), *pair, most, ours) for n, pair in enumerate(ordered)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n'
        f'<text x="0" y="18" font-weight="bold">{escape(title)}</text>\n'
        + "".join(rows)
        + "</svg>\n"
    )


def _row(top: int, name: str, value: float, most: float, ours: str) -> str:
    long = (WIDTH - LABEL - VALUE) * value / most
    middle = top + BAR - 5
    return (
        f'<text x="{LABEL - 8}" y="{middle}" text-anchor="end">{escape(name)}</text>'
        f'<rect x="{LABEL}" y="{top}" width="{long:.1f}" height="{BAR}" rx="2" '
        f'fill="{OURS if name == ours else THEIRS}"/>'
        f'<text x="{LABEL + long + 6:.1f}" y="{middle}">{value:,.0f}</text>\n'
    )
