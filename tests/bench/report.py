"""report.py - what bench.py found, as a table, as JSON and as what is wanted beside what is. The plot: plot.py."""
import statistics

from rows import SETTINGS, speed_ratio, value

REFERENCES = ("plain", "null", "lmz")


class Result:
    """Of one row in one setting: of each subject its runs, one a repeat; None: it took no part."""

    def __init__(self, row, setting, repeats):
        self.row = row
        self.setting = setting
        self.repeats = repeats
        self.runs = {}

    def values(self, unit, subject):
        return [value(unit, run) if run else None for run in self.runs.get(subject, [])]

    def median(self, unit, subject):
        """None: there is no run."""
        found = [v for v in self.values(unit, subject) if v is not None]
        return statistics.median(found) if found else None

    def ratio(self, unit, subject, other, other_result=None):
        """The median of the ratios of runs of the same repeat; None: there are none."""
        theirs = (other_result or self).values(unit, other)
        found = [speed_ratio(unit, a, b) for a, b in zip(self.values(unit, subject), theirs)
                 if a is not None and b is not None]
        return statistics.median(found) if found else None

    def compared_with(self, subject):
        """The references that a subject's figures are shown beside."""
        if subject == "plain":
            return ()
        others = REFERENCES if subject not in REFERENCES else ("plain",)
        return [other for other in others if other in self.runs]


class Verdict:
    """What is wanted, and what is: `found` is None when it could not be measured."""

    def __init__(self, wanted, results):
        self.wanted = wanted
        self.found = None
        by_name = {(result.setting, result.row.name): result for result in results}
        result = by_name.get((wanted.setting, wanted.row))
        other = by_name.get((wanted.setting, wanted.other_row))
        if result and wanted.most is not None:
            self.found = result.median(wanted.unit, wanted.subject)
        elif result and wanted.other_row is None:
            self.found = result.ratio(wanted.unit, wanted.subject, wanted.other)
        elif result and other:
            self.found = result.ratio(wanted.unit, wanted.subject, wanted.subject, other)

    @property
    def reached(self):
        if self.wanted.most is not None:
            return self.found <= self.wanted.most
        return self.found >= self.wanted.least

    @property
    def bound(self):
        return f"at most {self.wanted.most:g}" if self.wanted.most is not None else f"at least {self.wanted.least:.2f}"

    @property
    def what(self):
        w = self.wanted
        figure = f"{w.setting}/{w.row} {w.unit}: {w.subject}"
        if w.other_row:
            return f"{figure} / {w.other_row}"
        return f"{figure} / {w.other}" if w.other else figure


def number(x):
    """Four characters or a few more, whatever the size."""
    return "" if x is None else f"{x:.2f}" if x < 100 else f"{x:.0f}"


def columns_of(subjects, result):
    """(heading, subject, other or None) of each column."""
    for subject in subjects:
        yield subject, subject, None
        for other in result.compared_with(subject):
            yield "/" + other, subject, other


def marks(unit, result, verdicts):
    """What is wanted of a line of the table: "/null 0.85 ok"."""
    found = []
    for v in verdicts:
        w = v.wanted
        if (w.setting, w.row, w.unit) != (result.setting, result.row.name, unit) or v.found is None:
            continue
        subject = "" if w.subject == "weightfs" else w.subject
        bound = f"<={w.most:g}" if w.most is not None else f"{subject}/{w.other or w.other_row} {w.least:.2f}"
        found.append(f"{bound} {'ok' if v.reached else 'NO'}")
    return ", ".join(found)


def print_table(results, subjects, verdicts, rate):
    for setting, text in SETTINGS.items():
        chosen = [result for result in results if result.setting == setting and any(result.runs.values())]
        if not chosen:
            continue
        print(f"\n{setting}: {text.format(rate=rate)}")
        columns = list(columns_of(subjects, chosen[0]))
        print(" " * 34 + "".join(f"{heading:>{width(heading)}}" for heading, _, _ in columns) + "   wanted")
        for result in chosen:
            for unit in result.row.units:
                line = f"  {result.row.title:25}{unit:>7}"
                for heading, subject, other in columns:
                    x = result.ratio(unit, subject, other) if other else result.median(unit, subject)
                    line += f"{number(x):>{width(heading)}}"
                print(f"{line}   {marks(unit, result, verdicts)}".rstrip())


def width(heading):
    return max(len(heading) + 1, 7) if heading.startswith("/") else len(heading) + 3 if len(heading) > 6 else 9


def print_verdicts(verdicts):
    if not verdicts:
        return
    measured = [v for v in verdicts if v.found is not None]
    missed = [v for v in measured if not v.reached]
    print(f"\nof {len(verdicts)} goals for a machine of two cores {len(measured)} were measured here, "
          f"{len(measured) - len(missed)} reached; to miss one fails nothing")
    for v in missed:
        print(f"  not reached: {v.what}: {number(v.found)}, wanted {v.bound}")


def as_json(results, verdicts):
    """The part of the document that the results make."""
    rows = []
    for result in results:
        for unit in result.row.units:
            figures = {}
            for subject in result.runs:
                ratios = {other: result.ratio(unit, subject, other) for other in result.compared_with(subject)}
                figures[subject] = {"median": result.median(unit, subject), "values": result.values(unit, subject),
                                    "ratios": ratios}
            rows.append({"setting": result.setting, "row": result.row.name, "title": result.row.title, "unit": unit,
                         "subjects": figures})
    wanted = [{"what": v.what, "found": v.found, "least": v.wanted.least, "most": v.wanted.most,
               "reached": v.found is not None and v.reached} for v in verdicts]
    return {"rows": rows, "wanted": wanted}
