"""Writes the pages that are made from the code; says which of them have changed."""

from docs.generate import ROOT, commands, environments

PAGES = {"commands.md": commands.page, "environments.md": environments.page}


def main() -> None:
    for name, page in PAGES.items():
        file, content = ROOT / "docs" / name, page()
        if not file.is_file() or file.read_text(encoding="utf-8") != content:
            file.write_text(content, encoding="utf-8")
            print(f"docs/{name} is made anew")


if __name__ == "__main__":
    main()
