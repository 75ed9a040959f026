# SPDX-License-Identifier: Apache-2.0
"""`weft bench report`: one page, whole, that loads nothing, and fits a phone and a screen, in a real browser."""
import html.parser
import os
import re
import shutil
import subprocess
import unittest

from cmdtest import CommandTest

BROWSER = shutil.which("chromium")
VOID = {"meta", "rect", "path", "circle", "br"}

# Beside the page, and never part of it: says how wide the page is to be, and is.
MEASURE = """<script>
addEventListener("load", () => {
  const out = document.createElement("pre");
  const dark = getComputedStyle(document.body).backgroundColor;
  out.id = "measured";
  out.textContent = [document.documentElement.scrollWidth, innerWidth, dark,
    document.querySelectorAll("svg").length, document.querySelectorAll("tbody tr").length].join(" ");
  document.body.append(out);
});
</script>"""


class Shape(html.parser.HTMLParser):
    """Tags that are not closed in order; whatever would be loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.links, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.links += [v for k, v in attrs if k in ("src", "href", "data", "action", "srcset")]
        if tag in ("script", "link", "iframe", "object", "img"):
            self.wrong.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.links += [v for k, v in attrs if k in ("src", "href")]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append("/" + tag)

    def handle_data(self, data):
        self.text.append(data)


class Page(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        self = cls("test_one_page_that_loads_nothing")
        cls.page = cls.path("report.html")
        cls.write("report.html", b"x" * 500000)  # what was there before is gone afterwards
        cls.done = self.weft("bench", "report", "-o", cls.page, "--rounds", "1", "--only", "models,ring",
                             WEFT_LIBRARY=None)
        with open(cls.page, encoding="utf-8") as f:
            cls.html = f.read()

    def test_wrong_arguments(self):
        for args, words in ((("-o", ""), ("-o",)), (("--only", "hogs"), ("--only", "io-models")),
                            (("--rounds", "0"), ("--rounds",)), (("extra",), ("extra",)),
                            (("-o", "no/such/folder.html"), ("no/such/folder.html", "No such file"))):
            with self.subTest(args=args):
                self.assert_refused(self.weft("bench", "report", *args, WEFT_LIBRARY=None), 125, "bench: ", *words)

    def test_one_page_that_loads_nothing(self):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, b""))
        self.assertIn(b"wrote ", self.done.stdout)
        shape = Shape()
        shape.feed(self.html)
        self.assertEqual((shape.open, shape.wrong, shape.links), ([], [], []))
        self.assertNotIn("url(", self.html)
        self.assertNotIn("@import", self.html)
        self.assertEqual(set(re.findall(r'"(https?://[^"]*)"', self.html)), {"http://www.w3.org/2000/svg"})
        text = " ".join(shape.text)
        for words in ("Threading models", "8 threads compute", "1:N", "M:N", "times", "Thread-ring"):
            self.assertIn(words, text)

    def measured(self, width, *args):
        copy = self.path("measured.html")
        with open(copy, "w", encoding="utf-8") as f:
            f.write(self.html.replace("</body>", MEASURE + "</body>"))
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900",
             "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self.path('profile')}", "--dump-dom", *args,
             "file://" + copy],
            capture_output=True, timeout=120, check=False)
        found = re.search(rb'id="measured">(\d+) (\d+) ([^<]*\)) (\d+) (\d+)<', done.stdout)
        self.assertIsNotNone(found, done.stderr[-2000:])
        return int(found[1]), int(found[2]), found[3], int(found[4]), int(found[5])

    @unittest.skipUnless(BROWSER, "no chromium")
    def test_it_fits_and_is_dark_in_the_dark(self):
        for width in (500, 1400):  # what is wider than a phone scrolls by itself
            wide, inner, light, pictures, rows = self.measured(width)
            self.assertLessEqual(wide, inner)
            self.assertEqual(light, b"rgb(255, 255, 255)")
            self.assertEqual(pictures, 2)
            self.assertGreaterEqual(rows, 7)
        self.assertEqual(self.measured(500, "--blink-settings=preferredColorScheme=0")[2], b"rgb(27, 26, 25)")

    @unittest.skipUnless(BROWSER, "no chromium")
    def test_it_prints(self):
        pdf = self.path("page.pdf")
        subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--print-to-pdf={pdf}",
                        f"--user-data-dir={self.path('profile')}", "file://" + self.page],
                       capture_output=True, timeout=120, check=True)
        self.assertGreater(os.path.getsize(pdf), 10000)


if __name__ == "__main__":
    unittest.main()
