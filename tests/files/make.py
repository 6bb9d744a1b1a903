"""Thirty tables as people have them, and what a reader should see in each.

``PYTHONPATH=tests python tests/files/make.py`` writes them. The command line, the server and the page's own reader are
all held to cases.json.
"""

import gzip
import json
from pathlib import Path

import pandas as pd

from containers import parquet, sheet, zipped

HERE = Path(__file__).parent
CASES: list[dict] = []
PLAIN = "width,height\n1.5,20\n2.5,10\n3,40\n1,25\n"


def case(name: str, body: str | bytes, why: str, **expected) -> None:
    """One file: the columns to use, the reasons for the others, rows, rows with gaps and the sum of what is used."""
    (HERE / name).write_bytes(body.encode() if isinstance(body, str) else body)
    CASES.append({"file": name, "why": why, **expected})


def plain(**other) -> dict:
    """What the reader should see in PLAIN, however it is wrapped."""
    return {"rows": 4, "columns": ["width", "height"], "skipped": {}, "gaps": 0, "total": 103.0} | other


def write() -> None:
    """Write every file, and cases.json."""
    case("plain.csv", PLAIN, "what everyone means by CSV", **plain())
    case("windows.csv", PLAIN.replace("\n", "\r\n"), "lines end as on Windows", **plain())
    case("bom.csv", "\ufeff" + PLAIN, "UTF-8 with a mark at the start, as Excel saves it", **plain())
    case("utf16.csv", PLAIN.encode("utf-16"), "UTF-16, as Excel saves Unicode text", **plain())
    case("utf16-bare.csv", PLAIN.encode("utf-16-le"), "UTF-16 without its mark", **plain())
    case("plain.csv.gz", gzip.compress(PLAIN.encode(), mtime=0), "gzipped", **plain())
    case("tabs.tsv", PLAIN.replace(",", "\t"), "tabs", **plain())
    case("pipes.txt", PLAIN.replace(",", "|"), "pipes, as databases print", **plain())
    case("blank-lines.csv", "\n" + PLAIN.replace("\n3", "\n\n3") + "\n\n", "blank lines between the rows", **plain())
    case("spaces.csv", PLAIN.replace(",", " , "), "spaces around the commas", **plain())
    case(
        "latin1.csv",
        "größe;länge\n1,5;20\n2,5;10\n3;40\n1;25\n".encode("latin-1"),
        "Latin-1, semicolons, decimal commas: Excel in German",
        **plain(columns=["größe", "länge"]),
    )
    case("nameless.csv", PLAIN.split("\n", 1)[1], "no line of names", **plain(columns=["x0", "x1"]))
    case(
        "quoted.csv",
        'name,"width","height"\n"a, b",1.5,20\n"c ""d""",2.5,10\n"e\nf",3,40\ng,1,25\n',
        "commas, quotes and line ends inside quotes",
        **plain(skipped={"name": "text"}),
    )
    case(
        "question-marks.csv",
        "width,height\n1.5,20\n?,10\n3,40\n1,25\n",
        "? for what is missing",
        **plain(gaps=1, total=90.5),
    )
    case(
        "gaps.csv",
        "a,b,c\n1,2,3\n,5,6\n7,NA,9\n1,2,n/a\n2,4,7\n3,3,1\n",
        "gaps as an empty cell, NA and n/a",
        rows=6,
        columns=["a", "b", "c"],
        skipped={},
        gaps=3,
        total=26.0,
    )
    case(
        "mostly-empty.csv",
        "a,b\n1,\n2,\n4,5\n8,\n",
        "a column with one value would leave one row",
        rows=4,
        columns=["a"],
        skipped={"b": "mostly empty"},
        gaps=0,
        total=15.0,
    )
    case(
        "thousands.csv",
        'pay,age\n"1,200",20\n"12,500.5",30\n"900",45\n',
        "commas between thousands",
        rows=3,
        columns=["pay", "age"],
        skipped={},
        gaps=0,
        total=14695.5,
    )
    case(
        "money.csv",
        'pay,rise,either\n"$1,200",4.5%,$3\n"-$12,500.5",3 %,€4\n$900,-1%,$5\n',
        "amounts of money and percentages; a column of two currencies is no quantity",
        rows=3,
        columns=["pay", "rise"],
        skipped={"either": "text"},
        gaps=0,
        total=-10394.0,
    )
    case(
        "euros.csv",
        "pay;age\n1,50 €;20\n20,25 €;30\n;45\n",
        "amounts with decimal commas",
        rows=3,
        columns=["pay", "age"],
        skipped={},
        gaps=1,
        total=71.75,
    )
    case(
        "spaced.txt",
        '  width   height who\n 1.5  20  "A B"\n  2.5 10  C\n3      40 D \n1 25 E\n',
        "columns lined up with spaces",
        **plain(skipped={"who": "text"}),
    )
    case("savetxt.txt", "# " + PLAIN.replace(",", " "), "as numpy.savetxt writes by itself", **plain())
    case(
        "stray.csv",
        "width,height,price\n1.5,20,7\n2.5,10,9\n3,40,call us\n1,25,8\n",
        "a word in a column of numbers",
        **plain(
            skipped={"price": "text"},
            notes=["Column 'price' would hold numbers but for 'call us' in row 3, and is left out"],
        ),
    )
    case("remarks.csv", "# made by a program\n\n#\n" + PLAIN, "remarks above the names", **plain())
    case("savetxt.csv", "# " + PLAIN, "names behind a #, as numpy.savetxt writes them", **plain())
    case(
        "ids.csv",
        "row,customer_id,zip,spend,visits\n"
        + "".join(f"{i},{7 * i % 11 + 90},{10000 + i},{i * i % 5}.5,{i % 3}\n" for i in range(8)),
        "a running number, an identifier and a code",
        rows=8,
        columns=["spend", "visits"],
        skipped={"row": "an identifier", "customer_id": "an identifier", "zip": "a code"},
        gaps=0,
        total=float(sum(i * i % 5 + 0.5 + i % 3 for i in range(8))),
    )
    case(
        "shuffled.csv",
        "number,x\n" + "".join(f"{17 * i % 41},{i % 4}.25\n" for i in range(41)),
        "a running number that was shuffled",
        rows=41,
        columns=["x"],
        skipped={"number": "a running number"},
        gaps=0,
        total=float(sum(i % 4 + 0.25 for i in range(41))),
    )
    case(
        "dates.csv",
        "day,year,flag,x\n2024-01-05,2024,true,1\n2024-02-07,2023,false,5\n2023-11-30,2022,true,2\n",
        "dates, years and yes or no",
        rows=3,
        columns=["x"],
        skipped={"day": "dates", "year": "dates", "flag": "true or false"},
        gaps=0,
        total=8.0,
    )
    case(
        "duplicates.csv",
        "a,b\n1,2\n1,2\n3,5\n1,2\n",
        "rows that repeat",
        rows=4,
        columns=["a", "b"],
        skipped={},
        gaps=0,
        total=17.0,
        notes=["2 rows repeat another one; each counts as often as it occurs"],
    )
    case(
        "constant.csv",
        "a,b,c\n1,7,\n2,7,\n4,7,\n",
        "a constant column and an empty one",
        rows=3,
        columns=["a"],
        skipped={"b": "constant", "c": "empty"},
        gaps=0,
        total=7.0,
    )
    case(
        "large-integers.csv",
        "a,b\n1000000000000000000000000000000,1\n3000000000000000000000000000000,5\n2000000000000000000000000000000,2\n",
        "integers of thirty digits",
        rows=3,
        columns=["a", "b"],
        skipped={},
        gaps=0,
        total=6e30,
    )
    case(
        "same-names.csv",
        "a,a,\n1,2,3\n4,5,7\n6,1,2\n",
        "two columns of one name and one of none",
        rows=3,
        columns=["a", "a.1", "Unnamed: 2"],
        skipped={},
        gaps=0,
        total=31.0,
    )
    case(
        "two-rows.csv",
        "a,b\n1,2\n3,5\n",
        "two rows",
        rows=2,
        columns=["a", "b"],
        skipped={},
        gaps=0,
        total=11.0,
    )
    case("one-row.csv", "a,b\n1,2\n", "one row", rows=1, columns=["a", "b"], skipped={}, gaps=0, total=3.0)
    lines = [
        {"width": w, "height": h, "name": n}
        for w, h, n in ((1.5, 20, "a"), (2.5, 10, "b"), (3, 40, "c"), (1, 25, None))
    ]
    case("lines.jsonl", "\n".join(map(json.dumps, lines)) + "\n", "JSON lines", **plain(skipped={"name": "text"}))
    case("list.json", json.dumps(lines), "a JSON list", **plain(skipped={"name": "text"}))
    table = [["width", "height", "name"], [1.5, 20, "a"], [2.5, 10, "b"], [3, 40, "c"], [1, 25, None]]
    case("book.xlsx", sheet(table), "an Excel workbook", **plain(skipped={"name": "text"}))
    frame = pd.DataFrame(lines)
    case("frame.parquet", parquet(frame), "Parquet", **plain(skipped={"name": "text"}))
    case("words.csv", "a,b\nx,y\nz,w\n", "nothing but words", refused="no column holds numbers")
    case(
        "only-stray.csv",
        "price\n7\n9\ncall us\n8\n",
        "a word in the only column of numbers",
        refused="no column holds numbers to cluster (price: text, as 'call us' in row 3)",
    )
    case("page.csv", "<!DOCTYPE html>\n<html><p>Not found</p></html>\n", "a web page", refused="a web page or XML")
    case("archive.zip", zipped({"plain.csv": PLAIN}), "a zip archive", refused="a zip archive: unpack it")
    case("names-only.csv", "a,b\n", "names and no rows", refused="no rows")
    case("empty.csv", "", "an empty file", refused="empty")
    case(
        "trailing.csv",
        PLAIN.replace("10\n", "10,\n").replace("40\n", "40,,\n"),
        "commas behind the last cell of some rows",
        **plain(),
    )
    case(
        "ragged.csv",
        "# three lines\n\na,b\n1,2\n\n1,2,3,4,\n",
        "a row longer than the line of names",
        refused="cannot be read as a table: line 6 has 4 cells, the line of names has 2",
    )
    case(
        "too-few-names.csv",
        'name,x\n"a\nb",1,2\nc,3,4\n',
        "every row longer than the line of names",
        refused="cannot be read as a table: line 2 has 3 cells, the line of names has 2",
    )
    case(
        "ragged-nameless.csv",
        '1,2\n"3\n",4\n5,6,7\n',
        "a row longer than the first",
        refused="cannot be read as a table: line 4 has 3 cells, the first line has 2",
    )
    case(
        "unclosed.csv",
        'a,b\n1,"2\n3,4\n',
        "a quotation mark without its partner",
        refused="cannot be read as a table: a quotation mark is opened and never closed",
    )
    case(
        "photo.csv", bytes([0xFF, 0xD8, 0xFF, 0xE0, 0, 16, 74, 70, 73, 70, 0, 1, 0x80]), "a picture", refused="neither"
    )
    (HERE / "cases.json").write_text(json.dumps(CASES, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
