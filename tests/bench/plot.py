"""plot.py - the plot of a run as SVG, from the document that bench.py writes as JSON."""
def draw(doc):
    return ""
