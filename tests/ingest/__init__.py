"""Tests of headrace/ingest, on real topics, files and sockets."""
