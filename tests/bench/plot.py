"""plot.py JSON SVG - the plot of a run, from the document that bench.py writes: bars by setting, row and subject.

Throughput only: latencies have another direction. Also a program, to draw again what was measured.
"""
import json
import sys
from xml.sax.saxutils import escape

WIDTH, LABELS, FIGURE, PAD = 900, 190, 40, 24  # FIGURE: room for a number behind the longest bar
BAR, GAP, ROW_GAP = 10, 2, 10
SUBJECTS = (("plain", "plain file"), ("null", "null daemon"), ("weightfs", "weightfs"), ("lmz", "lmz"))
ABOVE = ("throttled",)  # panels of the whole width
BESIDE = ("cold", "memory")  # panels that share the names of the rows
TITLES = {"throttled": "The disk gives {throttle_mbps} MB/s, nothing cached", "cold": "Nothing cached",
          "memory": "Store in the page cache, new mount"}
STYLE = """
text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #1f2328; }
.title { font-size: 16px; font-weight: 600; } .head { font-weight: 600; } .note, .figure { fill: #656d76; }
.figure { font-size: 10px; } .axis { stroke: #d0d7de; } .back { fill: #ffffff; }
.plain { fill: #9aa4af; } .null { fill: #d4b483; } .weightfs { fill: #1a7f5a; } .lmz { fill: #b05f6d; }
@media (prefers-color-scheme: dark) {
 text { fill: #e6edf3; } .note, .figure { fill: #8d96a0; } .axis { stroke: #30363d; } .back { fill: #0d1117; }
 .plain { fill: #6e7681; } .null { fill: #9e8049; } .weightfs { fill: #3fb27f; } .lmz { fill: #c9707f; }
}
"""


class Canvas:
    def __init__(self):
        self.parts = []
        self.y = 0

    def text(self, x, y, text, kind="row", anchor="start"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>')

    def box(self, x, y, width, height, kind):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height}" rx="2" '
                          f'class="{kind}"/>')

    def line(self, x, top, bottom):
        self.parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" class="axis"/>')


def bars_of(doc, setting):
    """{title of a row: [(subject, GB/s)]}. In memory the plain file is the page cache itself, another league."""
    found = {}
    for row in doc["rows"]:
        if row["setting"] == setting and row["unit"] == "GB/s":
            bars = [(name, row["subjects"][name]["median"]) for name, _ in SUBJECTS
                    if row["subjects"].get(name, {}).get("median") and (setting, name) != ("memory", "plain")]
            if bars:
                found[row["title"]] = bars
    return found


def draw_panels(canvas, doc, settings):
    """Side by side, with the names of the rows on the left."""
    panels = [(setting, bars) for setting, bars in ((name, bars_of(doc, name)) for name in settings) if bars]
    if not panels:
        return
    titles = list(dict.fromkeys(title for _, bars in panels for title in bars))
    width = (WIDTH - PAD - LABELS) / len(panels)
    heights = [max(len(bars.get(title, ())) for _, bars in panels) * (BAR + GAP) for title in titles]
    top, bottom = canvas.y + 26, canvas.y + 26 + sum(heights) + ROW_GAP * (len(titles) - 1)
    for i, (setting, bars) in enumerate(panels):
        x, y = LABELS + i * width, top
        scale = (width - FIGURE - PAD) / max(gbps for row in bars.values() for _, gbps in row)
        canvas.text(x, canvas.y + 14, TITLES[setting].format(**doc), "head")
        canvas.line(x, top - 2, bottom)
        for title, height in zip(titles, heights):
            if i == 0:
                canvas.text(LABELS - 8, y + height / 2 + 3, title, anchor="end")
            for k, (subject, gbps) in enumerate(bars.get(title, ())):
                canvas.box(x, y + k * (BAR + GAP), gbps * scale, BAR, subject)
                canvas.text(x + gbps * scale + 4, y + k * (BAR + GAP) + BAR - 1.5, f"{gbps:.2f}", "figure")
            y += height + ROW_GAP
    canvas.y = bottom + PAD


def draw_legend(canvas, present):
    x = PAD
    for name, text in SUBJECTS:
        if name in present:
            canvas.box(x, canvas.y, 12, 12, name)
            canvas.text(x + 18, canvas.y + 10, text)
            x += 40 + 6.5 * len(text)
    canvas.text(WIDTH - PAD, canvas.y + 10, "GB/s, more is better", "note", "end")
    canvas.y += 30


def draw(doc):
    """The SVG as text."""
    canvas, machine, model = Canvas(), doc["machine"], doc["model"]
    canvas.text(PAD, 30, "Reading a model through the mount", "title")
    canvas.y = 44
    for note in (f"{model['raw_bytes'] / 1e6:.0f} MB, packed {model['stored_bytes'] / 1e6:.0f} MB; "
                 f"{machine['processors']} x {machine['cpu']}, Linux {machine['kernel'].split('-')[0]}; medians",
                 "null daemon: the same requests answered without decoding, the limit of the transport"):
        canvas.text(PAD, canvas.y + 8, note, "note")
        canvas.y += 17
    canvas.y += 6
    draw_legend(canvas, doc["subjects"])
    draw_panels(canvas, doc, ABOVE)
    draw_panels(canvas, doc, BESIDE)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {canvas.y:.0f}" width="{WIDTH}" '
            f'height="{canvas.y:.0f}">\n<style>{STYLE}</style>\n<rect width="100%" height="100%" class="back"/>\n'
            + "\n".join(canvas.parts) + "\n</svg>\n")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as f:
        svg = draw(json.load(f))
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write(svg)
