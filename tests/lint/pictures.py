"""The pictures of the documents are there, and as new as the page and the reports that they are made of.

    pictures.py SOURCE_ROOT            fails if something has changed since tools/pictures made them
    pictures.py SOURCE_ROOT --write    notes what they are made of now; called by tools/pictures
"""

import hashlib
import sys
from pathlib import Path


# No picture shows a setting: these sources hold the list of settings, and how the environment's texts are parsed.
SHOWN_NOWHERE = {"settings.def", "setting_kinds.hpp", "setting_kinds.cpp"}


def made_of(root):
    """Returns a line for each picture, and for each file that the pictures depend on: its hash and path."""
    texts = [path for folder in ("text", "words", "labels") for path in (root / "reporters" / folder).rglob("*")]
    files = [
        *(root / "docs" / "pictures").glob("*.json.xz"),
        *(root / "docs" / "pictures").glob("*.png"),
        *(root / "page" / "src").iterdir(),
        root / "page" / "build.mjs",
        root / "page" / "package-lock.json",
        *(root / "reporters" / "exports" / "page").iterdir(),
        *texts,
        root / "tools" / "pictures.mjs",
    ]
    files = [path for path in files if path.is_file() and path.name not in {"meson.build", *SHOWN_NOWHERE}]
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in sorted(files)
    )


def main():
    root = Path(sys.argv[1]).resolve()
    note = root / "docs" / "pictures" / "made_of"
    now = made_of(root)
    if sys.argv[2:] == ["--write"]:
        note.write_text(now)
        return 0
    noted = set(note.read_text().splitlines()) if note.exists() else set()
    changed = [line.split("  ")[1] for line in now.splitlines() if line not in noted]
    gone = {line.split("  ")[1] for line in noted} - {line.split("  ")[1] for line in now.splitlines()}
    for path in [*changed, *sorted(gone)]:
        event = "has changed" if (root / path).exists() else "is gone"
        print(f"{path} {event} since the pictures of the documents were made: run tools/pictures build")
    return 1 if changed or gone else 0


if __name__ == "__main__":
    sys.exit(main())
