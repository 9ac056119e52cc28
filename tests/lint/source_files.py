"""Finds the project's source files, wherever they lie: a new folder is linted like the others.

Build folders, hidden folders and archives of releases hold no sources.
"""

OTHER_FOLDERS = {"__pycache__", "dist"}


def is_of_sources(folder):
    return (
        folder.is_dir()
        and not folder.name.startswith(".")
        and folder.name not in OTHER_FOLDERS
        and not (folder / "meson-private").exists()
    )


def product_sources(root, folders):
    """Returns the paths of all .cpp and .hpp files below these folders of `root` (a pathlib.Path), in a fixed order.

    Fails if there are none.
    """
    found = [path for folder in folders for path in source_files(root / folder, (".cpp", ".hpp"))]
    assert found, f"no sources below {root}"
    return found


def source_files(root, suffixes):
    """Returns all files below `root` (a pathlib.Path) with one of the suffixes, in a fixed order."""
    found = []
    for entry in sorted(root.iterdir()):
        if is_of_sources(entry):
            found += source_files(entry, suffixes)
        elif entry.suffix in suffixes and entry.is_file():
            found.append(entry)
    return found
