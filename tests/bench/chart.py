"""A bar chart of ratios as SVG: one bar for each test, a line where both servers are equal."""
from xml.sax.saxutils import escape

LEFT, WIDTH, ROW, TOP = 230, 520, 24, 40


def ratios(rows):
    largest = max(1.25, max(r["ratio"] for r in rows) * 1.1)
    height = TOP + ROW * len(rows) + 30

    def x(ratio):
        return LEFT + WIDTH * ratio / largest

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 70}" height="{height}" '
           'font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="20" font-size="14">larder / redis-server, operations per second</text>']
    for i, r in enumerate(rows):
        y = TOP + i * ROW
        colour = "#2a7f62" if r["ratio"] >= 1 else "#c98a2b"
        out.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(r["test"])}</text>')
        out.append(f'<rect x="{LEFT}" y="{y + 3}" width="{x(r["ratio"]) - LEFT:.1f}" height="{ROW - 8}" fill="{colour}"/>')
        out.append(f'<text x="{x(r["ratio"]) + 5:.1f}" y="{y + 14}">{r["ratio"]:.2f}</text>')
    out.append(f'<line x1="{x(1):.1f}" y1="{TOP - 8}" x2="{x(1):.1f}" y2="{height - 22}" stroke="#555" stroke-dasharray="4 3"/>')
    out.append(f'<text x="{x(1):.1f}" y="{height - 8}" text-anchor="middle">1.0</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"
