"""The report of a study: one HTML file that needs nothing else.

data.py        what is shown, as plain values: leaderboard, curves, runs, versions, what is missing
bodies.py      robots, their designs along the run, their motion, and the species of evolution methods
page.py        those values as HTML, with the files beside it put inside
style.css, *.js  the page's look and its interactive parts: curves.js, viewer.js (3D), designs.js, lineage.js, page.js
"""
