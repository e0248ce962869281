"""The Arrow Flight shell: streams, control calls, credentials, limits, checks of messages."""
