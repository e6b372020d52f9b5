"""Look at the built pages in a browser: ``python docs/check_in_browser.py [FOLDER [PICTURES]]``.

FOLDER is the built documentation, docs/_build/html else. Every page is opened in Chromium, without
a window, as wide as a laptop's and as a telephone's; what a reader could not read is an error:

- a formula that is neither in the middle of its line nor begins where the line does,
- a pair of bars of which one is higher, or stands lower,
- a command that is cut off, and on the wide screen code that is,
- a page that is wider than the window, and a name that runs out of it or of its place,
- pages of one name in the list at the left,
- a picture that is not there.

Pictures of all pages, light and dark, are saved in the folder PICTURES, if there is one. Where
there is no Chromium nothing is checked, and the last line says so.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

# dask and the kernels of the pages bring it
from tornado.websocket import websocket_connect

BROWSERS = "chromium", "chromium-browser", "google-chrome", "chrome"
WIDE, NARROW, HEIGHT = 1280, 400, 900  # pixels
PATIENCE = 60  # seconds, for one answer of the browser
FAULTS = """
(() => {
  const faults = [], slack = 2, whole = document.documentElement;  // pixels
  const say = (what, element) => faults.push(what + ": " + element.textContent.trim()
    .replace(/\\s+/g, " ").slice(0, 60));
  const box = (elements) => {
    const boxes = elements.map((e) => e.getBoundingClientRect()).filter((b) => b.width);
    return [Math.min(...boxes.map((b) => b.left)), Math.max(...boxes.map((b) => b.right))];
  };
  const wide = whole.clientWidth > 1000;
  if (whole.scrollWidth > whole.clientWidth + slack)
    faults.push(`the page is ${whole.scrollWidth} pixels wide`);
  for (const text of document.querySelectorAll("article :is(h1, h2, h3, dt, p, li), .page-toc a"))
    if (!text.closest("table") && text.scrollWidth > text.clientWidth + slack && text.clientWidth)
      say("a name runs out of its place", text);
    else if (text.getBoundingClientRect().right > whole.clientWidth + slack
        && !text.closest("table, .skip-link")) say("a name runs out of the window", text);
  for (const line of document.querySelectorAll("div.math")) {
    if (!line.getClientRects().length) continue;
    for (const formula of line.querySelectorAll(":scope > math")) {
      const [left, right] = box([...formula.children]), place = line.getBoundingClientRect();
      const number = line.querySelector(".eqno")?.getBoundingClientRect();
      const before = left - place.left, after = (number ? number.left : place.right) - right;
      if (before < -slack) say("a formula begins beyond the left edge", formula);
      else if (before > 20 && Math.abs(before - after) > 20)
        say(`a formula is ${Math.round(before - after) / 2} pixels off the middle`, formula);
    }
  }
  for (const formula of document.querySelectorAll("math"))
    for (const bar of "|‖") {
      const all = [...formula.querySelectorAll("mo:not([form=infix])")]
        .filter((one) => one.textContent === bar).map((one) => one.getBoundingClientRect());
      for (let i = 0; i + 1 < all.length; i += 2)
        if (["top", "bottom"].some((side) => Math.abs(all[i][side] - all[i + 1][side]) > slack))
          say("a pair of bars is uneven", formula);
    }
  for (const code of document.querySelectorAll(wide ? ".highlight pre" : ".highlight-bash pre"))
    if (!code.closest(".output, .cell_output") && code.scrollWidth > code.clientWidth + slack)
      say(`code is cut off by ${code.scrollWidth - code.clientWidth} pixels`, code);
  const names = [...document.querySelectorAll("#pst-primary-sidebar .bd-links a")]
    .map((link) => link.textContent.trim());
  for (const name of new Set(names.filter((name, i) => names.indexOf(name) < i)))
    faults.push("several pages are called " + name);
  for (const picture of document.querySelectorAll("article img"))
    if (picture.complete && !picture.naturalWidth) faults.push("no picture " + picture.src);
  return faults;
})()
"""


class Page:
    """One tab of a browser, by Chromium's protocol for developers."""

    def __init__(self, socket):
        self._socket, self._sent = socket, 0

    async def tell(self, method, **values):
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": values}
        await self._socket.write_message(json.dumps(message))
        while True:  # other messages are of what happens in the tab
            answer = json.loads(
                await asyncio.wait_for(self._socket.read_message(), PATIENCE)
            )
            if answer.get("id") == self._sent:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    async def value(self, script):
        answer = await self.tell(
            "Runtime.evaluate", expression=script, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"]["value"]

    async def open(self, path, width, colours):
        await self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=HEIGHT,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": colours}
        await self.tell("Emulation.setEmulatedMedia", features=[scheme])
        await self.tell("Page.navigate", url=path.as_uri())
        here = f"document.readyState == 'complete' && location.href == {json.dumps(path.as_uri())}"
        for _ in range(PATIENCE * 50):
            if await self.value(here):
                return
            await asyncio.sleep(0.02)
        raise RuntimeError(f"{path} does not open")

    async def picture(self, path):
        answer = await self.tell("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))


async def tab_of(browser, profile):
    """Return the tab of a browser that has just been started."""
    note = profile / "DevToolsActivePort"
    for _ in range(PATIENCE * 10):
        if browser.poll() is not None:
            raise RuntimeError(
                f"{browser.args[0]} ends at once, with status {browser.returncode}"
            )
        if note.exists() and "\n" in note.read_text():
            port = note.read_text().split()[0]
            tabs = json.load(urlopen(f"http://127.0.0.1:{port}/json"))
            (address,) = [
                t["webSocketDebuggerUrl"] for t in tabs if t["type"] == "page"
            ]
            return Page(await websocket_connect(address, max_message_size=1 << 28))
        await asyncio.sleep(0.1)
    raise RuntimeError(f"{browser.args[0]} does not answer")


async def faults_of(page, folder, pictures):
    """Yield what is wrong on the pages of a folder, a line each."""
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(folder)
        if name.parts[0] in ("_static", "_modules") or path.stem in (
            "search",
            "genindex",
        ):
            continue
        for width in (WIDE, NARROW):
            for colours in ("light", "dark") if pictures else ("light",):
                await page.open(path, width, colours)
                if colours == "light":
                    for fault in await page.value(FAULTS):
                        yield f"{name}, {width} pixels wide: {fault}"
                if pictures:
                    file = (
                        "-".join([*name.with_suffix("").parts, str(width), colours])
                        + ".png"
                    )
                    await page.picture(pictures / file)


async def check(program, folder, pictures):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # Only pages of our own are opened, and root may not have a sandbox.
        options = ["--headless", "--no-sandbox", "--disable-gpu"]
        options += [
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        browser = subprocess.Popen([program, *options], stderr=subprocess.DEVNULL)
        try:
            page = await tab_of(browser, Path(profile))
            return [fault async for fault in faults_of(page, folder, pictures)]
        finally:
            browser.terminate()
            browser.wait()


def main(folder="docs/_build/html", pictures=None):
    found = [program for program in map(shutil.which, BROWSERS) if program]
    if not found:
        print(f"the pages were not looked at: there is none of {', '.join(BROWSERS)}")
        return 0
    if pictures:
        Path(pictures).mkdir(parents=True, exist_ok=True)
    folder = Path(folder).resolve()
    faults = asyncio.run(check(found[0], folder, pictures and Path(pictures)))
    print(*faults, f"{len(faults)} faults of pages in {found[0]}", sep="\n")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
