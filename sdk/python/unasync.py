"""Writes satchel/_sync.py, the synchronous client, from satchel/_async.py."""
import pathlib
import re

WORDS = {
    "AsyncSatchel": "Satchel", "AsyncAgent": "Agent", "AsyncSession": "Session", "AsyncIterator": "Iterator",
    "AsyncClient": "Client", "AsyncBaseTransport": "BaseTransport", "asynccontextmanager": "contextmanager",
    "__aenter__": "__enter__", "__aexit__": "__exit__", "aclose": "close", "aread": "read", "aiter_lines": "iter_lines",
    "asyncio": "time",
}
HEAD = '"""The synchronous client, generated from _async.py by unasync.py."""\n'


def main() -> None:
    folder = pathlib.Path(__file__).parent / "satchel"
    text = (folder / "_async.py").read_text().split("\n", 1)[1]
    text = re.sub(r"\b(async|await) ", "", text)
    text = re.sub(r"\w+", lambda m: WORDS.get(m[0], m[0]), text)
    (folder / "_sync.py").write_text(HEAD + text)


if __name__ == "__main__":
    main()
