"""The live page about runs, from their folders only: it reads journals and changes nothing.

    journals → NodeView (a fold in bounded memory) → RunView → Watcher (one thread) → messages → page

The page's sources in `page/` are what is served; there is no build step, and nothing is loaded from anywhere
else. `single_file` makes one HTML file of the same page and the same messages.
"""
