"""A small driver for a real browser: chromedriver speaks JSON over HTTP, so Python needs no package for it."""

import base64
import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
MISSING = "needs Chromium and its driver (Debian: apt-get install chromium chromium-driver)"
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
]  # fmt: skip

KEYS = {"Space": " ", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}
KEYS |= {"Home": "\ue011", "End": "\ue010", "Enter": "\ue007", "Escape": "\ue00c"}


class Browser:
    """One window of a headless Chromium."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        assert DRIVER is not None and CHROMIUM is not None, MISSING
        environment = {**os.environ, "HOME": str(folder)}
        self.driver = subprocess.Popen([DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, env=environment)
        options = {"args": [*FLAGS, f"--user-data-dir={folder / 'profile'}"], "binary": CHROMIUM}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        for _ in range(6000):
            try:
                self.session = ""
                made = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
                break
            except URLError:
                time.sleep(0.1)
        else:
            raise RuntimeError("chromedriver does not answer")
        self.session = f"/session/{made['sessionId']}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One command of the WebDriver protocol."""
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = Request(self.address + self.session + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=600) as answer:
                return json.load(answer)["value"]
        except HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, path: Path, width: int = 1280, height: int = 800, dark: bool = False) -> None:
        """Show a file from disk in a window of this size, as a reader of this taste sees it."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("POST", "/url", {"url": path.as_uri()})
        self.run("localStorage.clear()")

    def command(self, name: str, **parameters: Any) -> Any:
        """A command of the browser's own protocol."""
        return self.ask("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def run(self, script: str, *args: Any) -> Any:
        """What an expression of the page's language gives; promises are waited for."""
        return self.ask("POST", "/execute/sync", {"script": f"return ({script})", "args": list(args)})

    def wait(self, condition: str, seconds: float = 600) -> Any:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not (value := self.run(condition)):
            assert time.monotonic() < end, f"never true: {condition}"
            time.sleep(0.03)
        return value

    def click(self, x: float, y: float, count: int = 1) -> None:
        """A click at a point of the window."""
        for number in range(1, count + 1):
            for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
                button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": number}
                self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def click_on(self, selector: str) -> None:
        """A click on an element."""
        found = self.ask("POST", "/element", {"using": "css selector", "value": selector})
        self.ask("POST", f"/element/{found[ELEMENT]}/click")

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        actions = [{"type": t, "value": KEYS.get(key, key)} for key in keys for t in ("keyDown", "keyUp")]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def complaints(self) -> list[str]:
        """What the page has written to the console since this was last asked."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, path: Path) -> None:
        """The window as a PNG file."""
        path.write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))

    def close(self) -> None:
        """End the browser."""
        self.ask("DELETE", "")
        self.driver.terminate()
        self.driver.wait(timeout=600)
