"""python -m codesign_bench is codesign-bench."""

from codesign_bench.cli import main

if __name__ == "__main__":
    main()
