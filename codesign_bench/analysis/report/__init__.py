"""The report of a study: one HTML file that needs nothing else.

data.py        what is shown, as plain values: leaderboard, curves, runs, versions, what is missing
bodies.py      robots, their designs along the run, their motion, and the species of evolution methods
page.py        fills page.html with those values and the tables of analysis/tables.py, and puts style and scripts inside
style.css, *.js  the page's look and its interactive parts: curves.js, viewer.js (3D), designs.js, lineage.js, page.js
"""
