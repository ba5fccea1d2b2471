/* What the theme leaves out for those who do not see the page or have no mouse: names of the buttons of each code block, and a way into wide tables. */
const complete = () => {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav, i) => nav.setAttribute("aria-label", `Code block ${i + 1}`))
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach(table => (table.tabIndex = 0))
}
new MutationObserver(complete).observe(document.body, { childList: true, subtree: true })
complete()
