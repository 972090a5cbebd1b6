"""The live page about runs, from their folders only: it reads journals and changes nothing.

    journals → NodeView (a fold in bounded memory) → RunView → Watcher (one thread) → messages → page

The files in `page/` are served as they are, without a build step, and nothing is loaded from elsewhere.
`single_file` makes one HTML file of the same page and the same messages.
"""
