"""What every room may use: records, errors, configuration, time, files, processes, certificates.

A module here knows no other room and nothing of words, pages or servers.
"""
