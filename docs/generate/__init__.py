"""Pages that are made from the code: `python -m docs.generate` writes them, `python -m docs.generate.check site` checks what was built."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MADE = "<!-- Made by docs/generate; make docs makes it anew. -->"


def table(head: list[str], rows: list[list[str]]) -> str:
    """In Markdown; cells may hold anything but line breaks."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
