"""Running untrusted text or code in a confined process, for any caller. Knows processes, not tasks."""
